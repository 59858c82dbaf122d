//! What `deploy/` starts: the commands and environments of the image, of the compose file and of the chart, taken from the files
//! and run as they are. Names of machines and mounted folders are put in the place of those of containers; nothing else is changed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::cluster::Ground;
use super::harness::{PATIENCE, binary, free_port};

fn deployed(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One container: what it runs and the environment that it sees.
#[derive(Clone, Debug, Default)]
struct Container {
    words: Vec<String>,
    env: Vec<(String, String)>,
}

impl Container {
    /// With another text in the place of one that means something only among containers.
    fn with(mut self, from: &str, to: &str) -> Self {
        let texts = self.words.iter_mut().chain(self.env.iter_mut().map(|(_, value)| value));
        texts.for_each(|text| *text = text.replace(from, to));
        self
    }

    /// On ports of its own.
    fn on(self, api: u16, metrics: u16) -> Self {
        self.with("0.0.0.0:8080", &format!("0.0.0.0:{api}")).with("0.0.0.0:9090", &format!("0.0.0.0:{metrics}"))
    }

    fn start(&self, folder: &Path) -> Running {
        let mut command = binary();
        command.args(&self.words).env_clear().envs(self.env.clone()).current_dir(folder).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Running { child, lines }
    }
}

struct Running {
    /// Ends with this.
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// The rest of the first line that begins like this.
    async fn wait_for_line(&mut self, beginning: &str) -> String {
        let found = async {
            while let Some(line) = self.lines.next_line().await.expect("readable") {
                if let Some(rest) = line.trim_start().strip_prefix(beginning) {
                    return rest.trim().to_owned();
                }
            }
            panic!("it ended without saying {beginning:?}: {:?}", self.child.wait().await);
        };
        timeout(PATIENCE, found).await.expect("in time")
    }
}

async fn cli(server: &str, key: &str, words: &[&str]) -> std::process::Output {
    binary().args(["--server", server, "--api-key", key]).args(words).output().await.expect("runs")
}

async fn wait_for_output(server: &str, key: &str, words: &[&str], wanted: &str) -> String {
    let found = async {
        loop {
            let output = cli(server, key, words).await;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if said.contains(wanted) {
                return said;
            }
        }
    };
    timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("{words:?} never said {wanted}"))
}

/// The status that a path is answered with.
async fn status(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A server that has just started is not ready at once.
async fn wait_until_ready(address: &str) {
    let ready = async { while status(address, "/readyz").await != "200" {} };
    timeout(PATIENCE, ready).await.expect("ready in time");
}

/// The list behind an instruction of the Dockerfile; `#` begins a comment only at the beginning of a line.
fn instruction(image: &str, name: &str) -> Vec<String> {
    let list = image.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    serde_json::from_str(list).expect("the form without a shell: there is none in the image")
}

#[tokio::test]
async fn the_image_answers_on_a_published_port_and_asks_for_a_credential() {
    let dockerfile = deployed("Dockerfile");
    let (_, image) = dockerfile.split_once("FROM scratch\n").expect("the image");
    assert_eq!(instruction(image, "ENTRYPOINT"), ["/usr/local/bin/lockgate"]);
    assert!(!image.contains("\nENV "), "read it here, too");
    let folder = TempDir::new().expect("the volume");
    let (api, metrics) = (free_port(), free_port());
    let mut running = Container { words: instruction(image, "CMD"), env: Vec::new() }.on(api, metrics).start(folder.path());
    let key = running.wait_for_line("Admin").await;
    let key = key.split(' ').next().expect("a key");

    // What comes through a published port does not come to 127.0.0.1.
    let outside = format!("127.0.0.2:{api}");
    wait_until_ready(&outside).await;
    assert_eq!(status(&outside, "/v1/jobs").await, "401");
    assert_eq!(status(&format!("127.0.0.2:{metrics}"), "/metrics").await, "401", "numbers ask for a credential, too");
    let done = cli(&format!("http://{outside}"), key, &["submit", "job.echo", "--payload", "[1]", "--wait"]).await;
    assert!(done.status.success() && done.stdout.starts_with(b"[1]"), "{done:?}");
}

/// A list of the compose file in brackets.
fn flow_list(text: &str) -> Vec<String> {
    let inside = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).expect("a list in brackets");
    // No word of it has a comma but `--roles`, which is quoted.
    let quoted: Vec<&str> = inside.split('"').collect();
    let words = quoted.iter().enumerate().flat_map(|(at, part)| match at % 2 {
        1 => vec![(*part).to_owned()],
        _ => part.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect(),
    });
    words.collect()
}

