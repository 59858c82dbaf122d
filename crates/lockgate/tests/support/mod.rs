//! A server of its own for each test, and the command line against it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

/// Longer than anything takes on a busy machine, shorter than a test may take.
const PATIENCE: Duration = Duration::from_secs(45);

pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
    pub(crate) banner: Value,
    _data: TempDir,
}

impl Server {
    /// Starts a server on free ports and waits until it says where it listens.
    pub(crate) fn start() -> Self {
        Self::start_with(|command| command)
    }

    /// Like `start`, with what `more` adds to the command.
    pub(crate) fn start_with(more: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let mut command = lockgate();
        command
            .args(["serve", "--json", "--log", "warn", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .stdout(Stdio::piped());
        more(&mut command);
        let mut process = command.spawn().expect("the server starts");
        let mut banner = String::new();
        let stdout = process.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut banner).expect("a banner");
        let banner: Value = serde_json::from_str(&banner).expect("the banner is JSON");
        Self { process, url: banner["api"].as_str().expect("an address").to_owned(), banner, _data: data }
    }

    /// Runs one command against this server.
    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        Answer(lockgate().args(["--server", &self.url]).args(words).output().expect("runs"))
    }

    /// Repeats a command until it prints what is wanted: the built-in worker attaches a moment after the server is up.
    pub(crate) fn wait_for_output(&self, words: &[&str], wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.run(words);
            if answer.stdout().contains(wanted) {
                return;
            }
            assert!(Instant::now() < deadline, "never said {wanted}: {} {}", answer.stdout(), answer.stderr());
        }
    }

    /// Starts a command that goes on by itself. The caller ends it.
    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        lockgate().args(["--server", &self.url]).args(words).spawn().expect("starts")
    }

    /// Asks over REST.
    pub(crate) fn get(&self, path: &str) -> Value {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("connects");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
    }
}

/// A folder with files in it.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }
}

/// What a command printed and how it ended.
pub(crate) struct Answer(Output);

impl Answer {
    pub(crate) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// The printed JSON of a command that must have succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code(), Some(0), "{}", self.stderr());
        serde_json::from_slice(&self.0.stdout).expect("JSON")
    }
}

/// Runs one command that needs no server.
pub(crate) fn offline(words: &[&str]) -> Answer {
    offline_with(&[], words)
}

/// Like `offline`, with these variables.
pub(crate) fn offline_with(variables: &[(&str, &str)], words: &[&str]) -> Answer {
    Answer(lockgate().envs(variables.iter().copied()).args(words).output().expect("runs"))
}

/// The binary, free of what the environment of the tests may say.
pub(crate) fn lockgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
    for name in [
        "LOCKGATE_SERVER",
        "LOCKGATE_TENANT",
        "LOCKGATE_ACTOR",
        "LOCKGATE_ACTOR_TYPE",
        "LOCKGATE_CALL_TIMEOUT",
        "LOCKGATE_DATA",
        "LOCKGATE_LOG",
        "POOL_CONFIG_PATH",
        "TIMEOUT_CONFIG_PATH",
    ] {
        command.env_remove(name);
    }
    command
}
