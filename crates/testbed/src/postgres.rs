//! PostgreSQL.

use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use crate::folder;
use crate::process::{ChildProcess, Environment, User};
use crate::programs::Program;
use crate::server::TestServer;
use crate::template;

const PROGRAM: Program = Program {
    name: "initdb",
    variable: "LOCKGATE_POSTGRES_BIN",
    usual: &["/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin"],
    get_it: "run `make servers`, or install the package postgresql-15",
};

/// Whether a commit survives the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As in production: measured by benches.
    Synced,
    /// Survives the death of the server, not of the machine: all that a test can tell.
    Unsynced,
}

/// Keeps what was committed over a restart.
#[derive(Debug)]
pub struct Postgres {
    server: TestServer,
    _folder: TempDir,
}

impl Postgres {
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(Durability::Unsynced, &[])
    }

    /// `settings` are more of `name=value` for the server.
    pub fn start_with(durability: Durability, settings: &[&str]) -> anyhow::Result<Self> {
        Self::start_in(Environment::new(), durability, settings)
    }

    /// `environment` is what the server's processes have besides ours.
    pub fn start_in(
        environment: Vec<(String, OsString)>,
        durability: Durability,
        settings: &[&str],
    ) -> anyhow::Result<Self> {
        // A link in PATH has the other programs beside what it points to.
        let initdb = PROGRAM.find()?.canonicalize()?;
        let bin = initdb.parent().context("initdb is in no folder")?.to_owned();
        let folder = folder::fresh()?;
        let user = user()?;
        if let Some(User { uid, gid }) = user {
            chown(folder.path(), Some(uid), Some(gid))?;
        }
        template::fresh(&bin, &data(folder.path()), user)?;
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let path = folder.path().to_owned();
        // An immediate shutdown: as a crash, but its children end with it.
        let server = TestServer::start(Signal::QUIT, move |port| {
            let args = arguments(port, durability, &settings, &path);
            run(&bin, &environment, args, &path)
        })?;
        Ok(Self { server, _folder: folder })
    }

    pub fn url(&self) -> String {
        format!("postgres://lockgate@127.0.0.1:{}/postgres", self.port())
    }
}

impl Deref for Postgres {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl DerefMut for Postgres {
    fn deref_mut(&mut self) -> &mut TestServer {
        &mut self.server
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn arguments(port: u16, durability: Durability, settings: &[String], folder: &Path) -> Vec<String> {
    let data = data(folder);
    let sync = if durability == Durability::Synced { "on" } else { "off" };
    let mut args = vec!["-D".to_owned(), data.display().to_string(), "-p".to_owned(), port.to_string()];
    let own = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("unix_socket_directories={}", folder.display()),
        format!("fsync={sync}"),
        format!("full_page_writes={sync}"),
        "max_connections=200".to_owned(),
    ];
    for setting in own.iter().chain(settings) {
        args.extend(["-c".to_owned(), setting.clone()]);
    }
    args
}

fn run(bin: &Path, environment: &Environment, args: Vec<String>, folder: &Path) -> anyhow::Result<ChildProcess> {
    let process = ChildProcess::spawn_in(environment, &bin.join("postgres"), args, user()?, &folder.join("postgres.log"))?;
    let pid_file = data(folder).join("postmaster.pid");
    process.wait_ready("postgres accepts connections", || is_ready(&pid_file, process.pid()))?;
    Ok(process)
}

/// The postmaster writes its id first and its state last.
fn is_ready(pid_file: &Path, pid: i32) -> bool {
    let text = std::fs::read_to_string(pid_file).unwrap_or_default();
    text.lines().next().is_some_and(|first| first == pid.to_string())
        && text.lines().nth(7).is_some_and(|state| state.trim() == "ready")
}

/// Whose files the server reads, if not ours.
#[cfg(feature = "tls")]
pub(crate) fn owner() -> anyhow::Result<Option<(u32, u32)>> {
    Ok(user()?.map(|User { uid, gid }| (uid, gid)))
}

/// PostgreSQL refuses to run as root: then it runs as the user whose home its package made, or as nobody.
fn user() -> anyhow::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let own = std::fs::metadata("/var/lib/postgresql").map(|folder| User { uid: folder.uid(), gid: folder.gid() });
    Ok(Some(own.ok().filter(|user| user.uid != 0).unwrap_or(User { uid: 65_534, gid: 65_534 })))
}
