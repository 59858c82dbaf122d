//! Redis or Valkey.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::folder;
use crate::process::ChildProcess;
use crate::programs::Program;
use crate::server::TestServer;

const PROGRAM: Program = Program {
    name: "redis-server",
    variable: "LOCKGATE_REDIS_BIN",
    usual: &["/usr/bin"],
    get_it: "run `make servers`, or install the package redis-server",
};

/// Keeps nothing: one that starts again is empty.
#[derive(Debug)]
pub struct Redis {
    server: TestServer,
    _folder: TempDir,
}

impl Redis {
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(Vec::new())
    }

    /// With the files of TLS, if any: then it speaks nothing else.
    pub(crate) fn start_with(tls: Vec<(&'static str, String)>) -> anyhow::Result<Self> {
        let (program, folder) = (PROGRAM.find()?, folder::fresh()?);
        let path = folder.path().to_owned();
        let server = TestServer::start(Signal::KILL, move |port| run(&program, port, &tls, &path))?;
        Ok(Self { server, _folder: folder })
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port())
    }

    /// Sends one inline command and gives the first bytes of the answer.
    pub fn command(&self, line: &str) -> std::io::Result<String> {
        ask(self.port(), line)
    }
}

impl Deref for Redis {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl DerefMut for Redis {
    fn deref_mut(&mut self) -> &mut TestServer {
        &mut self.server
    }
}

fn run(program: &Path, port: u16, tls: &[(&'static str, String)], folder: &Path) -> anyhow::Result<ChildProcess> {
    let plain = if tls.is_empty() { port } else { 0 };
    let safe = [("--tls-port", port.to_string())].into_iter().filter(|_| plain == 0).chain(tls.iter().cloned());
    let set = [
        ("--port", plain.to_string()),
        ("--bind", "127.0.0.1".to_owned()),
        ("--save", String::new()),
        ("--appendonly", "no".to_owned()),
        ("--maxmemory-policy", "noeviction".to_owned()),
        ("--dir", folder.display().to_string()),
    ];
    let args = set.into_iter().chain(safe).flat_map(|(name, value)| [name.to_owned(), value]).collect();
    let process = ChildProcess::spawn(program, args, None, &folder.join("redis.log"))?;
    process.wait_ready("redis-server answers", || match tls {
        [] => ask(port, "PING").is_ok_and(|answer| answer.starts_with("+PONG")),
        _ => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
    })?;
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
