//! What is done so that every number has a reason to move, and every alert one to fire.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lockgate_testbed::http_get;
use tokio::time::Instant;

use super::alarms::Alarms;
use super::voice::{hold, kill, psql};
use crate::cluster::Cluster;

const KERNEL: &str = "kernel-1";
/// Alerts that nothing in a story can bring about, and why.
pub(super) const NOT_PROVOKED: [(&str, &str); 6] = [
    ("LockgateRunsOrphaned", "a definition would have to vanish under a run; tried in scenarios, and by the rule's test"),
    (
        "LockgateLoopHangs",
        "every call ends by its deadline, so that nothing outside of a process makes one of its loops hang",
    ),
    ("LockgateRowsRefused", "tried in scenarios, and by tests of both adapters with triggers"),
    (
        "LockgateHorizonPinned",
        "a transaction would have to be open for ten minutes; tried by tests with a real one, and by the rule's",
    ),
    (
        "LockgateClockJumped",
        "only the administrator of a machine can set its clock; tests of the binary set it with libfaketime and look at the metrics",
    ),
    ("LockgateLanesAhead", "the Store would have to be restored to an earlier time under the processes"),
];

/// A run whose undo fails too.
const HOPELESS: &str = "version: 1
dag: hopeless
nodes:
  paid:
    topic: job.echo
    payload: {}
    on_fail: compensate
    compensation: {topic: job.always_fail, payload: {}, max_attempts: 1}
  broken:
    needs: [paid]
    topic: job.always_fail
    payload: {}
    max_attempts: 1
    on_fail: compensate
";
const CARD: &str = r#"{"card":"4111 1111 1111 1111"}"#;

pub(super) struct ObservedStory<'a> {
    root: &'a Path,
    pub(super) binary: PathBuf,
    pub(super) gateway: String,
    kernel: String,
    folder: tempfile::TempDir,
}

impl<'a> ObservedStory<'a> {
    /// A cluster that asks a kernel elsewhere, whose policy says what happens while it is away.
    pub(super) async fn begin(root: &'a Path, cluster: &mut Cluster) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let binary = cluster.binary.clone();
        let mut story = Self { root, binary, gateway: String::new(), kernel: "127.0.0.1:0".to_owned(), folder };
        std::fs::write(story.policy(), story.policy_text()?)?;
        story.kernel = story.start_kernel(cluster).await?;
        let kernel = ["--safety-kernel", &story.kernel, "--safety-kernel-insecure", "--safety-kernel-retry", "2s"];
        cluster.launch(&[&kernel[..], &["--nats-dead-letters"]].concat()).await?;
        story.gateway = cluster.gateways().remove(0);
        Ok(story)
    }

    fn policy(&self) -> PathBuf {
        self.folder.path().join("policy.yaml")
    }

