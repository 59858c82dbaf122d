//! No space left: refused clearly, nothing half-written, and well again when there is room.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::scan::FindingKey;
use lockgate_engine::{Engine, LocalKernel, Metrics, Ports, Settings};
use lockgate_gateway::{Gateway, GatewaySettings};
use lockgate_memory::{MemoryBus, MemoryLanes};
use lockgate_model::{ManualClock, SeededEntropy};
use lockgate_proto::v1;
use lockgate_sqlite::{FolderOptions, SqliteStore};
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::harness::{Client, PATIENCE, Server, all_jobs, http_get, job, submit, until};

/// Ended jobs are looked for this often, so that the test need not wait for the default of a minute.
const PRUNE_EVERY: Duration = Duration::from_millis(20);

struct Small {
    client: Client,
    address: std::net::SocketAddr,
    clock: Arc<ManualClock>,
    retention: Duration,
    _folder: TempDir,
    _stop: watch::Sender<bool>,
}

/// A server in this process whose database may not grow beyond `pages`.
async fn server_with_room_for(pages: u64) -> Small {
    let folder = TempDir::new().expect("a folder");
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::open_with(
        folder.path(),
        clock.clone(),
        FolderOptions { bytes_max: Some(pages * 4096), ..FolderOptions::default() },
    )
    .expect("opened");
    let ports = Ports {
        store: Arc::new(store),
        lanes: Arc::new(MemoryLanes::default()),
        bus: Arc::new(MemoryBus::default()),
        kernel: Arc::new(LocalKernel::new(clock.clone(), FindingKey::new([7; 32]), None)),
        counters: None,
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(1)),
        spans: None,
        outlets: Vec::new(),
    };
    let settings = Settings { prune_every: PRUNE_EVERY, ..Settings::default() };
    let retention = settings.retention;
    let engine = Engine::new(ports, settings, Metrics::new(&mut Registry::default()));
    let (stop, stopping) = watch::channel(false);
    let running = engine.clone();
    tokio::spawn(async move { running.run(stopping).await });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let api = format!("http://{address}");
    let gateway = Gateway { engine, clock: clock.clone(), settings: GatewaySettings::default() };
    tokio::spawn(gateway.serve(listener, std::future::pending()));
    let client = Client::connect(api).await.expect("connected");
    Small { client, address, clock, retention, _folder: folder, _stop: stop }
}

/// A job so large that a few of them fill the disk.
fn large(id: &str) -> v1::NewJob {
    job(id, "job.none", &format!("\"{}\"", "x".repeat(200_000)))
}

/// Submits large jobs until one is refused. How many were accepted, and the refusal.
async fn fill(client: &mut Client) -> (usize, Status) {
    for accepted in 0..100 {
        if let Err(refused) = submit(client, vec![large(&format!("job-{accepted}"))]).await {
            return (accepted, refused);
        }
    }
    panic!("the disk was never full");
}

async fn wait_until_accepted(client: &mut Client, id: &str) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(refused) = submit(client, vec![large(id)]).await {
        assert!(Instant::now() < deadline, "still refused: {refused:?}");
        tokio::time::sleep(PRUNE_EVERY).await;
    }
}

#[tokio::test]
async fn a_full_disk_refuses_jobs_until_there_is_room_again() {
    let mut server = server_with_room_for(200).await;
    let client = &mut server.client;
    submit(client, vec![large("old")]).await.expect("submitted");
    let cancel = v1::CancelJobRequest { job_id: "old".to_owned(), ..v1::CancelJobRequest::default() };
    client.cancel_job(cancel).await.expect("cancelled");

    let (accepted, refused) = fill(client).await;
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(accepted > 0);
    let listed = client.list_jobs(v1::ListJobsRequest { limit: 1_000, ..v1::ListJobsRequest::default() }).await;
    assert_eq!(listed.expect("reads go on").into_inner().jobs.len(), accepted + 1, "nothing half-written");

    // The ended job is no longer kept, and its room is free.
    server.clock.advance(server.retention + Duration::from_secs(1));
    wait_until_accepted(client, "new").await;
}

/// What `/readyz` says.
async fn readiness(address: std::net::SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("answered");
    text
}

async fn wait_until_ready(address: std::net::SocketAddr) {
    let deadline = Instant::now() + PATIENCE;
    while !readiness(address).await.starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < deadline, "never ready: {}", readiness(address).await);
        tokio::time::sleep(PRUNE_EVERY).await;
    }
}

/// A few pages are free, which is enough for the question to the Store and not for what clients submit.
#[tokio::test]
async fn a_process_whose_submits_find_no_room_is_not_ready_in_any_look() {
    let mut server = server_with_room_for(200).await;
    wait_until_ready(server.address).await;
    let client = &mut server.client;
    submit(client, vec![large("old")]).await.expect("submitted");
    let cancel = v1::CancelJobRequest { job_id: "old".to_owned(), ..v1::CancelJobRequest::default() };
    client.cancel_job(cancel).await.expect("cancelled");
    let (accepted, _) = fill(client).await;
    for n in 0..accepted + 3 {
        let refused = submit(client, vec![large(&format!("more-{n}"))]).await.expect_err("no room");
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    }
    for _ in 0..20 {
        let said = readiness(server.address).await;
        assert!(said.starts_with("HTTP/1.1 503") && said.contains("store_full"), "{said}");
        submit(client, vec![large("again")]).await.expect_err("no room");
    }
    server.clock.advance(server.retention + Duration::from_secs(1));
    wait_until_accepted(&mut server.client, "new").await;
    wait_until_ready(server.address).await;
}

