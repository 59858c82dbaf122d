//! What is done so that every number has a reason to move, and every alert one to fire.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use lockgate_testbed::http_get;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::alarms::Alarms;
use crate::cluster::Cluster;

const KERNEL: &str = "kernel-1";
/// Alerts that nothing in a story can bring about, and why.
pub(super) const NOT_PROVOKED: [(&str, &str); 1] =
    [("LockgateLoopStuck", "a loop would have to hang for three minutes while its process answers")];

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

pub(super) struct Story<'a> {
    root: &'a Path,
    binary: PathBuf,
    gateway: String,
    kernel: String,
    folder: tempfile::TempDir,
}

impl<'a> Story<'a> {
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
        self.mixed_load(cluster, alarms).await?;
        self.kernel_away_closed(cluster, alarms).await?;
        self.bad_results(alarms).await?;
        self.kernel_away_open(cluster, alarms).await?;
        self.bad_jobs(alarms).await?;
        self.locked(cluster, alarms).await?;
        self.unsealed(cluster, alarms).await?;
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
        let expected =
            ["LockgateSlowRuns", "LockgateAttemptsReaped", "LockgateJobErrorBudgetFast", "LockgateJobErrorBudgetSlow"];
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

    /// Nobody judges for a while, and everything waits: jobs for a verdict, results for their scan.
    async fn kernel_away_closed(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        self.say(&["submit", "job.sleep", "--payload", r#"{"ms":4000}"#, "--label", "data=orders"]).await?;
        println!("the safety kernel is killed; jobs wait for it");
        let start = Instant::now();
        self.kill(cluster, KERNEL).await?;
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
        // It would alarm for as long as nobody does.
        self.say(&["dag", "resolve", run, "paid"]).await
    }

    /// Nobody judges for a while, and jobs run and results come out all the same: marked, counted and judged later.
    async fn kernel_away_open(&self, cluster: &mut Cluster, alarms: &mut Alarms<'_>) -> anyhow::Result<()> {
        let open =
            self.policy_text()?.replace("fail_mode: closed", "fail_mode: open") + "\ninput_policy: {fail_mode: open}\n";
        std::fs::write(self.policy(), open)?;
        self.wait_in_force("input_policy").await?;
        println!("the safety kernel is killed; jobs do not wait for it");
        let start = Instant::now();
        self.kill(cluster, KERNEL).await?;
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

    async fn wait_in_force(&self, text: &str) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(30);
        let mut every = tokio::time::interval(Duration::from_millis(200));
        while Instant::now() < end {
            every.tick().await;
            let shown = self.command(&["policy", "show"]).stdout(Stdio::piped()).output().await?;
            if String::from_utf8_lossy(&shown.stdout).contains(text) {
                return Ok(());
            }
        }
        bail!("the policy with {text} did not come into force");
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

    /// Somebody's transaction keeps everybody from writing jobs: deadlines pass and nothing ends.
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
        let expected = ["LockgateStoreErrors", "LockgateApiErrorBudgetFast", "LockgateApiErrorBudgetSlow"];
        alarms.expect(start, &expected, poke).await?;
        cluster.servers.postgres.restart()?;
        self.wait_for_success(&["submit", "job.echo", "--wait"]).await
    }

    /// A server that was killed puts its data in order before it answers.
    async fn wait_for_success(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        let mut every = tokio::time::interval(Duration::from_millis(500));
        loop {
            every.tick().await;
            match self.say(arguments).await {
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
    }

    /// More work than anybody takes, then nobody who looks after it, then nobody at all.
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
            self.kill(cluster, &scheduler).await?;
        }
        alarms.expect(start, &["LockgateNoLeader"], async || {}).await?;
        println!("everything is killed");
        let start = Instant::now();
        for process in cluster.names("") {
            self.kill(cluster, &process).await?;
        }
        alarms.expect(start, &["LockgateDown"], async || {}).await
    }

    async fn kill(&self, cluster: &mut Cluster, name: &str) -> anyhow::Result<()> {
        let mut process = cluster.take(name).with_context(|| format!("there is no {name}"))?;
        Ok(process.child.kill().await?)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env("LOCKGATE_SERVER", &self.gateway).stdin(Stdio::null()).stdout(Stdio::null());
        command.kill_on_drop(true);
        command
    }

    fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        Ok(self.command(arguments).stderr(Stdio::null()).spawn()?)
    }

    /// Must succeed.
    async fn say(&self, arguments: &[&str]) -> anyhow::Result<()> {
        self.ask(arguments).await.map(drop)
    }

    /// Must succeed. What it answers.
    async fn ask(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let said = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output().await?;
        match said.status.success() {
            true => Ok(String::from_utf8(said.stdout)?),
            false => bail!("lockgate {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&said.stderr)),
        }
    }

    /// May end either way.
    async fn try_to(&self, arguments: &[&str]) -> anyhow::Result<()> {
        self.command(arguments).stderr(Stdio::null()).status().await?;
        Ok(())
    }
}

/// A session that keeps others from writing to a table until it is killed; they can still read it.
async fn hold(cluster: &Cluster, table: &str) -> anyhow::Result<Child> {
    let mut psql = Command::new("psql");
    psql.args(["--quiet", "--tuples-only", &cluster.servers.postgres.url()]).kill_on_drop(true);
    let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("psql")?;
    let session = psql.stdin.as_mut().context("psql does not listen")?;
    session.write_all(format!("BEGIN; LOCK TABLE {table} IN SHARE MODE; SELECT 'locked';\n").as_bytes()).await?;
    session.flush().await?;
    let mut said = BufReader::new(psql.stdout.take().context("psql does not speak")?).lines();
    said.next_line().await?.context("psql has ended")?;
    Ok(psql)
}
