//! The installation under test: server processes, workers, and a wire for every connection between them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit};
use tempfile::TempDir;
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::fault::{Blow, FaultTarget, PlannedFault};
use super::process::{self, ServerProcess};
use super::proxy::Wire;
use super::ways::{Ways, address};
use crate::error::CliError;
use crate::servers::ServerAddresses;

/// What a slow wire adds to every chunk.
const DELAY: Duration = Duration::from_millis(200);
/// The faults of the failing worker: frequent enough to hit every kind of job, and rare enough for most jobs to succeed.
const FAULTS: &str = "error=0.3,hang=0.02,slow=0.2:500ms";
/// The room that is left to a database that is about to be full: enough for the server to start, and filled by the load
/// within seconds.
const ROOM_BYTES: u64 = 1 << 20;
pub(super) const WORKERS: usize = 2;

pub(super) struct Installation {
    /// The processes with an API; a single one without shared backends.
    gateways: Vec<ServerProcess>,
    schedulers: Vec<ServerProcess>,
    workers: Vec<Child>,
    /// An additional temporary worker whose handlers fail on purpose.
    faulty: Option<Child>,
    /// From each worker to each gateway.
    worker_wires: Vec<Vec<Arc<Wire>>>,
    /// From the client to each gateway.
    pub(super) client_wires: Vec<Arc<Wire>>,
    /// The present address of each gateway.
    places: Vec<ProcessAddress>,
    /// The worker and the scheduler that the next fault targets.
    worker_struck: usize,
    scheduler_struck: usize,
    folder: TempDir,
}

/// The address of a process, which may change at a restart.
pub(super) type ProcessAddress = Arc<Mutex<String>>;

impl Installation {
    pub(super) async fn start(servers: Option<&ServerAddresses>, quick: bool) -> Result<Self, CliError> {
        let folder = TempDir::with_prefix("lockgate-chaos-")?;
        let mut arguments: Vec<String> = Vec::new();
        if quick {
            arguments.extend(["--lost-after", "3s"].map(str::to_owned));
        }
        let roles: &[(&str, usize)] = match servers {
            Some(_) => &[("gateway", 2), ("scheduler,orchestrator", 2)],
            None => &[("all", 1)],
        };
        let mut processes = Vec::new();
        for (roles, count) in roles {
            for n in 0..*count {
                let arguments = [arguments.as_slice(), &["--roles".to_owned(), (*roles).to_owned()]].concat();
                let name = format!("{}-{n}", roles.split(',').next().unwrap_or_default());
                processes.push(ServerProcess::start(folder.path().join(name), arguments, servers).await?);
            }
        }
        let schedulers = processes.split_off(if servers.is_some() { 2 } else { 1 });
        let places = processes.iter().map(|process| Arc::new(Mutex::new(process.api.clone()))).collect();
        let mut stage = Self {
            gateways: processes,
            schedulers,
            workers: Vec::new(),
            faulty: None,
            worker_wires: Vec::new(),
            client_wires: Vec::new(),
            places,
            worker_struck: 0,
            scheduler_struck: 0,
            folder,
        };
        stage.connect().await?;
        Ok(stage)
    }

    async fn connect(&mut self) -> Result<(), CliError> {
        for gateway in &self.gateways {
            self.client_wires.push(Arc::new(Wire::to(address(&gateway.api)?).await?));
        }
        for n in 0..WORKERS {
            let mut wires = Vec::new();
            for gateway in &self.gateways {
                wires.push(Arc::new(Wire::to(address(&gateway.api)?).await?));
            }
            self.worker_wires.push(wires);
            let worker = self.worker(n)?;
            self.workers.push(worker);
        }
        Ok(())
    }

    fn worker(&self, n: usize) -> Result<Child, CliError> {
        // Each begins at another gateway and knows them all.
        let wires = &self.worker_wires[n];
        let servers: Vec<String> = (0..wires.len()).map(|at| wires[(n + at) % wires.len()].url()).collect();
        process::worker(self.folder.path(), &worker_name(n), &servers, &[])
    }

