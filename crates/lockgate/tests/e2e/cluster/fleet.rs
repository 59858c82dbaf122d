//! Which worker of the fleet gets a job, with workers attached to two gateways.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use lockgate_proto::v1;
use lockgate_proto::v1::worker_client::WorkerClient;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::Streaming;

use super::super::harness::{Client, PATIENCE, Server, job, submit};
use super::stage::{Ground, client};

const SLOTS: u32 = 40;

/// A worker that takes jobs and never ends them. It says which load it has, so that the machine under the test does not matter.
struct Holder {
    name: &'static str,
    held: Arc<Mutex<BTreeMap<String, v1::Held>>>,
    cpu: Arc<AtomicU32>,
    life: JoinHandle<()>,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.life.abort();
    }
}

impl Holder {
    /// Attached, with nothing in its hands.
    async fn attach(name: &'static str, gateway: &Server) -> Self {
        let (outbound, messages) = unbounded();
        let hello = v1::Hello {
            session: format!("session-of-{name}"),
            worker_id: name.to_owned(),
            pool: "fleet".to_owned(),
            topics: vec!["*".to_owned()],
            slots: SLOTS,
            ..v1::Hello::default()
        };
        let first = v1::WorkerMessage { hello: Some(hello), ..v1::WorkerMessage::default() };
        outbound.unbounded_send(first).expect("open");
        let mut worker = WorkerClient::connect(gateway.api.clone()).await.expect("connected");
        let mut inbound = worker.attach(messages).await.expect("attached").into_inner();
        let welcome = inbound.message().await.expect("an answer").expect("a message").welcome;
        assert!(welcome.is_some(), "a welcome comes first");
        let (held, cpu): (Arc<Mutex<BTreeMap<_, _>>>, _) = (Arc::default(), Arc::new(AtomicU32::new(0)));
        let life = tokio::spawn(live(outbound, inbound, Arc::clone(&held), Arc::clone(&cpu)));
        Self { name, held, cpu, life }
    }

    fn has(&self, job: &str) -> bool {
        self.held.lock().contains_key(job)
    }
}

/// Beats, and takes what comes.
async fn live(
    outbound: UnboundedSender<v1::WorkerMessage>,
    mut inbound: Streaming<v1::ServerMessage>,
    held: Arc<Mutex<BTreeMap<String, v1::Held>>>,
    cpu: Arc<AtomicU32>,
) {
    let mut beats = tokio::time::interval(Duration::from_secs(1));
    let (mut number, mut highest) = (0, 0);
    loop {
        let next = tokio::select! {
            _ = beats.tick() => None,
            next = inbound.message() => Some(next),
        };
        let message = match next {
            None => {
                number += 1;
                let inventory: Vec<v1::Held> = held.lock().values().cloned().collect();
                let active_jobs = u32::try_from(inventory.len()).expect("few");
                let cpu_load = Some(cpu.load(Ordering::Relaxed));
                let beat = v1::Beat {
                    highest_assignment: highest,
                    inventory,
                    number,
                    active_jobs,
                    cpu_load,
                    ..v1::Beat::default()
                };
                v1::WorkerMessage { beat: Some(beat), ..v1::WorkerMessage::default() }
            }
            Some(Ok(Some(message))) => {
                let mut held = held.lock();
                let mut starts = Vec::new();
                for v1::Assignment { number, job_id, token, .. } in message.assignments {
                    highest = highest.max(number);
                    starts.push(v1::Start { job_id: job_id.clone(), token: token.clone() });
                    held.insert(job_id.clone(), v1::Held { job_id, token, started_at_ms: None });
                }
                let let_go: Vec<String> = message.stops.into_iter().map(|stop| stop.token).collect();
                held.retain(|_, item| !let_go.contains(&item.token));
                v1::WorkerMessage { starts, let_go, ..v1::WorkerMessage::default() }
            }
            Some(_) => return,
        };
        if outbound.unbounded_send(message).is_err() {
            return;
        }
    }
}

