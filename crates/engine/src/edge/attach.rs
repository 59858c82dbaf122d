//! A worker attaches: its session gets a new epoch, and what it holds is compared with what the Store says it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, SessionId};
use lockgate_core::job::{Evidence, Illegal, Input, Job, Reason};
use lockgate_core::limits::{PREFETCH_MAX, SLOTS_MAX};
use lockgate_core::pools::Pools;
use lockgate_core::request::FieldError;
use lockgate_core::worker::{Load, WorkerProfile};
use lockgate_ports::{AttachedSession, StoreError, Unattached};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::Instant;

use super::outbound::Outbound;
use super::sessions::{EdgeSession, Freed, HeldAttempt, LeavingAttempt, Left};
use super::{FromWorker, Hello, InventoryItem, ToWorker, Welcome};
use crate::commit::{Driven, Undriven};
use crate::damage::ReadRow;
use crate::error::ApiError;
use crate::{Engine, Inner};

/// One attached stream. Dropping it detaches the session; the session itself lives on until it is silent for too long.
pub struct Attachment {
    inner: Arc<Inner>,
    session: SessionId,
    epoch: u64,
    /// Closed once the edge has given the stream up.
    open: watch::Receiver<()>,
}

impl Engine {
    /// Opens a stream for a worker. What must be sent to it comes out of the receiver; the receiver ends when the same
    /// session attaches again elsewhere, or when its stream is not read.
    pub async fn attach(&self, hello: Hello) -> Result<(Attachment, Welcome, Receiver<ToWorker>), ApiError> {
        let attached = self.take_up(hello).await;
        if matches!(attached, Err(ApiError::Unavailable(_) | ApiError::Exhausted(_))) {
            self.inner.health.unheard();
        }
        attached
    }

    async fn take_up(&self, hello: Hello) -> Result<(Attachment, Welcome, Receiver<ToWorker>), ApiError> {
        let inner = &self.inner;
        inner.configured().await?;
        inner.governed().await;
        if let Err(error) = check(&hello, &inner.routing().pools) {
            // The pool may have been put in force by another process a moment ago.
            inner.configs_once().await?;
            check(&hello, &inner.routing().pools).map_err(|_| error)?;
        }
        let lost_after = hello.profile.lost_after(inner.settings.lost_after);
        let promised = promised(&hello.profile, lost_after);
        let edge = inner.edge.id();
        let attached = inner.ports.store.attach(&hello.session, &edge, &promised).await?;
        let AttachedSession { epoch, sent_away } = attached.map_err(refused)?;
        let (worker, cut) = (hello.profile.worker.clone(), inner.metrics.pools.streams_cut());
        let (mut outbound, far_end) = Outbound::open(worker, hello.inventory.len(), cut);
        let known = inner.ports.store.held(&hello.session).await?;
        let reconciled = Reconciled::new(&hello, known);
        let stops = inner.strangers(&hello, &reconciled).await?;
        // Whatever number they were sent under, they have arrived.
        let leaving =
            stops.iter().map(|item| (item.token.clone(), LeavingAttempt::new(item.job_id.clone(), true, 0))).collect();
        for item in stops {
            let reason = "the attempt no longer counts".into();
            outbound.tell(ToWorker::Stop { job_id: item.job_id, token: item.token, reason });
        }
        let mut session = EdgeSession {
            epoch,
            profile: Arc::new(hello.profile),
            prefetch: hello.prefetch,
            outbound,
            heard_at: Instant::now(),
            heard_wall: inner.ports.clock.now(),
            last_assignment: reconciled.highest.max(hello.highest_assignment),
            held: reconciled.held,
            leaving,
            draining: false,
            says_it_drains: false,
            sent_away: false,
            load: Load::default(),
            active_jobs: 0,
        };
        if sent_away {
            session.send_away();
        }
        let gone = inner.edge.insert(&hello.session, &edge, session).ok_or_else(|| refused(Unattached::EdgeClosed))?;
        // From here on, whatever fails, dropping this detaches the session.
        let attachment = Attachment { inner: inner.clone(), session: hello.session, epoch, open: far_end.open };
        inner.left(gone).await;
        inner.note_started(&attachment.session, &hello.inventory);
        let evidence = Evidence::Attached { session: attachment.session.clone(), epoch };
        inner.lose(&attachment.session, reconciled.lost, &evidence).await?;
        inner.assign(inner.still_allowed(reconciled.resend).await?);
        inner.wake.dispatch.notify_one();
        // Two beats may be lost before a session is.
        let beat_every = inner.settings.beat_every.min(lost_after.min(inner.settings.lost_after) / 3);
        let welcome = Welcome { epoch, beat_every, lost_after };
        Ok((attachment, welcome, far_end.waiting))
    }
}

