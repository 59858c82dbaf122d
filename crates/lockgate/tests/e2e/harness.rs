//! Starts the binary on free loopback ports in temporary folders and ends it by pid.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tonic::transport::Channel;

/// Longer than anything waits for on a busy machine, shorter than a test may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

pub(crate) type Client = SchedulerClient<Channel>;

pub(crate) fn binary() -> Command {
    quiet(Command::new(env!("CARGO_BIN_EXE_lockgate")))
}

/// The binary as it starts where a process may have only so many file descriptors, and cannot raise the limit.
fn binary_with_descriptors(limit: u32) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string(), env!("CARGO_BIN_EXE_lockgate")]);
    quiet(command)
}

fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// A port that no process uses now. The server binds it a moment later, and again after each restart: so it lies below the range
/// from which systems give outgoing connections theirs, and tests, which are processes of their own, start apart.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Tests of one process must not find the same port before its server binds it.
    let own = GIVEN.fetch_add(1, Ordering::Relaxed);
    let first = 10_000 + u16::try_from(std::process::id() % 1_100).expect("small") * 20 + own;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..32_700).find(free).expect("a free port")
}

pub(crate) struct Server {
    child: Child,
    pub(crate) api: String,
    /// What it said when it was up.
    pub(crate) banner: Value,
    port: u16,
    folder: Arc<TempDir>,
    arguments: Vec<String>,
    environment: Environment,
}

/// What a server finds in its environment beside what this process has.
pub(crate) type Environment = Vec<(&'static str, std::ffi::OsString)>;

impl Server {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        Self::start_in(TempDir::new().expect("a folder"), arguments).await
    }

    pub(crate) async fn start_in(folder: TempDir, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::launch(Arc::new(folder), free_port(), arguments, Environment::new(), binary()).await
    }

    /// Another start on the folder and port of one that has ended. It must fail; what it said.
    pub(crate) async fn refused_start(&self) -> String {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = binary();
        command.args(["serve", "--log", "warn", "--metrics", "127.0.0.1:0", "--listen", &listen, "--data"]);
        let ended = command.arg(self.folder()).args(&self.arguments).output();
        let output =
            tokio::time::timeout(PATIENCE, ended).await.expect("it is refused, and does not serve").expect("it runs");
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("a running process")
    }

    pub(crate) async fn start_with(environment: Environment, arguments: &[&str]) -> Self {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::launch(folder, free_port(), arguments, environment, binary()).await
    }

    /// One that may have only so many file descriptors.
    pub(crate) async fn start_with_descriptors(limit: u32, arguments: &[&str]) -> Self {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::launch(folder, free_port(), arguments, Environment::new(), binary_with_descriptors(limit)).await
    }

    async fn launch(
        folder: Arc<TempDir>,
        port: u16,
        arguments: Vec<String>,
        environment: Environment,
        mut command: Command,
    ) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let mut child = command
            .args(["--json", "serve", "--log", "warn", "--metrics", "127.0.0.1:0", "--listen", &listen, "--data"])
            .arg(folder.path())
            .args(&arguments)
            .envs(environment.iter().cloned())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("stdout");
        let first = tokio::time::timeout(PATIENCE, BufReader::new(stdout).lines().next_line()).await;
        let line = first.expect("the server answers in time").expect("readable").expect("the server starts");
        let banner: Value = serde_json::from_str(&line).expect("JSON");
        let api = banner["api"].as_str().expect("an address").to_owned();
        Self { child, api, banner, port, folder, arguments, environment }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// kill -9, and a new process on the same folder and port.
    pub(crate) async fn crash_and_restart(&mut self) {
        self.crash().await;
        self.start_again().await;
    }

    /// SIGTERM, a clean end, and a new process on the same folder and port.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }

    /// Sends SIGTERM without waiting for the end.
    pub(crate) async fn tell_to_end(&self) {
        signal(&self.child, "TERM").await;
    }

    /// SIGTERM and a clean end.
    pub(crate) async fn stop(&mut self) {
        self.tell_to_end().await;
        self.wait_for_end().await;
    }

    pub(crate) async fn wait_for_end(&mut self) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends in time").expect("a status");
        assert!(status.success(), "a stop on SIGTERM is not a failure: {status}");
    }

    /// It hangs: connections stay, nothing is answered.
    pub(crate) async fn pause(&self) {
        signal(&self.child, "STOP").await;
    }

    pub(crate) async fn resume(&self) {
        signal(&self.child, "CONT").await;
    }

    /// A metric of this process, all labels together; 0 if it does not say.
    pub(crate) async fn number(&self, name: &str) -> f64 {
        let address = self.banner["metrics"].as_str().expect("an address");
        let text = http_get(address.trim_end_matches("/metrics"), "/metrics").await;
        let series = text.lines().filter_map(|line| line.rsplit_once(' '));
        let own = series.filter(|(series, _)| series.split('{').next() == Some(name));
        own.filter_map(|(_, value)| value.parse::<f64>().ok()).sum()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.api.clone()).await.expect("connected").max_decoding_message_size(32 << 20)
    }

    pub(crate) fn worker(&self, name: &str, slots: u32, more: &[&str]) -> Child {
        binary()
            .args(["worker", "--log", "warn", "--server", &self.api, "--name", name, "--slots", &slots.to_string()])
            .args(more)
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the worker starts")
    }

    /// kill -9, and nothing in its place until it is started again.
    pub(crate) async fn crash(&mut self) {
        self.child.kill().await.expect("killed");
    }

    /// A new process on the same folder and port as one that has ended.
    pub(crate) async fn start_again(&mut self) {
        let (folder, environment) = (self.folder.clone(), self.environment.clone());
        *self = Self::launch(folder, self.port, self.arguments.clone(), environment, binary()).await;
    }

    /// The next process is started with these arguments instead.
    pub(crate) fn ask_for(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
    }

    /// The next process works on another folder.
    pub(crate) fn move_to(&mut self, folder: TempDir) {
        self.folder = Arc::new(folder);
    }

    /// Repeats a command until it prints what is wanted: the built-in worker attaches a moment after the server is up.
    pub(crate) async fn wait_for_output(&self, arguments: &[&str], wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.cli(arguments).await;
            if String::from_utf8_lossy(&output.stdout).contains(wanted) {
                return;
            }
            assert!(Instant::now() < deadline, "never said {wanted}: {output:?}");
        }
    }

    /// What `lockgate health` prints, and its exit code.
    pub(crate) async fn health(&self) -> (Value, Option<i32>) {
        let output = self.cli(&["--json", "health"]).await;
        (serde_json::from_slice(&output.stdout).unwrap_or_default(), output.status.code())
    }

    /// Waits until the most serious finding has this code, or there is none. How long it took.
    pub(crate) async fn wait_until_found(&self, code: Option<&str>) -> Duration {
        let began = Instant::now();
        loop {
            let (health, exit) = self.health().await;
            if health["status"].is_string() && health["findings"][0]["code"].as_str() == code {
                assert_eq!(exit, Some(if health["status"] == "not_ready" { 5 } else { 0 }), "{health}");
                return began.elapsed();
            }
            assert!(began.elapsed() < PATIENCE, "never {code:?}: {health}");
        }
    }

    /// Runs a command of the CLI to its end.
    pub(crate) async fn cli(&self, arguments: &[&str]) -> std::process::Output {
        binary().args(["--server", &self.api]).args(arguments).output().await.expect("the command runs")
    }
}