/// Two gateways, and a worker at each.
struct Fleet {
    _ground: Ground,
    gateways: [Server; 2],
    clients: [Client; 2],
    workers: [Holder; 2],
    submitted: u32,
}

const BUSY: usize = 0;
const IDLE: usize = 1;

impl Fleet {
    /// With so many jobs at the first gateway's worker, and both gateways know it.
    async fn uneven(pools: &str, busy_with: u32) -> Self {
        // Which worker is chosen is tested, not how soon its gateway gets a processor of a loaded machine.
        Self::uneven_with(pools, busy_with, &["--no-worker", "--handover-wait", "60s"]).await
    }

    /// Like `uneven`, with these arguments for both gateways.
    async fn uneven_with(pools: &str, busy_with: u32, arguments: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("pools.yaml");
        std::fs::write(&file, pools).expect("written");
        let ground = Ground::start();
        let one = ground.process("gateway,scheduler,orchestrator", arguments).await;
        let applied = one.cli(&["pools", "apply", file.to_str().expect("UTF-8")]).await;
        assert!(applied.status.success(), "{applied:?}");
        let other = ground.process("gateway", arguments).await;
        let busy = Holder::attach("busy", &one).await;
        let mut clients = [client(&one).await, client(&other).await];
        let filling = (0..busy_with).map(|n| job(&format!("filling-{n}"), "t", "null")).collect();
        submit(&mut clients[0], filling).await.expect("taken");
        let idle_yet = wait_for(|| (busy.held.lock().len() == busy_with as usize).then_some(())).await;
        idle_yet.expect("the one worker there is takes them all");
        let idle = Holder::attach("idle", &other).await;
        let fleet = Self { _ground: ground, gateways: [one, other], clients, workers: [busy, idle], submitted: 0 };
        for gateway in &fleet.gateways {
            wait_until_known(gateway, busy_with).await;
        }
        fleet
    }

    /// Submits a job through a gateway, and says which worker got it.
    async fn placed(&mut self, gateway: usize, labels: &[(&str, &str)]) -> (String, &'static str) {
        self.submitted += 1;
        let id = format!("job-{}", self.submitted);
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let new = v1::NewJob { labels, ..job(&id, "t", "null") };
        submit(&mut self.clients[gateway], vec![new]).await.expect("taken");
        let got = wait_for(|| self.workers.iter().find(|worker| worker.has(&id)).map(|worker| worker.name)).await;
        let got = got.unwrap_or_else(|| panic!("{id} was given to no worker"));
        (id, got)
    }

    /// Takes jobs away from their workers again.
    async fn cancel(&mut self, ids: Vec<String>) {
        for id in &ids {
            let cancel = v1::CancelJobRequest { job_id: id.clone(), ..v1::CancelJobRequest::default() };
            self.clients[0].cancel_job(cancel).await.expect("cancelled");
        }
        let gone = wait_for(|| ids.iter().all(|id| self.workers.iter().all(|worker| !worker.has(id))).then_some(())).await;
        gone.expect("the workers let go of them");
    }
}

/// What `look` finds, unless it finds nothing for too long.
async fn wait_for<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE / 3;
    let mut pause = tokio::time::interval(Duration::from_millis(2));
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > deadline {
            return None;
        }
        pause.tick().await;
    }
}

/// Waits until a gateway knows how both workers fare.
async fn wait_until_known(gateway: &Server, busy_with: u32) {
    let deadline = Instant::now() + PATIENCE;
    let expected = BTreeSet::from([("busy".to_owned(), u64::from(busy_with)), ("idle".to_owned(), 0)]);
    loop {
        let output = gateway.cli(&["--json", "workers"]).await;
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let workers = seen.as_array().or_else(|| seen["workers"].as_array()).cloned().unwrap_or_default();
        let heard = workers.iter().filter(|worker| !worker["last_beat_at"].is_null());
        let known = heard.filter_map(|worker| Some((worker["worker_id"].as_str()?.to_owned(), worker["busy"].as_u64()?)));
        if known.collect::<BTreeSet<_>>() == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{} does not know both workers: {seen}", gateway.api);
    }
}

