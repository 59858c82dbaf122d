//! Promise 1 while parts of the cluster die, forget and hang: nothing acknowledged is lost, nothing ends twice.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lockgate_proto::v1;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::harness::{Client, PATIENCE, Server, all_jobs, job, submit, until_idle};
use super::stage::{Ground, client, worker};

/// Jobs in one submit, and how often one is made: more than the cluster would notice, less than it can do.
const BATCH: usize = 40;
const EVERY: Duration = Duration::from_millis(100);

/// A client that submits until it is told to stop, at whichever gateway answers, and repeats what was not acknowledged.
pub(crate) struct Load {
    acknowledged: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    running: JoinHandle<BTreeSet<String>>,
}

impl Load {
    pub(crate) fn start(gateways: &[Server]) -> Self {
        let apis: Vec<String> = gateways.iter().map(|gateway| gateway.api.clone()).collect();
        let (acknowledged, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let running = tokio::spawn(keep_submitting(apis, acknowledged.clone(), over.clone()));
        Self { acknowledged, over, running }
    }

    /// Waits until so many more jobs were acknowledged, however slowly, as long as it goes on.
    pub(crate) async fn go_on(&self, more: usize) {
        let mut seen = self.acknowledged.load(Ordering::Relaxed);
        let wanted = seen + more;
        let mut deadline = Instant::now() + PATIENCE;
        let mut pause = tokio::time::interval(Duration::from_millis(5));
        while seen < wanted {
            assert!(Instant::now() < deadline, "the load came to a halt");
            pause.tick().await;
            let now = self.acknowledged.load(Ordering::Relaxed);
            if now > seen {
                (seen, deadline) = (now, Instant::now() + PATIENCE);
            }
        }
    }

    /// What was acknowledged.
    pub(crate) async fn stop(self) -> BTreeSet<String> {
        self.over.store(true, Ordering::Relaxed);
        self.running.await.expect("the load ends")
    }
}

async fn keep_submitting(apis: Vec<String>, count: Arc<AtomicUsize>, over: Arc<AtomicBool>) -> BTreeSet<String> {
    let mut acknowledged = BTreeSet::new();
    let mut pace = tokio::time::interval(EVERY);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut serial = 0;
    for api in apis.iter().cycle() {
        let Ok(mut client) = Client::connect(api.clone()).await else {
            pace.tick().await;
            continue;
        };
        loop {
            if over.load(Ordering::Relaxed) {
                return acknowledged;
            }
            pace.tick().await;
            let batch = (serial..serial + BATCH).map(|n| job(&format!("load-{n}"), "job.noop", "null")).collect();
            // The jobs again, at another server: if the first submit was stored without an acknowledgement, their ids make
            // this a repeat.
            let Ok(ids) = submit(&mut client, batch).await else { break };
            serial += BATCH;
            count.fetch_add(ids.len(), Ordering::Relaxed);
            acknowledged.extend(ids);
        }
    }
    acknowledged
}

/// Every acknowledged job ended once and well.
pub(crate) async fn check_exact(client: &mut Client, acknowledged: &BTreeSet<String>) {
    let mut ended = BTreeSet::new();
    for job in all_jobs(client).await {
        assert_eq!(job.state(), v1::JobState::Succeeded, "{job:?}");
        assert!(ended.insert(job.job_id.clone()), "there twice: {}", job.job_id);
    }
    let missing: Vec<_> = acknowledged.difference(&ended).collect();
    assert!(missing.is_empty(), "acknowledged and gone: {missing:?}");
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillScheduler,
    KillGateway,
    KillWorker,
    FlushRedis,
    WipeNats,
    RestartPostgres,
    PauseRedis,
}

const FAULTS: [Fault; 7] = [
    Fault::KillScheduler,
    Fault::KillGateway,
    Fault::KillWorker,
    Fault::FlushRedis,
    Fault::WipeNats,
    Fault::RestartPostgres,
    Fault::PauseRedis,
];

struct Cluster {
    ground: Ground,
    gateways: Vec<Server>,
    schedulers: Vec<Server>,
    workers: Vec<Child>,
}

impl Cluster {
    async fn start(schedulers: usize, gateways: usize, workers: usize) -> Self {
        let ground = Ground::start();
        let mut this = Self { ground, gateways: Vec::new(), schedulers: Vec::new(), workers: Vec::new() };
        for _ in 0..gateways {
            this.gateways.push(this.ground.process("gateway", &[]).await);
        }
        for _ in 0..schedulers {
            this.schedulers.push(this.ground.process("scheduler", &[]).await);
        }
        for n in 0..workers {
            this.workers.push(this.worker(n));
        }
        this
    }