    /// Hanging handlers must not delay its end for long.
    fn faulty_worker(&self) -> Result<Child, CliError> {
        let servers: Vec<String> = self.gateways.iter().map(|gateway| gateway.api.clone()).collect();
        process::worker(self.folder.path(), "chaos-worker-faulty", &servers, &["--faults", FAULTS, "--drain", "1s"])
    }

    /// Gateways that answer while this part is under the fault, the best one for the observer first.
    pub(super) fn places(&self, struck: FaultTarget) -> Vec<ProcessAddress> {
        let mut places = self.places.clone();
        if struck.is_at_gateway() {
            places.reverse();
        }
        places
    }

    /// The addresses of the schedulers.
    pub(super) fn schedulers(&self) -> Vec<String> {
        self.schedulers.iter().map(|scheduler| scheduler.api.clone()).collect()
    }

    /// The address of the scheduler that the next fault targets.
    pub(super) fn struck_scheduler(&self) -> String {
        self.schedulers[self.scheduler_struck].api.clone()
    }

    pub(super) fn aim_at_scheduler(&mut self, n: usize) {
        self.scheduler_struck = n;
    }

    pub(super) fn aim_at_worker(&mut self, n: usize) {
        self.worker_struck = n;
    }

    /// The name of the worker that the next fault targets.
    pub(super) fn struck_worker(&self) -> String {
        worker_name(self.worker_struck)
    }

    /// Restarts the first worker at the gateway that the next fault targets: after earlier faults it may be attached
    /// elsewhere.
    pub(super) async fn bring_worker_back(&mut self) -> Result<(), CliError> {
        self.aim_at_worker(0);
        self.child(FaultTarget::Worker).kill().await?;
        self.start_again(FaultTarget::Worker).await
    }

    pub(super) fn struck_worker_wires(&self) -> Vec<Arc<Wire>> {
        self.worker_wires[self.worker_struck].clone()
    }

    /// Strikes, waits as long as the fault lasts, and lifts it. Sends the time from which a recovery counts; the receiver
    /// may have given up waiting for it.
    pub(super) async fn suffer(
        &mut self,
        fault: PlannedFault,
        lasts: Duration,
        struck: oneshot::Sender<Instant>,
    ) -> Result<(), CliError> {
        self.strike(fault).await?;
        if fault.blow == Blow::Full {
            // Jobs that are still admitted before the room is used up are no recovery.
            tokio::time::sleep(lasts).await;
            self.lift(fault).await?;
            let _ = struck.send(Instant::now());
            return Ok(());
        }
        let _ = struck.send(Instant::now());
        tokio::time::sleep(lasts).await;
        self.lift(fault).await
    }

    async fn strike(&mut self, fault: PlannedFault) -> Result<(), CliError> {
        match fault.blow {
            Blow::Kill => return Ok(self.child(fault.part).kill().await?),
            Blow::Stop => return self.signal(fault.part, Signal::STOP),
            Blow::Latency => self.wires(fault.part).iter().for_each(|wire| wire.slow(DELAY)),
            Blow::Cut => self.wires(fault.part).iter().for_each(|wire| wire.cut()),
            Blow::HalfOpen => self.wires(fault.part).iter().for_each(|wire| wire.silence()),
            Blow::Reset => self.wires(fault.part).iter().for_each(|wire| wire.reset()),
            Blow::Refuses => return self.limit_files(Some(1)),
            Blow::Full => return self.restart_gateway_with(Some(ROOM_BYTES)).await,
            Blow::Fail => self.faulty = Some(self.faulty_worker()?),
            Blow::Shift => {}
        }
        Ok(())
    }