    fn policy_text(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.root.join("examples/governance/policy.yaml"))?)
    }

    async fn start_kernel(&self, cluster: &mut Cluster) -> anyhow::Result<String> {
        let policy = self.policy().display().to_string();
        let kernel = cluster.serve("kernel", KERNEL, &self.kernel, &["--policy", &policy]).await?;
        Ok(kernel.api.trim_start_matches("http://").to_owned())
    }

    /// Every act, each with the alerts that it must bring about; those that need their processes dead come last.
    pub(super) async fn happen(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        self.calm(alarms).await?;
        self.say(&["--actor", "ann", "submit", "job.echo", "--job-id", "forgotten", "--label", "team=payments"]).await?;
        self.unreadable(cluster, alarms).await?;
        self.mixed_load(cluster, alarms).await?;
        self.kernel_away_closed(cluster, alarms).await?;
        self.bad_results(alarms).await?;
        self.kernel_away_open(cluster, alarms).await?;
        self.bad_jobs(alarms).await?;
        self.locked(cluster, alarms).await?;
        self.unsealed(cluster, alarms).await?;
        self.leaderless(cluster, alarms).await?;
        self.servers_away(cluster, alarms).await?;
        println!("everything is cured");
        alarms.expect_all_over().await?;
        // A ratio of what ended lately has no value where nothing did.
        self.say(&["load", "--jobs", "50", "--rate", "10", "--mix", "noop=1"]).await
    }

    async fn calm(&self, alarms: &Alarms<'_>) -> anyhow::Result<()> {
        println!("calm: good jobs and nothing else");
        let start = Instant::now();
        self.say(&["load", "--jobs", "300", "--rate", "10", "--mix", "noop=1", "--give-up", "3m"]).await?;
        alarms.expect_calm(start)
    }

    /// An undecodable row. Early, because it is reported for five minutes after it was repaired.
    async fn unreadable(&self, cluster: &Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("somebody writes nonsense into the row of a job");
        let start = Instant::now();
        // The loop that ends overdue jobs reads the row every second.
        self.say(&["submit", "nobody.serves", "--job-id", "spoilt", "--deadline", "10s"]).await?;
        let spoil = "CREATE TABLE kept AS SELECT job_id, life FROM jobs_hot WHERE job_id = 'spoilt'; \
                     UPDATE jobs_hot SET life = '?' WHERE job_id = 'spoilt'";
        psql(cluster, spoil).await?;
        alarms.expect(start, &["LockgateRowsUnreadable"], async || {}).await?;
        let mend = "UPDATE jobs_hot SET life = kept.life FROM kept WHERE jobs_hot.job_id = kept.job_id; DROP TABLE kept";
        psql(cluster, mend).await?;
        // It is past its deadline, and says so by how it exits.
        self.try_to(&["watch", "spoilt"]).await
    }

    /// The mix that others measure with, everything a person may do, and servers that forget and restart.
    async fn mixed_load(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("the mixed load begins");
        let start = Instant::now();
        let mut load = self.start(&["load", "--jobs", "3000", "--rate", "40", "--sleep", "12s", "--give-up", "5m"])?;
        self.governance().await?;
        self.workflows().await?;
        println!("Redis forgets everything, PostgreSQL restarts");
        cluster.servers.redis.command("FLUSHALL").context("Redis")?;
        cluster.servers.postgres.restart()?;
        let expected = [
            "LockgateSlowHandlers",
            "LockgateSlowRuns",
            "LockgateAttemptsReaped",
            "LockgateJobErrorBudgetFast",
            "LockgateJobErrorBudgetSlow",
        ];
        alarms.expect(start, &expected, async || {}).await?;
        let ended = load.wait().await?;
        println!("the mixed load ended: {ended}");
        if !ended.success() {
            bail!("a job of the load did not end as its kind should");
        }
        Ok(())
    }

    async fn governance(&self) -> anyhow::Result<()> {
        self.try_to(&["--actor-type", "agent", "submit", "job.echo", "--risk-tag", "destructive"]).await?;
        self.say(&["--actor", "ann", "submit", "job.echo", "--job-id", "payment", "--label", "team=payments"]).await?;
        self.say(&["--actor", "bob", "approvals", "approve", "payment"]).await?;
        self.try_to(&["submit", "job.echo", "--label", "data=orders", "--payload", CARD, "--wait"]).await
    }

    async fn workflows(&self) -> anyhow::Result<()> {
        let example = |path: &str| self.root.join("examples").join(path).display().to_string();
        for dag in ["travel-booking", "transcode"] {
            self.say(&["dag", "apply", &example(&format!("dags/{dag}.yaml"))]).await?;
        }
        self.say(&["dag", "start", "transcode"]).await?;
        // It is undone, and says so by how it exits.
        self.try_to(&["dag", "start", "travel-booking", "--param", "car_failures=1", "--watch"]).await?;
        self.say(&["schedule", "apply", &example("schedules.yaml")]).await?;
        self.say(&["schedule", "trigger", "nightly-report"]).await
    }

    /// The kernel is unreachable for a while with fail mode closed: jobs wait for a verdict, and results for their scan.
    async fn kernel_away_closed(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        self.say(&["submit", "job.sleep", "--payload", r#"{"ms":4000}"#, "--label", "data=orders"]).await?;
        println!("the safety kernel is killed; jobs wait for it");
        let start = Instant::now();
        kill(cluster, KERNEL).await?;
        self.say(&["submit", "job.echo", "--job-id", "orphan"]).await?;
        let expected = ["LockgateBreakerOpen", "LockgateKernelUnavailable", "LockgateScansOwed"];
        alarms.expect(start, &expected, async || {}).await?;
        self.start_kernel(cluster).await?;
        println!("the safety kernel is back");
        self.say(&["watch", "orphan"]).await?;
        alarms.expect_over(&expected).await
    }

    /// Results that must not come out, and work that cannot be undone.
    async fn bad_results(&self, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("results with card numbers, and an undo that fails");
        let start = Instant::now();
        let hopeless = self.folder.path().join("hopeless.yaml");
        std::fs::write(&hopeless, HOPELESS)?;
        self.say(&["dag", "apply", &hopeless.display().to_string()]).await?;
        let run = self.ask(&["dag", "start", "hopeless"]).await?;
        let run = run.split_whitespace().next().context("a run without an id")?;
        let expected = ["LockgateCompensationStuck", "LockgateQuarantineRate"];
        let poke = async || {
            let _ = self.try_to(&["submit", "job.echo", "--label", "data=orders", "--payload", CARD]).await;
        };
        alarms.expect(start, &expected, poke).await?;
        // Otherwise the alert would fire for ever.
        self.say(&["dag", "resolve", run, "paid"]).await
    }

    /// The kernel is unreachable for a while with fail mode open: jobs run and results are exposed, marked, counted and
    /// judged later.
    async fn kernel_away_open(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        let open =
            self.policy_text()?.replace("fail_mode: closed", "fail_mode: open") + "\ninput_policy: {fail_mode: open}\n";
        std::fs::write(self.policy(), open)?;
        self.wait_in_force("input_policy").await?;
        println!("the safety kernel is killed; jobs do not wait for it");
        let start = Instant::now();
        kill(cluster, KERNEL).await?;
        let poke = async || {
            let _ = self.try_to(&["submit", "job.echo", "--label", "data=orders"]).await;
        };
        let expected = ["LockgateFailOpen", "LockgateLedgerDebt"];
        alarms.expect(start, &expected, poke).await?;
        self.start_kernel(cluster).await?;
        println!("the safety kernel is back");
        self.try_to(&["submit", "job.echo", "--wait"]).await?;
        alarms.expect_over(&expected).await
    }

    async fn bad_jobs(&self, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("jobs that only fail");
        let start = Instant::now();
        let mut load =
            self.start(&["load", "--jobs", "900", "--rate", "30", "--mix", "always_fail=1", "--give-up", "5m"])?;
        let expected = ["LockgateHighFailureRatio", "LockgateRetryStorm", "LockgateDeadLettersGrow"];
        alarms.expect(start, &expected, async || {}).await?;
        load.wait().await?;
        Ok(())
    }

    /// A transaction of another session blocks all writes of jobs: deadlines pass and no job ends.
    async fn locked(&self, cluster: &Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("a transaction holds a lock on the table of jobs");
        // The lock must be there before its time is over.
        self.say(&["submit", "nobody.serves", "--deadline", "20s"]).await?;
        let mut lock = hold(cluster, "jobs_hot").await?;
        let expected = ["LockgateStaleJobs"];
        alarms.expect(Instant::now(), &expected, async || {}).await?;
        lock.kill().await?;
        alarms.expect_over(&expected).await
    }

    /// Only blocks of the audit trail cannot be written: its rows wait to be sealed.
    async fn unsealed(&self, cluster: &Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("a transaction holds a lock on the blocks of the audit trail");
        let mut lock = hold(cluster, "audit_blocks").await?;
        let expected = ["LockgateAuditUnsealed"];
        let poke = async || {
            // Refused, and that is written down.
            let _ = self.try_to(&["--actor-type", "agent", "submit", "job.echo", "--risk-tag", "destructive"]).await;
        };
        alarms.expect(Instant::now(), &expected, poke).await?;
        lock.kill().await?;
        alarms.expect_over(&expected).await
    }

    /// Leases cannot be read: no leader-only loop runs, although every process answers.
    async fn leaderless(&self, cluster: &Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("a transaction holds a lock on the leases of leaders");
        let mut lock = hold(cluster, "leases").await?;
        let expected = ["LockgateLoopStuck"];
        alarms.expect(Instant::now(), &expected, async || {}).await?;
        lock.kill().await?;
        alarms.expect_over(&expected).await
    }

    async fn servers_away(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("Redis is away");
        let start = Instant::now();
        cluster.servers.redis.kill();
        let expected = ["LockgateLanesAway"];
        alarms.expect(start, &expected, async || {}).await?;
        cluster.servers.redis.restart()?;
        alarms.expect_over(&expected).await?;
        println!("NATS is away, and a dead letter is to be told to it");
        let start = Instant::now();
        cluster.servers.nats.kill();
        self.say(&["submit", "job.always_fail", "--max-attempts", "1"]).await?;
        let expected = ["LockgateBusAway", "LockgateOutboxLate"];
        alarms.expect(start, &expected, async || {}).await?;
        cluster.servers.nats.restart()?;
        alarms.expect_over(&expected).await?;
        println!("PostgreSQL is away");
        let start = Instant::now();
        cluster.servers.postgres.kill();
        let address = self.gateway.trim_start_matches("http://").to_owned();
        let poke = async || {
            // It fails; that is the point.
            let _ = http_get(&address, "/v1/jobs?limit=1");
        };
        let expected =
            ["LockgateStoreErrors", "LockgateReapingDeferred", "LockgateApiErrorBudgetFast", "LockgateApiErrorBudgetSlow"];
        alarms.expect(start, &expected, poke).await?;
        cluster.servers.postgres.restart()?;
        self.wait_for_success(&["submit", "job.echo", "--wait"]).await
    }

    /// More work than the workers can take, then no scheduler, then no process at all.
    pub(super) async fn end(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        println!("a pool is paused and 10,100 jobs come in");
        let start = Instant::now();
        self.say(&["pools", "pause", "default"]).await?;
        let mut load = self.start(&["load", "--jobs", "10100", "--mix", "noop=1"])?;
        let expected = ["LockgateQueueSaturated", "LockgateApprovalOld"];
        alarms.expect(start, &expected, async || {}).await?;
        load.kill().await?;
        self.say(&["pools", "resume", "default"]).await?;
        self.say(&["--actor", "bob", "approvals", "approve", "forgotten"]).await?;
        alarms.expect_over(&expected).await?;
        println!("every scheduler is killed");
        let start = Instant::now();
        for scheduler in cluster.names("scheduler") {
            kill(cluster, &scheduler).await?;
        }
        alarms.expect(start, &["LockgateNoLeader"], async || {}).await?;
        println!("everything is killed");
        let start = Instant::now();
        for process in cluster.names("") {
            kill(cluster, &process).await?;
        }
        alarms.expect(start, &["LockgateDown"], async || {}).await
    }
}
