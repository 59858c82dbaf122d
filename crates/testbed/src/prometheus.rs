//! Prometheus.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::folder;
use crate::process::ChildProcess;
use crate::programs::Program;
use crate::server::TestServer;

const PROGRAM: Program = Program {
    name: "prometheus",
    variable: "LOCKGATE_PROMETHEUS_BIN",
    usual: &["/usr/bin"],
    get_it: "run `make servers`, or install the package prometheus",
};

#[derive(Debug)]
pub struct Prometheus {
    server: TestServer,
    _folder: TempDir,
}

impl Prometheus {
    /// With a configuration in its own language.
    pub fn start(config: &str) -> anyhow::Result<Self> {
        let (program, folder) = (PROGRAM.find()?, folder::fresh()?);
        std::fs::write(folder.path().join("prometheus.yaml"), config)?;
        let path = folder.path().to_owned();
        let server = TestServer::start(Signal::KILL, move |port| run(&program, port, &path))?;
        Ok(Self { server, _folder: folder })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// The body of an answer to a request for `path`.
    pub fn get(&self, path: &str) -> anyhow::Result<String> {
        http_get(&format!("127.0.0.1:{}", self.port()), path)
    }
}

impl Deref for Prometheus {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl DerefMut for Prometheus {
    fn deref_mut(&mut self) -> &mut TestServer {
        &mut self.server
    }
}

fn run(program: &Path, port: u16, folder: &Path) -> anyhow::Result<ChildProcess> {
    let file = |name: &str| folder.join(name).display().to_string();
    let args = vec![
        format!("--config.file={}", file("prometheus.yaml")),
        format!("--storage.tsdb.path={}", file("data")),
        format!("--web.listen-address=127.0.0.1:{port}"),
        "--log.level=warn".to_owned(),
    ];
    let process = ChildProcess::spawn(program, args, None, &folder.join("prometheus.log"))?;
    process.wait_ready("prometheus answers", || http_get(&format!("127.0.0.1:{port}"), "/-/ready").is_ok())?;
    Ok(process)
}

/// The body that a server answers with. As HTTP 1.0, so that the answer ends with the connection and comes in one piece.
pub fn http_get(address: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    if head.split(' ').nth(1) != Some("200") {
        bail!("{path}: {body}");
    }
    Ok(body.to_owned())
}
