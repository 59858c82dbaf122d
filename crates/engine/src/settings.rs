//! Times and sizes of the engine.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::EdgeRules;
use lockgate_core::limits::Limits;
use lockgate_core::policy::InputPolicy;

/// Roles choose loops. A process without any only answers questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Holds worker streams: claims, dispatches, takes results.
    pub gateway: bool,
    /// Judges what waits for a verdict, moves what is due, ends what is over, and mends what was forgotten.
    pub scheduler: bool,
    /// Takes the steps of runs.
    pub orchestrator: bool,
}

impl Default for Roles {
    fn default() -> Self {
        Self { gateway: true, scheduler: true, orchestrator: true }
    }
}

/// A process that takes what is left to it says so within milliseconds. One that is silent for this long may be dead or cut off, or
/// chose another worker.
pub(crate) const HANDOVER_WAIT: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: Limits,
    /// Life of the edge's lease in the Store.
    pub edge_ttl: Duration,
    /// How often it is renewed.
    pub edge_renew: Duration,
    /// How long a lease must have been expired before another process closes the edge.
    pub edge_grace: Duration,
    /// How often workers are asked to send a beat.
    pub beat_every: Duration,
    /// Silence after which a worker's session is lost.
    pub lost_after: Duration,
    /// Maximum time that Store failures may postpone lost-worker detection while this edge's own lease is renewed.
    pub defer_max: Duration,
    /// How long a job is left to the process of the worker chosen for it. If that process claims nothing in this time, the job goes to
    /// another worker.
    pub handover_wait: Duration,
    /// How often sessions and running attempts are looked over.
    pub reap_every: Duration,
    /// How much later than the worker the server enforces an attempt's timeout.
    pub timeout_grace: Duration,
    /// Longest wait until a due job is noticed.
    pub due_every: Duration,
    /// How often deadlines of waiting jobs are looked at.
    pub expire_every: Duration,
    /// Longest time until a start report is durable.
    pub start_flush: Duration,
    /// How often lane heads are compared with the Store.
    pub reoffer_every: Duration,
    /// How often all lanes are.
    pub reoffer_all_every: Duration,
    /// How often lanes that are shared are looked after.
    pub lanes_every: Duration,
    /// How often limits are compared with what workers hold.
    pub limits_every: Duration,
    /// An idle edge claims this often even if no bell rings.
    pub idle_claim: Duration,
    /// How long ended jobs are kept.
    pub retention: Duration,
    pub prune_every: Duration,
    /// Results that owe a scan are looked for this often, besides when one arrives.
    pub scan_every: Duration,
    /// Parents that wait for children, and those that left some behind, are looked over this often, besides when a child ends.
    pub families_every: Duration,
    /// How often new audit rows are sealed into a block.
    pub seal_every: Duration,
    /// Runs are looked over this often: delays that are over, leadership.
    pub runs_every: Duration,
    /// News that no step consumed for this long are looked for.
    pub unheard_after: Duration,
    /// All live runs are planned anew this often, as if nothing were known of them.
    pub sweep_every: Duration,
    /// A run that waits for nothing, and that no sweep could move for this long, is ended.
    pub orphan_after: Duration,
    /// The sink that dead letters are told to; none unless somebody outside wants to hear of them.
    pub dead_letters: Option<Arc<str>>,
    /// Messages for outside that their committer did not relay are looked for this often.
    pub outbox_every: Duration,
    /// Schedules are looked over this often, besides when the time of one comes.
    pub schedules_every: Duration,
    /// A loop that has not moved for this long beyond its rest is stuck. Far longer than any call may take, so that neither
    /// load nor a Store that hangs looks like it.
    pub stuck_after: Duration,
    /// How long a lease may be vacant beyond its own rhythm before nobody leads: whoever takes over needs a moment, and a
    /// longer one without CPU.
    pub leaderless_after: Duration,
    /// How long a new policy is not acknowledged while attempts it called back may still be about to start.
    pub recall_within: Duration,
    /// What to do with jobs that nobody can judge. Absent: what the policy says, which is to wait unless it says otherwise.
    pub fail_mode: Option<InputPolicy>,
    /// Jobs that wait for a verdict are judged at no more than this many a second, and so are those that ran without one, so
    /// that a kernel that was away is not met by all of them at once.
    pub release_rate: u32,
    /// Attempts that one process loses run again at no more than this many a second, so that the load of a rack that died does not come
    /// back as one burst.
    pub loss_rate: u32,
    /// What this process does of what all processes of an installation do together.
    pub roles: Roles,
    /// Most jobs in one claim, one commit, one page.
    pub batch_max: usize,
    /// The Store has no other user: every loop is this process's, and an in-process worker of an earlier edge is surely dead.
    pub exclusive_store: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            edge_ttl: Duration::from_secs(6),
            edge_renew: Duration::from_secs(2),
            edge_grace: Duration::from_secs(4),
            beat_every: Duration::from_secs(3),
            lost_after: Duration::from_secs(10),
            defer_max: Duration::from_secs(180),
            handover_wait: HANDOVER_WAIT,
            reap_every: Duration::from_secs(2),
            timeout_grace: Duration::from_secs(1),
            due_every: Duration::from_millis(500),
            expire_every: Duration::from_secs(1),
            start_flush: Duration::from_millis(100),
            reoffer_every: Duration::from_secs(5),
            reoffer_all_every: Duration::from_secs(120),
            lanes_every: Duration::from_secs(1),
            limits_every: Duration::from_secs(30),
            idle_claim: Duration::from_secs(1),
            retention: Duration::from_secs(7 * 24 * 3600),
            prune_every: Duration::from_secs(60),
            scan_every: Duration::from_secs(1),
            families_every: Duration::from_secs(2),
            seal_every: Duration::from_secs(1),
            runs_every: Duration::from_secs(1),
            unheard_after: Duration::from_secs(2),
            sweep_every: Duration::from_secs(60),
            orphan_after: Duration::from_secs(300),
            dead_letters: None,
            outbox_every: Duration::from_secs(1),
            schedules_every: Duration::from_secs(1),
            stuck_after: Duration::from_secs(60),
            leaderless_after: Duration::from_secs(10),
            recall_within: Duration::from_secs(2),
            fail_mode: None,
            release_rate: 1_000,
            loss_rate: 1_000,
            roles: Roles::default(),
            batch_max: 1_000,
            exclusive_store: true,
        }
    }
}

impl Settings {
    /// What the edge goes by.
    pub(crate) fn edge_rules(&self) -> EdgeRules {
        let Self { exclusive_store, edge_ttl, edge_grace, lost_after, handover_wait, .. } = *self;
        EdgeRules { lost_after, handover_wait, lease: (!exclusive_store).then_some(edge_ttl + edge_grace) }
    }
}
