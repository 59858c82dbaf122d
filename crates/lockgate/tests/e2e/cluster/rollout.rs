//! An upgrade as Kubernetes does it: a new process is ready before an old one is told to go, a Service leads to those that say
//! they are ready, and their callers try once more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::time::Instant;

use super::super::harness::{Client, PATIENCE, Server, binary, job, signal, submit, until_idle};
use super::faults::check_exact;
use super::stage::Ground;

/// As in deploy/kubernetes, in a tenth of the time.
const PROBE_EVERY: Duration = Duration::from_millis(500);
const LINGER: &str = "1500ms";

/// What a Service is: an address, and those behind it that are ready.
#[derive(Clone)]
struct Service {
    address: String,
    /// Every process, with whether it is told to go.
    pods: Arc<Mutex<Vec<String>>>,
    ready: Arc<Mutex<Vec<String>>>,
}

impl Service {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let service = Self { address, pods: Arc::default(), ready: Arc::default() };
        tokio::spawn(service.clone().lead(listener));
        tokio::spawn(service.clone().probe());
        service
    }

    /// Each connection to the next one that is ready.
    async fn lead(self, listener: TcpListener) {
        for turn in 0.. {
            let Ok((mut caller, _)) = listener.accept().await else { return };
            let ready = self.ready.lock().clone();
            tokio::spawn(async move {
                let Some(target) = ready.get(turn % ready.len().max(1)) else { return };
                if let Ok(mut pod) = TcpStream::connect(target).await {
                    let _ = tokio::io::copy_bidirectional(&mut caller, &mut pod).await;
                }
            });
        }
    }

    async fn probe(self) {
        let mut every = tokio::time::interval(PROBE_EVERY);
        loop {
            every.tick().await;
            let pods = self.pods.lock().clone();
            let mut ready = Vec::new();
            for pod in pods {
                if is_ready(&pod).await {
                    ready.push(pod);
                }
            }
            *self.ready.lock() = ready;
        }
    }

    fn add(&self, server: &Server) {
        self.pods.lock().push(server.api.trim_start_matches("http://").to_owned());
    }

    async fn wait_for(&self, server: &Server, wanted: bool) {
        let pod = server.api.trim_start_matches("http://");
        let deadline = Instant::now() + PATIENCE;
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        while self.ready.lock().iter().any(|ready| ready == pod) != wanted {
            assert!(Instant::now() < deadline, "never: ready is {wanted}");
            pause.tick().await;
        }
    }
}

/// As kubelet asks.
async fn is_ready(pod: &str) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(pod).await.ok()?;
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {pod}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        text.starts_with("HTTP/1.1 200").then_some(())
    };
    tokio::time::timeout(Duration::from_secs(3), asked).await.ok().flatten().is_some()
}