#[tokio::test]
async fn a_database_at_its_limit_refuses_jobs_clearly_and_goes_on_with_a_larger_one() {
    const LIMIT_BYTES: u64 = 2 << 20;
    let mut server = Server::start(&["--no-worker", "--disk-limit", "2M"]).await;
    let (accepted, refused) = fill(&mut server.client().await).await;
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("the store is full"), "{refused:?}");
    assert!(accepted > 0);
    server.stop().await;
    let size = std::fs::metadata(server.folder().join("lockgate.db")).expect("a database").len();
    assert!(size <= LIMIT_BYTES, "{size}");

    server.ask_for(&["--no-worker", "--disk-limit", "8M"]);
    server.start_again().await;
    let mut client = server.client().await;
    assert_eq!(all_jobs(&mut client).await.len(), accepted, "what was acknowledged is there");
    submit(&mut client, vec![large("new")]).await.expect("there is room again");
}

/// A file system of its own in memory, as small as that of a full host.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// None where this user may not mount: then only the limit above can be tried.
    fn mounted(size: &str) -> Option<Self> {
        let folder = TempDir::new().expect("a folder");
        let mount = ["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(folder.path()).status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: a tmpfs cannot be mounted by this user");
        }
        mounted.then(|| Self(folder))
    }

    fn folder(&self) -> TempDir {
        TempDir::new_in(self.0.path()).expect("a folder")
    }

    /// Until not a byte more can be written.
    fn fill(&self) {
        let mut filler = std::fs::File::options().append(true).create(true).open(self.filler()).expect("a file");
        for chunk in [1 << 20, 4096, 1] {
            while filler.write_all(&vec![7; chunk]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).expect("removed");
    }

    fn filler(&self) -> std::path::PathBuf {
        self.0.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server that is being killed may still have files open.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn has_reserve(folder: &Path) -> bool {
    folder.join("reserve").exists()
}

/// A small job, until one is refused for want of room in words that tell what to do.
async fn wait_until_full(client: &mut Client) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    loop {
        match submit(client, vec![job("", "job.noop", "null")]).await {
            Err(refused) if refused.message().contains("Delete other files on that disk") => {
                assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
                return;
            }
            other => assert!(Instant::now() < deadline, "{other:?}"),
        }
        pause.tick().await;
    }
}

async fn wait_until_readyz_says(server: &Server, status: &str, code: &str) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(Duration::from_millis(100));
    loop {
        let told = http_get(&server.api, "/readyz").await;
        if told.starts_with(&format!("HTTP/1.1 {status}")) && told.contains(code) {
            return;
        }
        assert!(Instant::now() < deadline, "{told}");
        pause.tick().await;
    }
}

#[tokio::test]
async fn a_server_starts_on_a_full_disk_reads_and_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mounted("64m") else { return };
    let mut server = Server::start_in(disk.folder(), &[]).await;
    let mut client = server.client().await;
    submit(&mut client, vec![job("before", "job.echo", "1")]).await.expect("submitted");
    until(&mut client, "before", |job| job.state() == v1::JobState::Succeeded).await;
    server.stop().await;
    assert!(has_reserve(server.folder()));

    disk.fill();
    server.start_again().await;
    assert!(!has_reserve(server.folder()), "given up first");
    let mut client = server.client().await;
    assert_eq!(all_jobs(&mut client).await.len(), 1, "reads work");
    wait_until_full(&mut client).await;
    wait_until_readyz_says(&server, "503", "store_full").await;
    let health = server.cli(&["health"]).await;
    let told = String::from_utf8_lossy(&health.stdout);
    assert!(told.contains("Delete other files on that disk"), "it says what to free: {told}");

    disk.free();
    wait_until_readyz_says(&server, "200", "ready").await;
    assert!(has_reserve(server.folder()), "there is a reserve again");
    submit(&mut client, vec![job("after", "job.echo", "2")]).await.expect("there is room again");
    until(&mut client, "after", |job| job.state() == v1::JobState::Succeeded).await;
}

#[tokio::test]
async fn what_runs_when_the_disk_gets_full_is_brought_to_its_end_and_kept_over_a_kill() {
    const RUNNING: usize = 8;
    let Some(disk) = SmallDisk::mounted("64m") else { return };
    let mut server = Server::start_in(disk.folder(), &[]).await;
    let mut client = server.client().await;
    let ids: Vec<String> = (0..RUNNING).map(|n| format!("long-{n}")).collect();
    submit(&mut client, ids.iter().map(|id| job(id, "job.sleep", r#"{"ms": 2000}"#)).collect()).await.expect("submitted");
    for id in &ids {
        until(&mut client, id, |job| job.state() == v1::JobState::Running).await;
    }
    disk.fill();
    wait_until_full(&mut client).await;
    for id in &ids {
        until(&mut client, id, |job| job.state() == v1::JobState::Succeeded).await;
    }

    // Not even the reserve is left, and the process is killed.
    disk.fill();
    let there = all_jobs(&mut client).await.len();
    server.crash().await;
    server.start_again().await;
    let mut client = server.client().await;
    assert_eq!(all_jobs(&mut client).await.len(), there, "nothing acknowledged is lost, and reads work");
    wait_until_full(&mut client).await;
    wait_until_readyz_says(&server, "503", "store_full").await;

    disk.free();
    wait_until_readyz_says(&server, "200", "ready").await;
    submit(&mut client, vec![job("after", "job.echo", "2")]).await.expect("there is room again");
    until(&mut client, "after", |job| job.state() == v1::JobState::Succeeded).await;
}
