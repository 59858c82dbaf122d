//! A whole cluster on one machine: its servers, and every process of Lockgate in it.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use lockgate_testbed::Prometheus;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::servers::{Servers, runtime};

const GATEWAYS: usize = 2;
const SCHEDULERS: usize = 3;
const WORKERS: usize = 2;

/// A cluster with everything in it, until Ctrl-C.
pub(crate) fn dev(root: &Path) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let binary = build(root, Build::Release).await?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut cluster = Cluster::new(binary, ProcessLogs::Shown)?;
        cluster.launch(&[]).await?;
        let prometheus = Prometheus::start(&scraping(root, &cluster.metrics()))?;
        show(&cluster, &prometheus.url());
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            ended = cluster.broken() => bail!("{ended}"),
        }
        println!("stopping");
        cluster.stop().await;
        Ok(true)
    })
}

#[derive(Clone, Copy)]
pub(crate) enum Build {
    Development,
    Release,
}

/// The place of the binary, which is up to date.
pub(crate) async fn build(root: &Path, how: Build) -> anyhow::Result<PathBuf> {
    let (more, folder): (&[&str], _) = match how {
        Build::Development => (&[], "debug"),
        Build::Release => (&["--release"], "release"),
    };
    let built = Command::new("cargo").args(["build", "-p", "lockgate"]).args(more).current_dir(root).status().await?;
    if !built.success() {
        bail!("lockgate could not be built");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(folder).join("lockgate"))
}

/// What becomes of what the processes say.
#[derive(Clone, Copy)]
pub(crate) enum ProcessLogs {
    Shown,
    Dropped,
}

impl ProcessLogs {
    fn stream(self) -> Stdio {
        match self {
            Self::Shown => Stdio::inherit(),
            Self::Dropped => Stdio::null(),
        }
    }
}

pub(crate) struct Cluster {
    pub(crate) binary: PathBuf,
    pub(crate) servers: Servers,
    folder: tempfile::TempDir,
    running: Vec<ClusterProcess>,
    logs: ProcessLogs,
}

/// A process of Lockgate.
pub(crate) struct ClusterProcess {
    name: String,
    /// Where it listens; workers do not.
    pub(crate) listens: Option<Addresses>,
    pub(crate) child: Child,
}

#[derive(Clone)]
pub(crate) struct Addresses {
    pub(crate) api: String,
    /// Host and port.
    pub(crate) metrics: String,
}

impl Cluster {
    pub(crate) fn new(binary: PathBuf, logs: ProcessLogs) -> anyhow::Result<Self> {
        Ok(Self { binary, servers: Servers::start()?, folder: tempfile::tempdir()?, running: Vec::new(), logs })
    }

    /// Gateways, schedulers and workers; `more` are arguments of those that serve.
    pub(crate) async fn launch(&mut self, more: &[&str]) -> anyhow::Result<()> {
        for n in 1..=GATEWAYS {
            self.serve("gateway", &format!("gateway-{n}"), "127.0.0.1:0", more).await?;
        }
        let gateways = self.gateways();
        for n in 1..=SCHEDULERS {
            self.serve("scheduler,orchestrator", &format!("scheduler-{n}"), "127.0.0.1:0", more).await?;
        }
        for n in 1..=WORKERS {
            let name = format!("worker-{n}");
            let mut command = Command::new(&self.binary);
            command.args(["worker", "--log", "warn", "--name", &name, "--slots", "32", "--server", &gateways[0]]);
            for gateway in &gateways[1..] {
                command.args(["--or-server", gateway]);
            }
            let child = command.stderr(self.logs.stream()).kill_on_drop(true).spawn()?;
            self.running.push(ClusterProcess { name, listens: None, child });
        }
        Ok(())
    }