/// Clients that make a connection for each call, as many do, and try once more if it fails.
struct Clients {
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    failed: Arc<AtomicUsize>,
    repeated: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Clients {
    fn start(address: &str, count: usize) -> Self {
        let mut clients = Self {
            acknowledged: Arc::default(),
            failed: Arc::default(),
            repeated: Arc::default(),
            over: Arc::default(),
            tasks: Vec::new(),
        };
        for n in 0..count {
            let (address, over) = (address.to_owned(), clients.over.clone());
            let (acknowledged, failed, repeated) =
                (clients.acknowledged.clone(), clients.failed.clone(), clients.repeated.clone());
            clients.tasks.push(tokio::spawn(async move {
                let mut every = tokio::time::interval(Duration::from_millis(40));
                for round in 0.. {
                    every.tick().await;
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let id = format!("client-{n}-{round}");
                    if call(&address, &id).await.is_none() {
                        repeated.fetch_add(1, Ordering::Relaxed);
                        if call(&address, &id).await.is_none() {
                            failed.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                    }
                    acknowledged.lock().insert(id);
                }
            }));
        }
        clients
    }

    async fn go_on(&self, more: usize) {
        let wanted = self.acknowledged.lock().len() + more;
        let deadline = Instant::now() + PATIENCE;
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        while self.acknowledged.lock().len() < wanted {
            assert!(Instant::now() < deadline, "the load came to a halt");
            pause.tick().await;
        }
    }
}

async fn call(address: &str, id: &str) -> Option<()> {
    let asked = async {
        let mut client = Client::connect(address.to_owned()).await.ok()?;
        submit(&mut client, vec![job(id, "job.noop", "null")]).await.ok().map(|_| ())
    };
    tokio::time::timeout(Duration::from_secs(10), asked).await.ok().flatten()
}

fn worker(name: &str, service: &Service) -> Child {
    let mut command = binary();
    command.args(["worker", "--log", "error", "--name", name, "--slots", "16", "--drain", "20s", "--server"]);
    command.arg(&service.address).stderr(std::process::Stdio::inherit()).spawn().expect("the worker starts")
}

async fn go(mut worker: Child) {
    signal(&worker, "TERM").await;
    let ended = tokio::time::timeout(PATIENCE, worker.wait()).await.expect("it drains in time").expect("a status");
    assert!(ended.success(), "{ended}");
}

const FIRST: &str = "version: 1\ndag: pinned\nnodes:\n  a: { topic: job.noop }\n  wait: { needs: a, delay: 6s }\n  \
    old: { needs: wait, topic: job.echo, payload: 1 }\n";
const SECOND: &str = "version: 1\ndag: pinned\nnodes:\n  new: { topic: job.echo, payload: 2 }\n";

async fn runs(address: &str) -> OrchestratorClient<tonic::transport::Channel> {
    OrchestratorClient::connect(address.to_owned()).await.expect("connected")
}

async fn put(address: &str, text: &str) {
    let put = v1::PutDagRequest { file: "test.yaml".to_owned(), text: text.to_owned() };
    runs(address).await.put_dag(put).await.expect("stored");
}

async fn start_run(address: &str) -> String {
    let start = v1::StartDagRequest { dag: "pinned".to_owned(), ..v1::StartDagRequest::default() };
    runs(address).await.start_dag(start).await.expect("started").into_inner().run_id
}

async fn ended_run(address: &str, run_id: &str) -> v1::DagRun {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    loop {
        let request = v1::GetDagRunRequest { run_id: run_id.to_owned() };
        let run = runs(address).await.get_dag_run(request).await.expect("there").into_inner();
        if run.ended_at_ms.is_some() {
            return run;
        }
        assert!(Instant::now() < deadline, "{run:?}");
        pause.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_of_everything_under_load_fails_no_call_that_is_tried_twice() {
    let ground = Ground::start();
    let service = Service::start().await;
    let roles = ["gateway", "gateway", "scheduler", "orchestrator"];
    let mut processes = Vec::new();
    for role in roles {
        processes.push(ground.process(role, &["--linger", LINGER]).await);
    }
    for gateway in &processes[..2] {
        service.add(gateway);
        service.wait_for(gateway, true).await;
    }
    let mut workers = vec![worker("a", &service), worker("b", &service)];
    put(&service.address, FIRST).await;
    let pinned = start_run(&service.address).await;
    put(&service.address, SECOND).await;
    let clients = Clients::start(&service.address, 4);

    for (at, role) in roles.into_iter().enumerate() {
        clients.go_on(60).await;
        let new = ground.process(role, &["--linger", LINGER]).await;
        if role == "gateway" {
            service.add(&new);
            service.wait_for(&new, true).await;
        }
        let mut old = std::mem::replace(&mut processes[at], new);
        old.stop().await;
        service.wait_for(&old, false).await;
    }
    for (at, old) in std::mem::take(&mut workers).into_iter().enumerate() {
        clients.go_on(60).await;
        workers.push(worker(&format!("new-{at}"), &service));
        go(old).await;
    }
    clients.go_on(60).await;
    clients.over.store(true, Ordering::Relaxed);
    for task in clients.tasks {
        task.await.expect("ended");
    }
    assert_eq!(clients.failed.load(Ordering::Relaxed), 0, "calls that failed twice");

    // A run goes on by the version it began with, whichever process takes its steps; the next one is of the new version.
    let run = ended_run(&service.address, &pinned).await;
    let names: Vec<&str> = run.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((run.dag_version, run.state(), &names[..]), (1, v1::RunState::Succeeded, &["a", "wait", "old"][..]));
    let next = start_run(&service.address).await;
    assert_eq!(ended_run(&service.address, &next).await.dag_version, 2);
    let mut client = processes[0].client().await;
    until_idle(&mut client).await;
    let acknowledged = clients.acknowledged.lock().clone();
    check_exact(&mut client, &acknowledged).await;
}
