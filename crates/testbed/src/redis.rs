//! Redis or Valkey.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::folder;
use crate::ports::free_port;
use crate::process::Process;
use crate::programs::Program;

const PROGRAM: Program = Program {
    name: "redis-server",
    variable: "LOCKGATE_REDIS_BIN",
    usual: &["/usr/bin"],
    get_it: "run `make servers`, or install the package redis-server",
};
/// Times another program may take the port that was free.
const TRIES: usize = 5;

pub struct Redis {
    program: PathBuf,
    port: u16,
    process: Process,
    folder: TempDir,
}

impl Redis {
    pub fn start() -> anyhow::Result<Self> {
        let program = PROGRAM.find()?;
        let folder = folder::fresh()?;
        let mut tries = 0;
        loop {
            let port = free_port()?;
            match run(&program, port, &folder) {
                Ok(process) => return Ok(Self { program, port, process, folder }),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// It hangs: connections stay, nothing is answered.
    pub fn pause(&self) {
        self.process.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    /// It is gone, and everything it knew.
    pub fn kill(&mut self) {
        self.process.end(Signal::KILL);
    }

    /// Starts again on the same port, empty.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        self.process = run(&self.program, self.port, &self.folder)?;
        Ok(())
    }

    /// Sends one inline command and gives the first bytes of the answer.
    pub fn command(&self, line: &str) -> std::io::Result<String> {
        ask(self.port, line)
    }
}

fn run(program: &std::path::Path, port: u16, folder: &TempDir) -> anyhow::Result<Process> {
    let set = [
        ("--port", port.to_string()),
        ("--bind", "127.0.0.1".to_owned()),
        ("--save", String::new()),
        ("--appendonly", "no".to_owned()),
        ("--maxmemory-policy", "noeviction".to_owned()),
        ("--dir", folder.path().display().to_string()),
    ];
    let args = set.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
    let process = Process::spawn(program, args, None, &folder.path().join("redis.log"))?;
    process.wait_ready("redis-server answers", || ask(port, "PING").is_ok_and(|answer| answer.starts_with("+PONG")))?;
    Ok(process)
}

fn ask(port: u16, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}
