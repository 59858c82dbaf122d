//! Real servers around a command, and a whole cluster on one machine.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use lockgate_testbed::{Durability, Nats, Postgres, Redis, SHARED_POSTGRES};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// PostgreSQL, Redis and NATS on free ports, gone with this value.
struct Servers {
    postgres: Postgres,
    redis: Redis,
    nats: Nats,
}

impl Servers {
    fn start() -> anyhow::Result<Self> {
        let postgres = Postgres::start_with(Durability::Synced, &["shared_buffers=256MB", "max_wal_size=4GB"])?;
        Ok(Self { postgres, redis: Redis::start()?, nats: Nats::start()? })
    }

    fn environment(&self) -> [(&'static str, String); 3] {
        [("DATABASE_URL", self.postgres.url()), ("REDIS_URL", self.redis.url()), ("NATS_URL", self.nats.url())]
    }
}

/// Runs a command with the addresses of fresh servers in its environment. Whether it succeeded.
pub(crate) fn around(command: &[&str]) -> anyhow::Result<bool> {
    let servers = Servers::start()?;
    with(command, &servers.environment())
}

/// Runs a command whose tests find one PostgreSQL for all of them, as quick as a server can be that may forget.
pub(crate) fn shared(command: &[&str]) -> anyhow::Result<bool> {
    let postgres = Postgres::start()?;
    with(command, &[(SHARED_POSTGRES, postgres.url())])
}

fn with(command: &[&str], environment: &[(&str, String)]) -> anyhow::Result<bool> {
    let Some((program, arguments)) = command.split_first() else { bail!("name a command to run") };
    let environment = environment.iter().map(|(name, value)| (name, value));
    runtime()?.block_on(async {
        let mut child = Command::new(program).args(arguments).envs(environment).kill_on_drop(true).spawn()?;
        // A terminal tells the command too; it ends by itself, and the servers after it.
        let mut interrupt = signal(SignalKind::interrupt())?;
        loop {
            tokio::select! {
                ended = child.wait() => return Ok(ended?.success()),
                _ = interrupt.recv() => {}
            }
        }
    })
}

const GATEWAYS: usize = 2;
const SCHEDULERS: usize = 3;
const WORKERS: usize = 2;

/// A cluster with everything in it, until Ctrl-C.
pub(crate) fn dev(root: &Path) -> anyhow::Result<bool> {
    runtime()?.block_on(async {
        let built = Command::new("cargo").args(["build", "--release", "-p", "lockgate"]).current_dir(root).status().await?;
        if !built.success() {
            bail!("lockgate could not be built");
        }
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let servers = Servers::start()?;
        let folder = tempfile::tempdir()?;
        let mut cluster = Cluster { binary: binary(root), servers, folder, running: Vec::new() };
        let gateways = cluster.launch().await?;
        show(&cluster, &gateways);
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

struct Cluster {
    binary: PathBuf,
    servers: Servers,
    folder: tempfile::TempDir,
    running: Vec<(String, Child)>,
}

impl Cluster {
    /// The addresses of the gateways.
    async fn launch(&mut self) -> anyhow::Result<Vec<String>> {
        let mut gateways = Vec::new();
        for n in 1..=GATEWAYS {
            gateways.push(self.process("gateway", n).await?);
        }
        for n in 1..=SCHEDULERS {
            self.process("scheduler,orchestrator", n).await?;
        }
        for n in 1..=WORKERS {
            let name = format!("worker-{n}");
            let mut command = Command::new(&self.binary);
            command.args(["worker", "--log", "warn", "--name", &name, "--slots", "32", "--server", &gateways[0]]);
            for gateway in &gateways[1..] {
                command.args(["--or-server", gateway]);
            }
            self.running.push((name, command.kill_on_drop(true).spawn()?));
        }
        Ok(gateways)
    }

    async fn process(&mut self, role: &str, n: usize) -> anyhow::Result<String> {
        let name = format!("{role}-{n}");
        let mut command = Command::new(&self.binary);
        command.args(["--json", "serve", "--log", "warn", "--roles", role]);
        command.args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data"]).arg(self.folder.path().join(&name));
        command.envs(self.servers.environment()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().context("a process has no output")?;
        let line = tokio::time::timeout(Duration::from_secs(60), BufReader::new(stdout).lines().next_line()).await??;
        let line = line.with_context(|| format!("{name} did not start"))?;
        let banner: serde_json::Value = serde_json::from_str(&line)?;
        self.running.push((name, child));
        Ok(banner["api"].as_str().context("no address")?.to_owned())
    }

    /// Waits until a process ends although nobody stopped it.
    async fn broken(&mut self) -> String {
        let ends = self.running.iter_mut().map(|(name, child)| {
            let name = name.clone();
            Box::pin(async move { (name, child.wait().await) })
        });
        let ((name, status), _, _) = futures::future::select_all(ends).await;
        format!("{name} ended: {}", status.map_or_else(|error| error.to_string(), |status: ExitStatus| status.to_string()))
    }

    /// Workers first, while there is somebody to report to.
    async fn stop(&mut self) {
        while let Some((_, mut child)) = self.running.pop() {
            if let Some(pid) = child.id() {
                // A terminal has told it already; asking twice would cut it short.
                let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status().await;
            }
            let _ = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
        }
    }
}

fn show(cluster: &Cluster, gateways: &[String]) {
    let servers = &cluster.servers;
    println!("Lockgate cluster: {GATEWAYS} gateways, {SCHEDULERS} schedulers, {WORKERS} workers");
    let row = |name: &str, value: &str| println!("  {name:<11} {value}");
    for gateway in gateways {
        row("Gateway", gateway);
    }
    for (name, url) in servers.environment() {
        row(name, &url);
    }
    row("Folder", &cluster.folder.path().display().to_string());
    println!("\nTry it, in another terminal:");
    println!("  export LOCKGATE_SERVER={}", gateways[0]);
    println!("  {} submit job.echo --payload '{{\"hello\":\"world\"}}' --wait", cluster.binary.display());
    println!("  kill -9 any of the processes, or flush Redis, and watch nothing get lost");
    println!("\nCtrl-C ends everything and forgets it.");
}

fn binary(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("release/lockgate")
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