impl Attachment {
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Takes one message of the worker. Returns after everything in it is durable and acknowledged.
    pub async fn receive(&self, message: FromWorker) {
        self.inner.receive(&self.session, self.epoch, message).await;
    }

    /// Comes when the edge has given the stream up: the task that reads the worker's stream must stop then, or it would go on as if it were
    /// attached. The end of what is to be sent says the same, but only to those who can send.
    pub async fn given_up(&mut self) {
        while self.open.changed().await.is_ok() {}
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.inner.edge.detach(&self.session, self.epoch);
    }
}

/// What the Store keeps of a worker names the silence that it was promised: the process that judges it once this one is gone
/// keeps to that word, whatever its own settings say.
fn promised(profile: &WorkerProfile, lost_after: Duration) -> WorkerProfile {
    let lost_after_ms = u64::try_from(lost_after.as_millis()).ok();
    WorkerProfile { lost_after_ms, ..profile.clone() }
}

/// A process whose edge was closed has another within seconds.
fn refused(why: Unattached) -> ApiError {
    match why {
        Unattached::AnotherOwner => ApiError::Forbidden(why.to_string()),
        Unattached::EdgeClosed => ApiError::Unavailable(format!("{why} while this process was away; attach again")),
    }
}

fn check(hello: &Hello, pools: &Pools) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let names = [
        ("session", hello.session.as_str()),
        ("worker_id", hello.profile.worker.as_str()),
        ("pool", hello.profile.pool.as_str()),
    ];
    for (field, name) in names {
        if let Err(error) = lockgate_core::ids::check_name(name) {
            errors.push(FieldError::new(field, error));
        }
    }
    if hello.profile.slots == 0 || hello.profile.slots > SLOTS_MAX {
        errors.push(FieldError::new("slots", format_args!("must be between 1 and {SLOTS_MAX}")));
    }
    if i64::try_from(hello.highest_assignment).is_err() {
        errors.push(FieldError::new("highest_assignment", "is not a number that was ever given"));
    }
    // One that worked before may come back whatever became of its pool: it holds jobs, or results to tell.
    let new = hello.inventory.is_empty() && hello.highest_assignment == 0;
    if new && pools.pool(&hello.profile.pool).is_none() {
        let known: Vec<&str> = pools.pools().map(|pool| pool.name.as_str()).collect();
        let (pool, known) = (&hello.profile.pool, known.join(", "));
        errors.push(FieldError::new(
            "pool",
            format_args!("{pool:?} is not configured (known: {known}); add it to pools.yaml"),
        ));
    }
    if hello.prefetch > PREFETCH_MAX {
        errors.push(FieldError::new("prefetch", format_args!("must be at most {PREFETCH_MAX}")));
    }
    if hello.profile.topics.is_empty() {
        errors.push(FieldError::new("topics", "must name at least one topic"));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::Invalid(errors)) }
}

/// What the Store says a session holds, sorted by what the worker says of it.
struct Reconciled {
    held: BTreeMap<AttemptToken, HeldAttempt>,
    /// Numbered after the last assignment the worker took: sent, and never arrived.
    resend: Vec<Arc<Job>>,
    /// Taken once, and not known to the worker any more.
    lost: Vec<Arc<Job>>,
    highest: u64,
}

