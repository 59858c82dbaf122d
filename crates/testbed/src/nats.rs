//! NATS with JetStream.

use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::folder;
use crate::ports::free_port;
use crate::process::Process;
use crate::programs::Program;

const PROGRAM: Program = Program {
    name: "nats-server",
    variable: "LOCKGATE_NATS_BIN",
    usual: &["/usr/sbin", "/usr/bin"],
    get_it: "run `make servers`, or install the package nats-server",
};
const TRIES: usize = 5;

pub struct Nats {
    program: PathBuf,
    port: u16,
    process: Process,
    folder: TempDir,
}

impl Nats {
    pub fn start() -> anyhow::Result<Self> {
        let program = PROGRAM.find()?;
        let folder = folder::fresh()?;
        let mut tries = 0;
        loop {
            let port = free_port()?;
            match run(&program, port, folder.path()) {
                Ok(process) => return Ok(Self { program, port, process, folder }),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    pub fn pause(&self) {
        self.process.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    pub fn kill(&mut self) {
        self.process.end(Signal::KILL);
    }

    /// Starts again on the same port, with the streams it had.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        self.process = run(&self.program, self.port, self.folder.path())?;
        Ok(())
    }

    /// Starts again on the same port, with nothing.
    pub fn wipe(&mut self) -> anyhow::Result<()> {
        self.kill();
        std::fs::remove_dir_all(streams(self.folder.path()))?;
        self.restart()
    }
}

fn streams(folder: &Path) -> PathBuf {
    folder.join("streams")
}

fn run(program: &Path, port: u16, folder: &Path) -> anyhow::Result<Process> {
    let args = ["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd", &streams(folder).display().to_string()];
    let args = args.into_iter().map(str::to_owned).collect();
    let process = Process::spawn(program, args, None, &folder.join("nats.log"))?;
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