/// The whole answer, with its status line and headers.
pub(crate) async fn http_get(server: &str, path: &str) -> String {
    let address = server.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("answered");
    text
}

/// Sends a signal by pid; the standard library knows only SIGKILL.
pub(crate) async fn signal(child: &Child, name: &str) {
    let pid = child.id().expect("a running process").to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().await.expect("kill runs");
    assert!(sent.success());
}

pub(crate) fn job(id: &str, topic: &str, payload: &str) -> v1::NewJob {
    v1::NewJob {
        job_id: id.to_owned(),
        topic: topic.to_owned(),
        payload_json: payload.to_owned().into_bytes().into(),
        ..v1::NewJob::default()
    }
}

pub(crate) async fn submit(client: &mut Client, jobs: Vec<v1::NewJob>) -> Result<Vec<String>, tonic::Status> {
    let answer = client.submit_jobs(v1::SubmitJobsRequest { jobs }).await?.into_inner();
    let id = |item: v1::submit_jobs_response::Item| match item.item {
        Some(v1::submit_jobs_response::item::Item::Job(job)) => job.job_id,
        other => panic!("refused: {other:?}"),
    };
    Ok(answer.jobs.into_iter().map(id).collect())
}

pub(crate) async fn get(client: &mut Client, id: &str) -> v1::Job {
    client.get_job(v1::GetJobRequest { job_id: id.to_owned() }).await.expect("found").into_inner()
}

/// Waits until the job is as wanted.
pub(crate) async fn until(client: &mut Client, id: &str, wanted: impl Fn(&v1::Job) -> bool) -> v1::Job {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    loop {
        let job = get(client, id).await;
        if wanted(&job) {
            return job;
        }
        assert!(Instant::now() < deadline, "it did not happen in time: {job:?}");
        pause.tick().await;
    }
}

/// Jobs that have not ended.
pub(crate) async fn live(client: &mut Client) -> u64 {
    client.list_queues(v1::ListQueuesRequest {}).await.expect("answered").into_inner().live
}

/// Waits until so many jobs were accepted.
pub(crate) async fn wait_for_jobs(client: &mut Client, count: u64) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    loop {
        let queues = client.list_queues(v1::ListQueuesRequest {}).await.expect("answered").into_inner();
        if queues.live + queues.ended >= count {
            return;
        }
        assert!(Instant::now() < deadline, "too few jobs: {queues:?}");
        pause.tick().await;
    }
}

/// Waits until nothing is live.
pub(crate) async fn until_idle(client: &mut Client) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    loop {
        // After a fault a gateway may not know for a moment what waits.
        let queues = client.list_queues(v1::ListQueuesRequest {}).await;
        if queues.as_ref().is_ok_and(|queues| queues.get_ref().live == 0) {
            return;
        }
        assert!(Instant::now() < deadline, "it did not end in time: {queues:?}");
        pause.tick().await;
    }
}

/// Every job of the default tenant, newest first.
pub(crate) async fn all_jobs(client: &mut Client) -> Vec<v1::Job> {
    let mut request = v1::ListJobsRequest { limit: 1_000, ..v1::ListJobsRequest::default() };
    let mut jobs = Vec::new();
    loop {
        let page = client.list_jobs(request.clone()).await.expect("listed").into_inner();
        jobs.extend(page.jobs);
        if page.next_cursor.is_empty() {
            return jobs;
        }
        request.cursor = page.next_cursor;
    }
}