/// The lines below a key, as far as they are indented deeper.
fn block<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|line| *line != key);
    lines.next().unwrap_or_else(|| panic!("no {key}"));
    let depth = key.len() - key.trim_start().len();
    lines.take_while(|line| line.trim().is_empty() || line.len() - line.trim_start().len() > depth).collect()
}

fn compose_command(compose: &str, key: &str) -> Vec<String> {
    let lines = block(compose, key);
    flow_list(lines.iter().find_map(|line| line.trim().strip_prefix("command: ")).expect("a command"))
}

#[tokio::test]
async fn the_services_of_the_compose_file_run_jobs_on_postgresql() {
    let compose = deployed("compose.yaml");
    let ground = Ground::start();
    let settings = deployed("compose.env");
    let entries = settings.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    let env: Vec<(String, String)> = entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert!(compose.contains("- compose.env\n"), "the services read their settings there");
    let service = |key: &str| {
        Container { words: compose_command(&compose, key), env: env.clone() }
            .with("postgres://lockgate@database:5432/lockgate", &ground.postgres.url())
            .with("redis://redis:6379/", &ground.redis.url())
            .with("nats://nats:4222", &ground.nats.url())
    };
    let folders: Vec<TempDir> = (0..5).map(|_| TempDir::new().expect("a folder")).collect();
    let (_, services) = compose.split_once("\nservices:\n").expect("services");
    let prepare = Container { words: compose_command(services, "  prepare:"), ..service("x-gateway: &gateway") };
    let mut prepared = prepare.start(folders[0].path());
    let ended = timeout(PATIENCE, prepared.child.wait()).await.expect("in time").expect("a status");
    assert!(ended.success(), "{ended}");

    let ports = [free_port(), free_port()];
    let mut processes = Vec::new();
    for (port, folder) in ports.iter().zip(&folders[1..]) {
        processes.push(service("x-gateway: &gateway").on(*port, free_port()).start(folder.path()));
    }
    processes.push(service("x-scheduler: &scheduler").on(free_port(), free_port()).start(folders[3].path()));
    for process in &mut processes {
        process.wait_for_line("API").await;
    }
    let [first, second] = ports.map(|port| format!("http://127.0.0.1:{port}"));
    let worker = Container { words: compose_command(&compose, "x-worker: &worker"), env: Vec::new() };
    let _worker =
        worker.with("http://gateway-1:8080", &first).with("http://gateway-2:8080", &second).start(folders[4].path());
    for gateway in [&first, &second] {
        let done = timeout(PATIENCE, cli(gateway, "", &["submit", "job.echo", "--payload", "[1]", "--wait"])).await;
        let done = done.expect("in time");
        assert!(done.status.success() && done.stdout.starts_with(b"[1]"), "{done:?}");
    }
}