impl Reconciled {
    fn new(hello: &Hello, known: Vec<Job>) -> Self {
        let inventory: BTreeMap<&AttemptToken, &InventoryItem> = hello.inventory.iter().map(|i| (&i.token, i)).collect();
        let mut this = Self { held: BTreeMap::new(), resend: Vec::new(), lost: Vec::new(), highest: 0 };
        for job in known.into_iter().map(Arc::new) {
            let token = job.life.attempt.token.clone();
            let number = job.life.attempt.binding.as_ref().map_or(0, |b| b.assignment);
            this.highest = this.highest.max(number);
            let arrived = number <= hello.highest_assignment;
            // A lost one keeps its place until that is committed and the worker told.
            let held = match (inventory.contains_key(&token), arrived) {
                (true, _) => HeldAttempt::new(job),
                (false, true) => {
                    this.lost.push(job.clone());
                    HeldAttempt::new(job)
                }
                (false, false) => {
                    this.resend.push(job.clone());
                    HeldAttempt::unsent(job)
                }
            };
            this.held.insert(token, held);
        }
        this
    }
}

impl Inner {
    /// Attempts that never arrived, without those that the policy of now calls back. Asked after the session is known:
    /// a policy that comes later finds them there.
    async fn still_allowed(&self, jobs: Vec<Arc<Job>>) -> Result<Vec<Arc<Job>>, StoreError> {
        let (mut allowed, stale): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| self.verdict_stands(job));
        let driven = self.drive(stale.iter().map(|job| (job.clone(), Input::Judged)).collect()).await?;
        for (job, outcome) in stale.into_iter().zip(driven) {
            if matches!(outcome, Err(Undriven::Illegal(Illegal::NotDue))) {
                allowed.push(job);
            }
        }
        Ok(allowed)
    }

    /// Attempts the worker holds and the Store does not know as its own. One that was declared lost may
    /// still win, and so may the result of an earlier session.
    async fn strangers(&self, hello: &Hello, reconciled: &Reconciled) -> Result<Vec<InventoryItem>, StoreError> {
        let stranger = |item: &&InventoryItem| !reconciled.held.contains_key(&item.token);
        let strangers: Vec<InventoryItem> = hello.inventory.iter().filter(stranger).cloned().collect();
        if strangers.is_empty() {
            return Ok(strangers);
        }
        let ids: Vec<_> = strangers.iter().map(|item| item.job_id.clone()).collect();
        let jobs = self.load_each(&ids).await?;
        let may_win = |job: &ReadRow<Job>, token: &AttemptToken| {
            let job = match job {
                ReadRow::There(job) => job,
                ReadRow::Gone => return false,
                // No attempt is stopped on account of a row that cannot be read.
                ReadRow::Unreadable => return true,
            };
            let life = &job.life;
            // Held under an earlier session of the same worker, whose journal outlived it.
            let held = job.holder().is_some() && life.attempt.token == *token;
            held || life.lost.as_ref().is_some_and(|lost| lost.token == *token)
        };
        Ok(strangers.into_iter().zip(jobs).filter(|(item, job)| !may_win(job, &item.token)).map(|(item, _)| item).collect())
    }

    /// Declares attempts of a session lost, from the platform's budget. One that turns out to be over frees its place.
    pub(crate) async fn lose(&self, id: &SessionId, jobs: Vec<Arc<Job>>, evidence: &Evidence) -> Result<(), StoreError> {
        for some in jobs.chunks(self.settings.batch_max) {
            self.lose_some(id, some, evidence).await?;
        }
        Ok(())
    }

    async fn lose_some(&self, id: &SessionId, jobs: &[Arc<Job>], evidence: &Evidence) -> Result<(), StoreError> {
        let turns = self.turns.take(jobs.len());
        let lost = |(job, turn): (&Arc<Job>, Duration)| {
            let token = job.life.attempt.token.clone();
            (job.clone(), Input::Lost { token, reason: Reason::AgentLost, evidence: evidence.clone(), turn })
        };
        let driven = self.drive(jobs.iter().zip(turns).map(lost).collect()).await?;
        let mut over = Vec::new();
        for (job, outcome) in jobs.iter().zip(&driven) {
            match outcome {
                Ok(_) => self.metrics.reaped(Reason::AgentLost, 1),
                Err(Undriven::Illegal(_)) => {}
                Err(Undriven::Contended | Undriven::Refused(_)) => continue,
            }
            over.push(job.life.attempt.token.clone());
        }
        // No worker has these attempts, so no worker will confirm their end.
        self.let_go(id, over.clone()).await;
        self.free_limits(over).await;
        Ok(())
    }

    /// Attempts that their worker has nothing of any more: runs that wait for their end hear of it, and what they took is freed.
    pub(crate) async fn let_go(&self, session: &SessionId, mut tokens: Vec<AttemptToken>) {
        let untold = self.tell_left(self.edge.left(session, &tokens)).await;
        // They stay on their way out, and the worker's next beat says the same again.
        tokens.retain(|token| !untold.contains(token));
        self.free_places(session, tokens).await;
    }

    /// Like [`Self::let_go`], for attempts that their session no longer lists as being stopped.
    pub(crate) async fn left(&self, left: Vec<Left>) {
        let tokens = left.iter().map(|left| left.token.clone()).collect();
        // A run whose news could not be stored waits until its sweep sees the session closed, or for its time.
        self.tell_left(left).await;
        self.free_limits(tokens).await;
    }

    /// tells the jobs of runs that attempts which were taken from their workers are over. Those whose jobs could not be
    /// told.
    async fn tell_left(&self, left: Vec<Left>) -> BTreeSet<AttemptToken> {
        let of_runs = left.into_iter().filter_map(|left| Some((left.job_of_run?, left.token)));
        let (ids, tokens): (Vec<JobId>, Vec<AttemptToken>) = of_runs.unzip();
        if ids.is_empty() {
            return BTreeSet::new();
        }
        match self.drive_left(&ids, &tokens).await {
            Ok(untold) => untold,
            Err(error) => {
                tracing::warn!(%error, "runs could not be told that attempts are over; trying again with the next beat");
                tokens.into_iter().collect()
            }
        }
    }

    async fn drive_left(&self, ids: &[JobId], tokens: &[AttemptToken]) -> Result<BTreeSet<AttemptToken>, StoreError> {
        let jobs = self.load_each(ids).await?.into_iter().map(ReadRow::there);
        let there: Vec<(Arc<Job>, &AttemptToken)> =
            jobs.zip(tokens).filter_map(|(job, token)| Some((Arc::new(job?), token))).collect();
        let inputs = there.iter().map(|(job, token)| (job.clone(), Input::LetGo { token: (*token).clone() })).collect();
        let driven = self.drive(inputs).await?;
        let untold = |outcome: &Driven| matches!(outcome, Err(Undriven::Contended | Undriven::Refused(_)));
        let undriven = there.into_iter().zip(driven).filter(|(_, outcome)| untold(outcome));
        Ok(undriven.map(|((_, token), _)| token.clone()).collect())
    }

    /// Frees what attempts took that are over, now that their worker has nothing of them any more.
    pub(crate) async fn free_places(&self, session: &SessionId, tokens: Vec<AttemptToken>) {
        let mut limits = Vec::new();
        let mut places = false;
        for token in tokens {
            let freed = self.edge.settle(session, &token);
            places |= freed != Freed::Nothing;
            limits.extend((freed == Freed::PlaceAndLimits).then_some(token));
        }
        if places {
            self.wake.dispatch.notify_one();
        }
        self.free_limits(limits).await;
    }

    pub(crate) async fn free_limits(&self, tokens: Vec<AttemptToken>) {
        if !tokens.is_empty() && self.ports.lanes.release(tokens).await {
            self.wake.dispatch.notify_one();
        }
    }
}