    async fn lift(&mut self, fault: PlannedFault) -> Result<(), CliError> {
        match fault.blow {
            Blow::Kill => self.start_again(fault.part).await,
            Blow::Stop => self.signal(fault.part, Signal::CONT),
            Blow::Latency | Blow::Cut | Blow::HalfOpen | Blow::Reset => {
                self.wires(fault.part).iter().for_each(|wire| wire.mend());
                Ok(())
            }
            // The server may have ended because of it, and a supervisor would restart it.
            Blow::Refuses if self.gateways[0].child.try_wait()?.is_some() => self.restart_gateway().await,
            Blow::Refuses => self.limit_files(None),
            Blow::Full => self.restart_gateway_with(None).await,
            Blow::Fail => match self.faulty.take() {
                Some(mut worker) => process::end(&mut worker).await,
                None => Ok(()),
            },
            Blow::Shift => Ok(()),
        }
    }

    fn wires(&self, part: FaultTarget) -> Vec<&Wire> {
        match part {
            FaultTarget::Worker => self.worker_wires[self.worker_struck].iter().map(|wire| &**wire).collect(),
            FaultTarget::Client => self.client_wires.first().map(|wire| &**wire).into_iter().collect(),
            FaultTarget::Postgres => self.ways().map(|ways| &ways.postgres).collect(),
            FaultTarget::Redis => self.ways().map(|ways| &ways.redis).collect(),
            FaultTarget::Nats => self.ways().map(|ways| &ways.nats).collect(),
            FaultTarget::GatewayPostgres => self.gateways[0].ways.iter().map(|ways| &ways.postgres).collect(),
            FaultTarget::SchedulerRedis => {
                self.schedulers[self.scheduler_struck].ways.iter().map(|ways| &ways.redis).collect()
            }
            FaultTarget::Server
            | FaultTarget::Gateway
            | FaultTarget::Scheduler
            | FaultTarget::Handlers
            | FaultTarget::Disk
            | FaultTarget::Clock => Vec::new(),
        }
    }

    /// The wires of every server process.
    fn ways(&self) -> impl Iterator<Item = &Ways> {
        self.gateways.iter().chain(&self.schedulers).filter_map(|process| process.ways.as_ref())
    }

    fn child(&mut self, part: FaultTarget) -> &mut Child {
        match part {
            FaultTarget::Worker => &mut self.workers[self.worker_struck],
            FaultTarget::Scheduler => &mut self.schedulers[self.scheduler_struck].child,
            _ => &mut self.gateways[0].child,
        }
    }

    async fn start_again(&mut self, part: FaultTarget) -> Result<(), CliError> {
        match part {
            FaultTarget::Worker => self.workers[self.worker_struck] = self.worker(self.worker_struck)?,
            FaultTarget::Scheduler => self.schedulers[self.scheduler_struck].start_again().await?,
            _ => self.restart_gateway().await?,
        }
        Ok(())
    }

    async fn restart_gateway(&mut self) -> Result<(), CliError> {
        self.gateways[0].start_again().await?;
        self.follow_gateway()
    }

    async fn restart_gateway_with(&mut self, room: Option<u64>) -> Result<(), CliError> {
        self.gateways[0].start_anew_with_room_for(room).await?;
        self.follow_gateway()
    }

    /// Points all wires to the gateway's present address.
    fn follow_gateway(&self) -> Result<(), CliError> {
        let gateway = &self.gateways[0];
        let now_at = address(&gateway.api)?;
        self.client_wires[0].lead_to(now_at);
        self.worker_wires.iter().for_each(|wires| wires[0].lead_to(now_at));
        self.places[0].lock().clone_from(&gateway.api);
        Ok(())
    }

    fn signal(&mut self, part: FaultTarget, signal: Signal) -> Result<(), CliError> {
        process::signal(self.child(part), signal)
    }

    /// Limits the size of the server's files to `bytes`, so that writes beyond it fail; None removes the limit.
    fn limit_files(&mut self, bytes: Option<u64>) -> Result<(), CliError> {
        let maximum = getrlimit(Resource::Fsize).maximum;
        let limit = Rlimit { current: bytes.or(maximum), maximum };
        let limited = prlimit(Some(process::pid(&self.gateways[0].child)?), Resource::Fsize, limit);
        limited.map(drop).map_err(|error| CliError::Server(format!("the size of files could not be limited: {error}")))
    }
}

pub(super) fn worker_name(n: usize) -> String {
    format!("chaos-worker-{n}")
}