/// The container of a Deployment of the manifest, with what its Secrets hold.
fn deployment(manifest: &str, name: &str, secret: impl Fn(&str) -> String) -> Container {
    let head = format!("kind: Deployment\nmetadata:\n  name: {name}\n");
    let document = manifest.split("\n---\n").find(|document| document.contains(&head));
    let document = document.unwrap_or_else(|| panic!("no Deployment {name}"));
    let under = |key: &str| -> Vec<&str> {
        let lines = document.lines().skip_while(move |line| line.trim() != key).skip(1);
        lines.map(str::trim).take_while(|line| line.is_empty() || line.starts_with(['-', '#', 'v'])).collect()
    };
    let words = under("args:").into_iter().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect();
    let mut env: Vec<(String, String)> = Vec::new();
    for line in under("env:") {
        if let Some(name) = line.strip_prefix("- name: ") {
            env.push((name.to_owned(), String::new()));
        } else if let (Some((_, value)), Some(text)) = (env.last_mut(), line.strip_prefix("value: ")) {
            text.clone_into(value);
        } else if let (Some((_, value)), Some((_, key))) = (env.last_mut(), line.split_once("key: ")) {
            *value = secret(key.trim_end_matches('}'));
        } else if let (Some((_, value)), true) = (env.last_mut(), line.contains("metadata.name")) {
            format!("{name}-pod").clone_into(value);
        }
    }
    // As the kubelet fills in what the environment says.
    let filled = env.clone();
    filled.iter().fold(Container { words, env }, |container, (name, value)| container.with(&format!("$({name})"), value))
}

/// Folders in the place of those that are mounted.
fn mounted(container: Container, folder: &Path) -> Container {
    let here = |path: &str| folder.join(path).display().to_string();
    container
        .with("/var/lib/lockgate/", &format!("{}/", folder.display()))
        .with("/etc/lockgate/pools.yaml", &here("pools.yaml"))
        .with("/etc/lockgate-auth/auth-secret", &here("auth-secret"))
}

fn pod(manifest: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let pools: Vec<&str> = block(manifest, "  pools.yaml: |").into_iter().map(str::trim_end).collect();
    std::fs::write(folder.path().join("pools.yaml"), pools.join("\n")).expect("written");
    std::fs::write(folder.path().join("auth-secret"), "0a".repeat(32)).expect("written");
    let path = folder.path().to_owned();
    (folder, path)
}

#[tokio::test]
async fn the_workers_of_the_chart_start_with_its_default_values() {
    let manifest = deployed("kubernetes/lockgate.yaml");
    let ground = Ground::start();
    let servers = |key: &str| match key {
        "DATABASE_URL" => ground.postgres.url(),
        "REDIS_URL" => ground.redis.url(),
        "NATS_URL" => ground.nats.url(),
        other => panic!("no such key: {other}"),
    };
    let port = free_port();
    let mut processes = Vec::new();
    let mut key = String::new();
    for (name, port) in [("gateway", port), ("scheduler", free_port()), ("orchestrator", free_port())] {
        let (folder, path) = pod(&manifest);
        let container = deployment(&manifest, &format!("lockgate-{name}"), servers);
        let mut running = mounted(container, &path).on(port, free_port()).start(&path);
        if key.is_empty() {
            let said = running.wait_for_line("Admin").await;
            said.split(' ').next().unwrap_or_default().clone_into(&mut key);
        }
        processes.push((running, folder));
    }
    let here = format!("http://127.0.0.1:{port}");
    let made = cli(&here, &key, &["auth", "key", "create", "workers", "--role", "worker"]).await;
    assert!(made.status.success(), "{made:?}");
    let worker_key = String::from_utf8_lossy(&made.stdout).trim().to_owned();

    // Like the name of a Service it reaches the gateway, and is not an address of this machine to one who reads it.
    let service = format!("http://0.0.0.0:{port}");
    for name in ["lockgate-worker-cpu", "lockgate-worker-io"] {
        let (folder, path) = pod(&manifest);
        let container = deployment(&manifest, name, |_| worker_key.clone());
        processes.push((mounted(container, &path).with("http://lockgate-gateway:8080", &service).start(&path), folder));
    }
    for name in ["lockgate-worker-cpu-pod", "lockgate-worker-io-pod"] {
        wait_for_output(&here, &key, &["workers"], name).await;
    }
    let done = timeout(PATIENCE, cli(&here, &key, &["--json", "submit", "job.echo", "--wait"])).await.expect("in time");
    let job: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    assert_eq!(job["state"], "SUCCEEDED", "{job}");
}