const DIRECT: &str = "topics: {t: fleet}\npools: {fleet: {dispatch: direct}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_direct_pool_go_to_the_idle_worker_whichever_gateway_takes_them() {
    let mut fleet = Fleet::uneven(DIRECT, 25).await;
    for gateway in 0..2 {
        let (mut to_idle, mut ids) = (0, Vec::new());
        for _ in 0..19 {
            let (id, got) = fleet.placed(gateway, &[]).await;
            to_idle += usize::from(got == "idle");
            ids.push(id);
        }
        println!("through gateway {gateway}: {to_idle} of 19 to the idle worker");
        assert!(to_idle >= 18, "through gateway {gateway}: {to_idle} of 19 to the idle worker");
        fleet.cancel(ids).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_worker_that_jobs_prefer_gets_all_of_them_whichever_gateway_takes_them() {
    for pools in [DIRECT, "topics: {t: fleet}\npools: {fleet: {}}\n"] {
        let mut fleet = Fleet::uneven(pools, 25).await;
        for (gateway, worker) in [(0, BUSY), (0, IDLE), (1, BUSY), (1, IDLE)] {
            let name = fleet.workers[worker].name;
            let mut honoured = 0;
            for _ in 0..20 {
                let (id, got) = fleet.placed(gateway, &[("preferred_worker_id", name)]).await;
                honoured += usize::from(got == name);
                fleet.cancel(vec![id]).await;
            }
            println!("{} through gateway {gateway}: {honoured} of 20 to {name}", pools.trim());
            assert_eq!(honoured, 20, "{pools} through gateway {gateway}: preferring {name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_hangs_with_many_idle_workers_costs_one_wait() {
    let mut fleet = Fleet::uneven_with(DIRECT, 25, &["--no-worker", "--handover-wait", "3s"]).await;
    let names = ["idle-1", "idle-2", "idle-3", "idle-4", "idle-5", "idle-6", "idle-7", "idle-8"];
    let mut more = Vec::new();
    for name in names {
        more.push(Holder::attach(name, &fleet.gateways[1]).await);
    }
    fleet.gateways[0].wait_for_output(&["--json", "workers"], "idle-8").await;
    let (id, got) = fleet.placed(0, &[("preferred_worker_id", "idle")]).await;
    assert_eq!(got, "idle", "the gateways hear each other");
    fleet.cancel(vec![id]).await;
    fleet.gateways[1].pause().await;
    let began = Instant::now();
    let (_, got) = fleet.placed(0, &[]).await;
    println!("placed beside a gateway that hangs after {:?}", began.elapsed());
    assert_eq!(got, "busy");
    assert!(began.elapsed() < Duration::from_secs(15), "nine waits would take 27 s: {:?}", began.elapsed());
}

/// Waits until a gateway has heard that both workers are hot.
async fn wait_until_hot(gateway: &Server) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = gateway.cli(&["workers"]).await;
        if String::from_utf8_lossy(&output.stdout).matches("cpu 95%").count() == 2 {
            return;
        }
        assert!(Instant::now() < deadline, "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_a_direct_pool_that_are_over_90_percent_get_nothing_and_both_gateways_say_so() {
    let mut fleet = Fleet::uneven(DIRECT, 1).await;
    for worker in &fleet.workers {
        worker.cpu.store(95, Ordering::Relaxed);
    }
    for gateway in &fleet.gateways {
        wait_until_hot(gateway).await;
    }
    submit(&mut fleet.clients[0], vec![job("waits", "t", "null")]).await.expect("taken");
    for gateway in &fleet.gateways {
        gateway.wait_for_output(&["why", "waits"], "pool_overloaded").await;
    }
    fleet.workers[IDLE].cpu.store(10, Ordering::Relaxed);
    let got = wait_for(|| fleet.workers.iter().find(|worker| worker.has("waits")).map(|worker| worker.name)).await;
    assert_eq!(got, Some("idle"), "it cooled down");
}
