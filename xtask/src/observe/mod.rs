//! What an operator would see: a cluster under load and in trouble, a real Prometheus that scrapes it, and every question that
//! a dashboard or a rule asks. One that gets no answer is a broken picture.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use lockgate_testbed::{Prometheus, http_get, wait_until};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::cluster::{Build, Cluster, build};
use crate::dashboards;
use crate::servers::runtime;
use crate::tools::program;

const KERNEL: &str = "kernel-1";

/// Whether every question had an answer.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let mut cluster = Cluster::new(build(root, Build::Development).await?)?;
        let policy = root.join("examples/governance/policy.yaml").display().to_string();
        let judging = ["--policy", policy.as_str()];
        let kernel = cluster.serve("kernel", KERNEL, "127.0.0.1:0", &judging).await?;
        let address = kernel.api.trim_start_matches("http://").to_owned();
        let governed = ["--safety-kernel", &address, "--safety-kernel-insecure", "--safety-kernel-retry", "2s"];
        cluster.launch(&[&governed[..], &["--fail-mode", "open"]].concat()).await?;
        let prometheus = Prometheus::start(&configuration(root, &cluster.metrics()))?;
        println!("Prometheus scrapes {} processes at {}", cluster.metrics().len(), prometheus.url());
        Story { root, gateway: cluster.gateways().remove(0), binary: cluster.binary.clone() }
            .happen(&mut cluster, &address, &judging)
            .await?;
        let clean = check_metrics(root, &cluster).await?;
        let answered = look(&prometheus);
        cluster.stop().await;
        Ok(clean && answered)
    })
}

fn configuration(root: &Path, targets: &[String]) -> String {
    let rules = ["recording.yaml", "alerts.yaml"].map(|file| root.join("deploy/prometheus").join(file));
    let rules: Vec<String> = rules.iter().map(|path| format!("  - {}\n", path.display())).collect();
    let targets: Vec<String> = targets.iter().map(|target| format!("          - {target}\n")).collect();
    format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files:\n{}scrape_configs:\n  - job_name: lockgate\n    \
         static_configs:\n      - targets:\n{}",
        rules.concat(),
        targets.concat()
    )
}

/// What is done so that every number has a reason to move.
struct Story<'a> {
    root: &'a Path,
    gateway: String,
    binary: std::path::PathBuf,
}

impl Story<'_> {
    async fn happen(&self, cluster: &mut Cluster, kernel: &str, judging: &[&str]) -> anyhow::Result<()> {
        let example = |path: &str| self.root.join("examples").join(path).display().to_string();
        println!("the mixed load begins");
        let mut load = self.start(&["load", "--jobs", "1500", "--rate", "50", "--sleep", "12s", "--give-up", "3m"])?;
        self.governance().await?;
        for dag in ["travel-booking", "transcode"] {
            self.say(&["dag", "apply", &example(&format!("dags/{dag}.yaml"))]).await?;
        }
        self.say(&["dag", "start", "transcode"]).await?;
        // It is undone, and says so by how it exits.
        self.try_to(&["dag", "start", "travel-booking", "--param", "car_failures=1", "--watch"]).await?;
        self.say(&["schedule", "apply", &example("schedules.yaml")]).await?;
        self.say(&["schedule", "trigger", "nightly-report"]).await?;
        println!("Redis forgets everything, PostgreSQL restarts");
        cluster.servers.redis.command("FLUSHALL").context("Redis")?;
        cluster.servers.postgres.restart()?;
        self.kernel_away(cluster, kernel, judging).await?;
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
        let card = r#"{"card":"4111 1111 1111 1111"}"#;
        self.try_to(&["submit", "job.echo", "--label", "data=orders", "--payload", card, "--wait"]).await?;
        Ok(())
    }

    /// Nobody judges for a while; then somebody does again.
    async fn kernel_away(&self, cluster: &mut Cluster, address: &str, judging: &[&str]) -> anyhow::Result<()> {
        println!("the safety kernel is killed");
        let mut kernel = cluster.take(KERNEL).context("no kernel")?;
        kernel.child.kill().await?;
        for _ in 0..5 {
            self.try_to(&["submit", "job.echo", "--wait"]).await?;
        }
        cluster.serve("kernel", KERNEL, address, judging).await?;
        println!("the safety kernel is back");
        self.try_to(&["submit", "job.echo", "--wait"]).await
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
        match self.command(arguments).status().await?.success() {
            true => Ok(()),
            false => bail!("lockgate {} failed", arguments.join(" ")),
        }
    }

    /// May end either way.
    async fn try_to(&self, arguments: &[&str]) -> anyhow::Result<()> {
        self.command(arguments).stderr(Stdio::null()).status().await?;
        Ok(())
    }
}

/// What promtool thinks of the text that every process shows.
async fn check_metrics(root: &Path, cluster: &Cluster) -> anyhow::Result<bool> {
    let mut clean = true;
    for address in cluster.metrics() {
        let text = http_get(&address, "/metrics")?;
        let mut promtool = Command::new(program(root, "promtool"));
        promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut promtool = promtool.spawn().context("promtool does not run; `make servers` gets it")?;
        promtool.stdin.take().context("promtool does not listen")?.write_all(text.as_bytes()).await?;
        let said = promtool.wait_with_output().await?;
        if !said.status.success() {
            clean = false;
            println!("promtool on {address}: {}", String::from_utf8_lossy(&[said.stdout, said.stderr].concat()));
        }
    }
    println!("promtool check metrics: {}", if clean { "clean" } else { "not clean" });
    Ok(clean)
}

/// Asks everything the dashboards ask, and shows what had no answer.
fn look(prometheus: &Prometheus) -> bool {
    let queries = dashboards::queries();
    let mut silent = Vec::new();
    // A rate needs two scrapes, and the last act of the story may be younger than that.
    let _ = wait_until("every query has data", Duration::from_secs(20), || {
        silent = queries.iter().filter(|(_, query)| !has_answer(prometheus, query).unwrap_or(false)).collect();
        silent.is_empty()
    });
    silent.iter().for_each(|(dashboard, query)| println!("no data: {dashboard}: {query}"));
    println!("dashboards: {} of {} queries have data", queries.len() - silent.len(), queries.len());
    silent.is_empty()
}

fn has_answer(prometheus: &Prometheus, query: &str) -> anyhow::Result<bool> {
    let query = query.replace("$__rate_interval", "5m");
    let answer: Value = serde_json::from_str(&prometheus.get(&format!("/api/v1/query?query={}", escaped(&query)))?)?;
    let result = answer["data"]["result"].as_array().context("an answer without a result")?;
    Ok(!result.is_empty())
}

/// For an address.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped_for_an_address() {
        assert_eq!(escaped("sum by (le) (a_b[5m]) > 0.5"), "sum%20by%20%28le%29%20%28a_b%5B5m%5D%29%20%3E%200.5");
    }
}
