//! How a story speaks with its cluster: by the command line, and behind the back of the processes.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::story::ObservedStory;
use crate::cluster::Cluster;

impl ObservedStory<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env("LOCKGATE_SERVER", &self.gateway).stdin(Stdio::null()).stdout(Stdio::null());
        command.kill_on_drop(true);
        command
    }

    pub(super) fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        Ok(self.command(arguments).stderr(Stdio::null()).spawn()?)
    }

    /// Must succeed.
    pub(super) async fn say(&self, arguments: &[&str]) -> anyhow::Result<()> {
        self.ask(arguments).await.map(drop)
    }

    /// Must succeed. What it answers.
    pub(super) async fn ask(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let said = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output().await?;
        match said.status.success() {
            true => Ok(String::from_utf8(said.stdout)?),
            false => bail!("lockgate {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&said.stderr)),
        }
    }

    /// May end either way.
    pub(super) async fn try_to(&self, arguments: &[&str]) -> anyhow::Result<()> {
        self.command(arguments).stderr(Stdio::null()).status().await?;
        Ok(())
    }

    /// A server that was killed puts its data in order before it answers.
    pub(super) async fn wait_for_success(&self, arguments: &[&str]) -> anyhow::Result<()> {
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

    pub(super) async fn wait_in_force(&self, text: &str) -> anyhow::Result<()> {
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
}

pub(super) async fn kill(cluster: &mut Cluster, name: &str) -> anyhow::Result<()> {
    let mut process = cluster.take(name).with_context(|| format!("there is no {name}"))?;
    Ok(process.child.kill().await?)
}

/// A session that keeps others from writing to a table until it is killed; they can still read it.
pub(super) async fn hold(cluster: &Cluster, table: &str) -> anyhow::Result<Child> {
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

/// Statements, behind the back of every process.
pub(super) async fn psql(cluster: &Cluster, sql: &str) -> anyhow::Result<()> {
    let mut psql = Command::new("psql");
    psql.args(["--quiet", "--set", "ON_ERROR_STOP=1", "--command", sql, &cluster.servers.postgres.url()]);
    let said = psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output().await.context("psql")?;
    match said.status.success() {
        true => Ok(()),
        false => bail!("psql failed: {}", String::from_utf8_lossy(&said.stderr)),
    }
}