    fn worker(&self, n: usize) -> Child {
        // Each begins at another gateway and knows them all.
        let mut gateways: Vec<&Server> = self.gateways.iter().collect();
        let shift = n % gateways.len();
        gateways.rotate_left(shift);
        worker(&format!("worker-{n}"), 32, &gateways)
    }

    async fn suffer(&mut self, fault: Fault, pause: Duration) {
        match fault {
            Fault::KillScheduler => self.schedulers[0].crash_and_restart().await,
            Fault::KillGateway => self.gateways[0].crash_and_restart().await,
            Fault::KillWorker => {
                self.workers[0].kill().await.expect("killed");
                self.workers[0] = self.worker(0);
            }
            Fault::FlushRedis => {
                self.ground.redis.command("FLUSHALL").expect("flushed");
                self.wait_for_number("lockgate_lanes_rebuilt_total").await;
            }
            Fault::WipeNats => self.ground.nats.wipe().expect("restarted"),
            Fault::RestartPostgres => {
                self.ground.postgres.kill();
                self.wait_for_number("lockgate_reaper_list_errors_total").await;
                self.ground.postgres.restart().expect("restarted");
            }
            Fault::PauseRedis => {
                self.ground.redis.pause();
                wait_out(pause).await;
                self.ground.redis.resume();
            }
        }
    }
}

impl Cluster {
    /// Waits until one of the processes counted something under this name.
    async fn wait_for_number(&self, name: &str) {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = tokio::time::interval(Duration::from_millis(50));
        loop {
            for server in self.gateways.iter().chain(&self.schedulers) {
                if server.number(name).await > 0.0 {
                    return;
                }
            }
            assert!(Instant::now() < deadline, "{name} did not move");
            pause.tick().await;
        }
    }
}

/// How long a part hangs is what is tested here, not a guess about how long something takes.
async fn wait_out(span: Duration) {
    tokio::time::sleep(span).await;
}

/// How long it takes until jobs run again.
async fn recovered(gateway: &Server, probe: &str) -> Duration {
    let began = Instant::now();
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    loop {
        assert!(began.elapsed() < PATIENCE, "{probe}: nothing runs");
        pause.tick().await;
        let Ok(mut client) = Client::connect(gateway.api.clone()).await else { continue };
        if submit(&mut client, vec![job(probe, "job.noop", "null")]).await.is_err() {
            continue;
        }
        let done = client.get_job(v1::GetJobRequest { job_id: probe.to_owned() }).await;
        if done.is_ok_and(|job| job.get_ref().state() == v1::JobState::Succeeded) {
            return began.elapsed();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_once_under_load_loses_and_doubles_nothing() {
    // `make soak-cluster` asks for more.
    let number = |name: &str, usual: usize| std::env::var_os(name).and_then(|n| n.to_str()?.parse().ok()).unwrap_or(usual);
    let (jobs, pause) = (number("LOCKGATE_SOAK_JOBS", 1_400), number("LOCKGATE_SOAK_PAUSE_SECONDS", 3) as u64);
    let seed = number("LOCKGATE_SOAK_SEED", usize::try_from(RandomState::new().hash_one(0) >> 33).expect("31 bits"));
    println!("LOCKGATE_SOAK_SEED={seed}");
    let mut cluster = Cluster::start(3, 2, 4).await;
    let load = Load::start(&cluster.gateways);
    let mut faults = FAULTS.to_vec();
    let mut dice = seed;
    while !faults.is_empty() {
        load.go_on(jobs / FAULTS.len()).await;
        let fault = faults.remove(dice % faults.len());
        dice /= 7;
        cluster.suffer(fault, Duration::from_secs(pause)).await;
        let took = recovered(&cluster.gateways[1], &format!("probe-{fault:?}")).await;
        println!("{fault:?}: jobs run again after {took:?}");
    }
    load.go_on(jobs / FAULTS.len()).await;
    let acknowledged = load.stop().await;
    let mut client = client(&cluster.gateways[0]).await;
    until_idle(&mut client).await;
    check_exact(&mut client, &acknowledged).await;
    println!("{} acknowledged jobs ended once each", acknowledged.len());
}
