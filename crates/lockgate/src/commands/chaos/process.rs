//! Processes of the installation: servers, which may restart at another address, and workers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lockgate_sqlite::backup::DATABASES;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::super::bench::server::{launch, this_binary};
use super::ways::Ways;
use crate::error::CliError;
use crate::servers::ServerAddresses;

/// Jobs that a worker runs at once.
const SLOTS: &str = "16";
/// After this time a process that was told to end is killed.
const END_WITHIN: Duration = Duration::from_secs(20);

/// A server.
pub(super) struct ServerProcess {
    pub(super) child: Child,
    pub(super) api: String,
    folder: PathBuf,
    arguments: Vec<String>,
    /// The wires to the servers that it shares with others, if it does.
    pub(super) ways: Option<Ways>,
}

impl ServerProcess {
    pub(super) async fn start(
        folder: PathBuf,
        mut arguments: Vec<String>,
        servers: Option<&ServerAddresses>,
    ) -> Result<Self, CliError> {
        std::fs::create_dir_all(&folder)?;
        let mut ways = None;
        if let Some(servers) = servers {
            let (own, words) = Ways::to(servers).await?;
            arguments.extend(words);
            ways = Some(own);
        }
        let (child, api) = Self::run(&folder, &arguments).await?;
        Ok(Self { child, api, folder, arguments, ways })
    }

    pub(super) async fn start_again(&mut self) -> Result<(), CliError> {
        self.start_again_with(&[]).await
    }

    /// With more arguments, this once.
    async fn start_again_with(&mut self, more: &[String]) -> Result<(), CliError> {
        (self.child, self.api) = Self::run(&self.folder, &[self.arguments.as_slice(), more].concat()).await?;
        Ok(())
    }

    /// Stops the process cleanly and starts a new one whose database may grow by `bytes`; None: without a limit.
    pub(super) async fn start_anew_with_room_for(&mut self, bytes: Option<u64>) -> Result<(), CliError> {
        end(&mut self.child).await?;
        let mut more = Vec::new();
        if let Some(bytes) = bytes {
            // After a clean end nothing of it is in the log any more.
            let has = std::fs::metadata(self.folder.join(DATABASES[0]))?.len();
            more = vec!["--disk-limit".to_owned(), (has + bytes).to_string()];
        }
        self.start_again_with(&more).await
    }

    async fn run(folder: &Path, arguments: &[String]) -> Result<(Child, String), CliError> {
        // At its file size limit a process gets SIGXFSZ, which would end it unless it is ignored.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe()?);
        command.stdin(Stdio::null()).stderr(log(folder.join("log"))?);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (child, started) = launch(command, folder, &arguments).await?;
        Ok((child, started.api))
    }
}

/// A worker that begins at the first of these servers and knows the others.
pub(super) fn worker(folder: &Path, name: &str, servers: &[String], more: &[&str]) -> Result<Child, CliError> {
    let mut command = this_binary()?;
    command.args(["worker", "--log", "error", "--name", name, "--slots", SLOTS, "--journal"]);
    command.arg(folder.join(format!("{name}.journal"))).args(more);
    for (at, server) in servers.iter().enumerate() {
        command.args([if at == 0 { "--server" } else { "--or-server" }, server]);
    }
    command.stderr(log(folder.join(format!("{name}.log")))?);
    Ok(command.kill_on_drop(true).spawn()?)
}

/// Sends SIGTERM, and then kills a process that does not end. A process that has ended already is fine.
pub(super) async fn end(child: &mut Child) -> Result<(), CliError> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    signal(child, Signal::TERM)?;
    match timeout(END_WITHIN, child.wait()).await {
        Ok(ended) => ended.map(drop).map_err(CliError::from),
        Err(_) => Ok(child.kill().await?),
    }
}

pub(super) fn signal(child: &Child, signal: Signal) -> Result<(), CliError> {
    let sent = kill_process(pid(child)?, signal);
    sent.map_err(|error| CliError::Server(format!("no signal could be sent: {error}")))
}

pub(super) fn pid(child: &Child) -> Result<Pid, CliError> {
    let raw = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    raw.ok_or_else(|| CliError::Server("a process of the installation has ended by itself".to_owned()))
}

/// The logs of processes under faults go to a file and not to the terminal.
fn log(path: PathBuf) -> Result<Stdio, CliError> {
    Ok(File::options().create(true).append(true).open(path)?.into())
}
