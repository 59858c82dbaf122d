//! NATS with JetStream.

use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::folder;
use crate::process::ChildProcess;
use crate::programs::Program;
use crate::server::TestServer;

const PROGRAM: Program = Program {
    name: "nats-server",
    variable: "LOCKGATE_NATS_BIN",
    usual: &["/usr/sbin", "/usr/bin"],
    get_it: "run `make servers`, or install the package nats-server",
};

/// Keeps its streams over a restart.
#[derive(Debug)]
pub struct Nats {
    server: TestServer,
    folder: TempDir,
}

impl Nats {
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(Vec::new())
    }

    /// `more` are further arguments.
    pub(crate) fn start_with(more: Vec<String>) -> anyhow::Result<Self> {
        let (program, folder) = (PROGRAM.find()?, folder::fresh()?);
        let path = folder.path().to_owned();
        let server = TestServer::start(Signal::KILL, move |port| run(&program, port, &more, &path))?;
        Ok(Self { server, folder })
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port())
    }

    /// Starts again on the same port, with nothing.
    pub fn wipe(&mut self) -> anyhow::Result<()> {
        self.kill();
        std::fs::remove_dir_all(streams(self.folder.path()))?;
        self.restart()
    }
}

impl Deref for Nats {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl DerefMut for Nats {
    fn deref_mut(&mut self) -> &mut TestServer {
        &mut self.server
    }
}

fn streams(folder: &Path) -> PathBuf {
    folder.join("streams")
}

fn run(program: &Path, port: u16, more: &[String], folder: &Path) -> anyhow::Result<ChildProcess> {
    let args = ["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd", &streams(folder).display().to_string()];
    let args = args.into_iter().map(str::to_owned).chain(more.iter().cloned()).collect();
    let process = ChildProcess::spawn(program, args, None, &folder.join("nats.log"))?;
    process.wait_ready("nats-server answers", || greets(port).unwrap_or(false))?;
    Ok(process)
}

/// A NATS server speaks first.
fn greets(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting)?;
    Ok(greeting == *b"INFO")
}