    /// Starts one more process and waits until it says where it listens.
    pub(crate) async fn serve(&mut self, role: &str, name: &str, listen: &str, more: &[&str]) -> anyhow::Result<Addresses> {
        let mut command = Command::new(&self.binary);
        command.args(["--json", "serve", "--no-config", "--log", "warn", "--roles", role, "--listen", listen]);
        command.args(["--metrics", "127.0.0.1:0", "--data"]).arg(self.folder.path().join(name)).args(more);
        command.envs(self.servers.environment()).stdout(Stdio::piped()).stderr(self.logs.stream()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().context("a process has no output")?;
        let line = tokio::time::timeout(Duration::from_secs(60), BufReader::new(stdout).lines().next_line()).await??;
        let line = line.with_context(|| format!("{name} did not start"))?;
        let banner: serde_json::Value = serde_json::from_str(&line)?;
        let said = |field: &str| banner[field].as_str().map(str::to_owned).with_context(|| format!("{name}: no {field}"));
        let metrics = said("metrics")?.trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
        let listens = Addresses { api: said("api")?, metrics };
        self.running.push(ClusterProcess { name: name.to_owned(), listens: Some(listens.clone()), child });
        Ok(listens)
    }

    /// The addresses of the gateways.
    pub(crate) fn gateways(&self) -> Vec<String> {
        let gateways = self.running.iter().filter(|process| process.name.starts_with("gateway"));
        gateways.filter_map(|process| Some(process.listens.as_ref()?.api.clone())).collect()
    }

    /// Where every process shows its metrics.
    pub(crate) fn metrics(&self) -> Vec<String> {
        self.running.iter().filter_map(|process| Some(process.listens.as_ref()?.metrics.clone())).collect()
    }

    /// The names that begin so.
    pub(crate) fn names(&self, start: &str) -> Vec<String> {
        self.running.iter().map(|process| process.name.clone()).filter(|name| name.starts_with(start)).collect()
    }

    /// Takes a process out of the cluster, to be ended.
    pub(crate) fn take(&mut self, name: &str) -> Option<ClusterProcess> {
        let place = self.running.iter().position(|process| process.name == name)?;
        Some(self.running.remove(place))
    }

    /// Waits until a process ends that was not stopped.
    async fn broken(&mut self) -> String {
        let ends = self.running.iter_mut().map(|process| {
            let name = process.name.clone();
            Box::pin(async move { (name, process.child.wait().await) })
        });
        let ((name, status), _, _) = futures::future::select_all(ends).await;
        format!("{name} ended: {}", status.map_or_else(|error| error.to_string(), |status: ExitStatus| status.to_string()))
    }

    /// Workers first, while there are servers to report to.
    pub(crate) async fn stop(&mut self) {
        while let Some(mut process) = self.running.pop() {
            if let Some(pid) = process.child.id() {
                // A terminal has told it already; asking twice would cut it short.
                let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status().await;
            }
            let _ = tokio::time::timeout(Duration::from_secs(10), process.child.wait()).await;
        }
    }
}

/// As in `deploy/prometheus.yaml`, with the addresses of these processes.
fn scraping(root: &Path, targets: &[String]) -> String {
    let rules = root.join("deploy/prometheus").display().to_string();
    let targets: String = targets.iter().map(|target| format!("          - {target}\n")).collect();
    format!(
        "global: {{scrape_interval: 5s, evaluation_interval: 15s}}\nrule_files: [{rules}/recording.yaml, {rules}/alerts.yaml]\n\
         scrape_configs:\n  - job_name: lockgate\n    static_configs:\n      - targets:\n{targets}"
    )
}

fn show(cluster: &Cluster, prometheus: &str) {
    println!("Lockgate cluster: {GATEWAYS} gateways, {SCHEDULERS} schedulers, {WORKERS} workers");
    let row = |name: &str, value: &str| println!("  {name:<12} {value}");
    let gateways = cluster.gateways();
    for gateway in &gateways {
        row("Gateway", gateway);
    }
    for (name, url) in cluster.servers.environment() {
        row(name, &url);
    }
    for metrics in cluster.metrics() {
        row("Metrics", &format!("http://{metrics}/metrics"));
    }
    row("Prometheus", prometheus);
    row("Folder", &cluster.folder.path().display().to_string());
    println!("\nTry it, in another terminal:");
    println!("  export LOCKGATE_SERVER={}", gateways[0]);
    println!("  {} submit job.echo --payload '{{\"hello\":\"world\"}}' --wait", cluster.binary.display());
    println!("  kill -9 any of the processes, or flush Redis, and watch nothing get lost");
    println!("\nCtrl-C ends everything and forgets it.");
}
