//! A server of its own for a test.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

/// Longer than a server takes to start on a busy machine.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// Names the binary, where it is not on the PATH.
const BINARY_VARIABLE: &str = "LOCKGATE_BIN";

/// A Lockgate server on a free loopback port, with its data in a temporary folder. It ends when this is dropped.
///
/// The binary `lockgate` is the file that the variable `LOCKGATE_BIN` names, or else the first on the PATH.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use lockgate_client::{Client, NewJob, TestServer};
///
/// let server = TestServer::start()?;
/// let client = Client::connect(server.url()).open()?;
/// let echo: u32 = client.submit(NewJob::new("job.echo").payload(&7)).await?.result().await?;
/// assert_eq!(echo, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestServer {
    process: Child,
    url: String,
    /// Kept open: a server that cannot write to its standard output may complain.
    _stdout: BufReader<ChildStdout>,
    folder: TempDir,
}

/// What a [`TestServer`] is started with.
#[derive(Clone, Debug, Default)]
#[must_use = "a server is started by `start`"]
pub struct TestServerBuilder {
    binary: Option<PathBuf>,
    arguments: Vec<String>,
    policy: Option<String>,
}

/// Why no server was started.
#[derive(Debug, thiserror::Error)]
pub enum TestServerError {
    #[error("there is no program {}; install the package `lockgate-server`, or name the binary with {BINARY_VARIABLE}", .0.display())]
    NoBinary(PathBuf),
    #[error("{} could not be started: {error}", path.display())]
    Start { path: PathBuf, error: io::Error },
    #[error("the server ended instead of starting; it said: {0}")]
    Ended(String),
    #[error("the server did not say where it listens within {STARTS_WITHIN:?}")]
    Silent,
    #[error("a temporary folder for the server: {0}")]
    Folder(io::Error),
}

/// The first line that `lockgate --json serve` prints.
#[derive(Deserialize)]
struct Announcement {
    api: String,
}

impl TestServer {
    /// Starts a server with the defaults: no policy, no credentials, and the built-in job handlers.
    pub fn start() -> Result<Self, TestServerError> {
        Self::builder().start()
    }

    pub fn builder() -> TestServerBuilder {
        TestServerBuilder::default()
    }

    /// Where clients and workers reach it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it keeps its data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl TestServerBuilder {
    /// The program to start, whatever the environment says.
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// One more argument for `lockgate serve`.
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The policy in force, as YAML.
    pub fn policy(mut self, yaml: impl Into<String>) -> Self {
        self.policy = Some(yaml.into());
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Result<TestServer, TestServerError> {
        let folder = tempfile::Builder::new().prefix("lockgate-test-").tempdir().map_err(TestServerError::Folder)?;
        let binary = self.binary.unwrap_or_else(usual_binary);
        let mut command = Command::new(&binary);
        command.args(["--json", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log", "warn", "--data"]);
        command.arg(folder.path().join("data")).args(&self.arguments);
        if let Some(policy) = &self.policy {
            let path = folder.path().join("policy.yaml");
            fs::write(&path, policy).map_err(TestServerError::Folder)?;
            command.arg("--policy").arg(path);
        }
        let log = fs::File::create(folder.path().join("log")).map_err(TestServerError::Folder)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TestServerError::NoBinary(binary),
            _ => TestServerError::Start { path: binary, error },
        })?;
        match announced(&mut process, folder.path()) {
            Ok((url, stdout)) => Ok(TestServer { process, url, _stdout: stdout, folder }),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error)
            }
        }
    }
}

fn usual_binary() -> PathBuf {
    std::env::var_os(BINARY_VARIABLE).map_or_else(|| PathBuf::from("lockgate"), PathBuf::from)
}

/// Reads the address from the first line. A thread reads it, so that a server that says nothing is noticed.
fn announced(process: &mut Child, folder: &Path) -> Result<(String, BufReader<ChildStdout>), TestServerError> {
    let Some(stdout) = process.stdout.take() else { return Err(TestServerError::Silent) };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        // The receiver is gone if the server was too slow.
        let _ = tell.send(read.map(|_| (line, stdout)));
    });
    let (line, stdout) = match told.recv_timeout(STARTS_WITHIN) {
        Ok(Ok(said)) => said,
        Ok(Err(error)) => return Err(TestServerError::Ended(error.to_string())),
        Err(_) => return Err(TestServerError::Silent),
    };
    match serde_json::from_str::<Announcement>(&line) {
        Ok(Announcement { api }) => Ok((api, stdout)),
        Err(_) => {
            let mut log = line;
            // The log is for the error text only; without it the text is shorter.
            let _ = fs::File::open(folder.join("log")).and_then(|mut file| file.read_to_string(&mut log));
            Err(TestServerError::Ended(log.trim().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_is_missing_is_named_with_what_to_do() {
        let error = TestServer::builder().binary("no-such-lockgate").start().unwrap_err().to_string();
        assert!(error.contains("no-such-lockgate") && error.contains(BINARY_VARIABLE), "{error}");
    }

    #[test]
    fn a_program_that_is_no_server_is_told_of_with_its_words() {
        let error = TestServer::builder().binary("echo").start().unwrap_err().to_string();
        assert!(error.contains("it said: --json serve"), "{error}");
    }
}
