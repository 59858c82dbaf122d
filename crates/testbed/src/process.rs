//! One running server.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_until;

/// How long any server may take to start or to end, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Variables that a server is started with.
pub(crate) type Environment = Vec<(String, OsString)>;

/// A child process and the thread that waits for it. The thread also stands for us: the child is told to end when the
/// thread that started it is gone, however that came.
pub(crate) struct ChildProcess {
    pid: Pid,
    keeper: Option<JoinHandle<()>>,
    /// Its output.
    log: PathBuf,
}

impl ChildProcess {
    /// Runs a program with its output in `log`.
    pub(crate) fn spawn(program: &Path, args: Vec<String>, user: Option<User>, log: &Path) -> anyhow::Result<Self> {
        Self::spawn_in(&Environment::new(), program, args, user, log)
    }

    pub(crate) fn spawn_in(
        environment: &Environment,
        program: &Path,
        args: Vec<String>,
        user: Option<User>,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=KILL");
        if let Some(User { uid, gid }) = user {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]);
        }
        command.arg("--");
        if !environment.is_empty() {
            // A library that is loaded first would make its files as the user that setpriv itself runs as.
            command.arg("env").args(environment.iter().map(assignment));
        }
        command.arg(program).args(args).current_dir("/");
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let (started, starting) = mpsc::channel();
        let keeper = std::thread::Builder::new().name("server-keeper".to_owned()).spawn(move || {
            let child = command.spawn();
            let keep = |mut child: Child| {
                let _ = child.wait();
            };
            match child {
                Ok(child) => {
                    let _ = started.send(Ok(child.id()));
                    keep(child);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        let pid = starting.recv()?.context("setpriv (of util-linux) could not be run")?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a process has no id")?;
        Ok(Self { pid, keeper: Some(keeper), log: log.to_owned() })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| !keeper.is_finished())
    }

    /// Waits until the server answers. It may end instead: then its last words are the error.
    pub(crate) fn wait_ready(&self, what: &str, mut ready: impl FnMut() -> bool) -> anyhow::Result<()> {
        let mut is_ready = false;
        wait_until(what, PATIENCE, || {
            is_ready = ready();
            is_ready || !self.is_running()
        })?;
        if !is_ready {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(8).collect();
            bail!("{what}: it ended instead, saying {:?}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_running() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Also to the processes it started: PostgreSQL has one for each connection.
    pub(crate) fn signal_all(&self, signal: Signal) {
        self.signal(signal);
        let pid = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()).filter_map(Pid::from_raw) {
            // One that has just ended needs no signal.
            let _ = kill_process(child, signal);
        }
    }

    /// Asks it to end, insists after a while, and waits until it is gone.
    pub(crate) fn end(&mut self, politely: Signal) {
        self.signal(politely);
        // One that was paused hears nothing.
        self.signal_all(Signal::CONT);
        if wait_until("a server ends", PATIENCE, || !self.is_running()).is_err() {
            self.signal(Signal::KILL);
        }
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end(Signal::KILL);
    }
}

fn assignment((name, value): &(String, OsString)) -> OsString {
    let mut text = OsString::from(format!("{name}="));
    text.push(value);
    text
}

/// Whom a server runs as.
#[derive(Clone, Copy)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}
