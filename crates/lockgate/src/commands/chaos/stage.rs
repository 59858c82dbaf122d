//! An installation of our own: server processes, workers, and a wire on every way between them.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::super::bench::server::{launch, this_binary};
use super::fault::{Blow, Fault, Part};
use super::proxy::Wire;
use crate::error::CliError;
use crate::servers::Servers;

/// What a slow wire adds to every chunk.
const DELAY: Duration = Duration::from_millis(200);
/// Jobs that a worker runs at once.
const SLOTS: &str = "16";
pub(super) const WORKERS: usize = 2;

pub(super) struct Stage {
    /// Those with an API; one of them alone where nothing is shared.
    gateways: Vec<Process>,
    schedulers: Vec<Process>,
    workers: Vec<Child>,
    /// From each worker to each gateway.
    worker_wires: Vec<Vec<Arc<Wire>>>,
    /// From the client to each gateway.
    pub(super) client_wires: Vec<Arc<Wire>>,
    shared: Option<Shared>,
    /// Where each gateway is now.
    places: Vec<Place>,
    /// Which of the workers and of the schedulers the next blow is for.
    worker_struck: usize,
    scheduler_struck: usize,
    folder: TempDir,
}

/// Where a process is: it may come back elsewhere.
pub(super) type Place = Arc<Mutex<String>>;

/// Ways to the servers of a cluster.
struct Shared {
    postgres: Wire,
    redis: Wire,
    nats: Wire,
}

struct Process {
    child: Child,
    api: String,
    folder: PathBuf,
    arguments: Vec<String>,
}

impl Stage {
    pub(super) async fn start(servers: Option<&Servers>, quick: bool) -> Result<Self, CliError> {
        let folder = TempDir::with_prefix("lockgate-chaos-")?;
        let mut arguments: Vec<String> = Vec::new();
        if quick {
            arguments.extend(["--lost-after", "3s"].map(str::to_owned));
        }
        let shared = match servers {
            Some(servers) => Some(Shared::between(servers, &mut arguments).await?),
            None => None,
        };
        let roles: &[(&str, usize)] = match servers {
            Some(_) => &[("gateway", 2), ("scheduler,orchestrator", 2)],
            None => &[("all", 1)],
        };
        let mut processes = Vec::new();
        for (roles, count) in roles {
            for n in 0..*count {
                let arguments = [arguments.as_slice(), &["--roles".to_owned(), (*roles).to_owned()]].concat();
                let name = format!("{}-{n}", roles.split(',').next().unwrap_or_default());
                processes.push(Process::start(folder.path().join(name), arguments).await?);
            }
        }
        let schedulers = processes.split_off(if servers.is_some() { 2 } else { 1 });
        let places = processes.iter().map(|process| Arc::new(Mutex::new(process.api.clone()))).collect();
        let mut stage = Self {
            gateways: processes,
            schedulers,
            workers: Vec::new(),
            worker_wires: Vec::new(),
            client_wires: Vec::new(),
            shared,
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
        let mut command = this_binary()?;
        command.args(["worker", "--log", "error", "--name", &worker_name(n), "--slots", SLOTS, "--journal"]);
        command.arg(self.folder.path().join(format!("journal-{n}")));
        // Each begins at another gateway and knows them all.
        let wires = &self.worker_wires[n];
        for at in 0..wires.len() {
            command.args([if at == 0 { "--server" } else { "--or-server" }, &wires[(n + at) % wires.len()].url()]);
        }
        command.stderr(log(self.folder.path().join(format!("worker-{n}.log")))?);
        Ok(command.kill_on_drop(true).spawn()?)
    }

    /// Gateways that can be asked while this part is struck, the best place to look first.
    pub(super) fn places(&self, struck: Part) -> Vec<Place> {
        let mut places = self.places.clone();
        if struck == Part::Gateway {
            places.reverse();
        }
        places
    }

    /// Where the schedulers answer.
    pub(super) fn schedulers(&self) -> Vec<String> {
        self.schedulers.iter().map(|scheduler| scheduler.api.clone()).collect()
    }

    pub(super) fn aim_at_scheduler(&mut self, n: usize) {
        self.scheduler_struck = n;
    }

    pub(super) fn aim_at_worker(&mut self, n: usize) {
        self.worker_struck = n;
    }

    /// The name of the worker that the next blow is for.
    pub(super) fn struck_worker(&self) -> String {
        worker_name(self.worker_struck)
    }

    /// Starts the first worker anew, at the gateway that is about to be struck: after earlier faults it may be elsewhere.
    pub(super) async fn bring_worker_back(&mut self) -> Result<(), CliError> {
        self.aim_at_worker(0);
        self.child(Part::Worker).kill().await?;
        self.start_again(Part::Worker).await
    }

    pub(super) fn struck_worker_wires(&self) -> Vec<Arc<Wire>> {
        self.worker_wires[self.worker_struck].clone()
    }

    /// Strikes, says so, waits as long as the fault lasts, and lifts it.
    pub(super) async fn suffer(
        &mut self,
        fault: Fault,
        lasts: Duration,
        struck: oneshot::Sender<()>,
    ) -> Result<(), CliError> {
        self.strike(fault).await?;
        // Whoever waited for it may have given up.
        let _ = struck.send(());
        tokio::time::sleep(lasts).await;
        self.lift(fault).await
    }

    async fn strike(&mut self, fault: Fault) -> Result<(), CliError> {
        match fault.blow {
            Blow::Kill => return Ok(self.child(fault.part).kill().await?),
            Blow::Stop => return self.signal(fault.part, Signal::STOP),
            Blow::Latency => self.wires(fault.part).iter().for_each(|wire| wire.slow(DELAY)),
            Blow::Cut => self.wires(fault.part).iter().for_each(|wire| wire.cut()),
            Blow::HalfOpen => self.wires(fault.part).iter().for_each(|wire| wire.silence()),
            Blow::Reset => self.wires(fault.part).iter().for_each(|wire| wire.reset()),
            Blow::Refuses => return self.limit_files(Some(1)),
            Blow::Shift => {}
        }
        Ok(())
    }

    async fn lift(&mut self, fault: Fault) -> Result<(), CliError> {
        match fault.blow {
            Blow::Kill => self.start_again(fault.part).await,
            Blow::Stop => self.signal(fault.part, Signal::CONT),
            Blow::Latency | Blow::Cut | Blow::HalfOpen | Blow::Reset => {
                self.wires(fault.part).iter().for_each(|wire| wire.mend());
                Ok(())
            }
            // A server may have ended over it, and a supervisor starts such a one again.
            Blow::Refuses if self.gateways[0].child.try_wait()?.is_some() => self.restart_gateway().await,
            Blow::Refuses => self.limit_files(None),
            Blow::Shift => Ok(()),
        }
    }

    fn wires(&self, part: Part) -> Vec<&Wire> {
        let shared = self.shared.as_ref();
        match part {
            Part::Worker => self.worker_wires[self.worker_struck].iter().map(|wire| &**wire).collect(),
            Part::Client => self.client_wires.first().map(|wire| &**wire).into_iter().collect(),
            Part::Postgres => shared.map(|shared| &shared.postgres).into_iter().collect(),
            Part::Redis => shared.map(|shared| &shared.redis).into_iter().collect(),
            Part::Nats => shared.map(|shared| &shared.nats).into_iter().collect(),
            Part::Server | Part::Gateway | Part::Scheduler | Part::Disk | Part::Clock => Vec::new(),
        }
    }

    fn child(&mut self, part: Part) -> &mut Child {
        match part {
            Part::Worker => &mut self.workers[self.worker_struck],
            Part::Scheduler => &mut self.schedulers[self.scheduler_struck].child,
            _ => &mut self.gateways[0].child,
        }
    }

    async fn start_again(&mut self, part: Part) -> Result<(), CliError> {
        match part {
            Part::Worker => self.workers[self.worker_struck] = self.worker(self.worker_struck)?,
            Part::Scheduler => self.schedulers[self.scheduler_struck].start_again().await?,
            _ => self.restart_gateway().await?,
        }
        Ok(())
    }

    async fn restart_gateway(&mut self) -> Result<(), CliError> {
        let gateway = &mut self.gateways[0];
        gateway.start_again().await?;
        let now_at = address(&gateway.api)?;
        self.client_wires[0].lead_to(now_at);
        self.worker_wires.iter().for_each(|wires| wires[0].lead_to(now_at));
        self.places[0].lock().clone_from(&gateway.api);
        Ok(())
    }

    fn signal(&mut self, part: Part, signal: Signal) -> Result<(), CliError> {
        let pid = pid(self.child(part))?;
        kill_process(pid, signal).map_err(|error| CliError::Server(format!("no signal could be sent: {error}")))
    }

    /// No file of the server may grow beyond so many bytes, and what it writes there fails; none: as it was.
    fn limit_files(&mut self, bytes: Option<u64>) -> Result<(), CliError> {
        let maximum = getrlimit(Resource::Fsize).maximum;
        let limit = Rlimit { current: bytes.or(maximum), maximum };
        let limited = prlimit(Some(pid(&self.gateways[0].child)?), Resource::Fsize, limit);
        limited.map(drop).map_err(|error| CliError::Server(format!("the size of files could not be limited: {error}")))
    }
}

impl Process {
    async fn start(folder: PathBuf, arguments: Vec<String>) -> Result<Self, CliError> {
        std::fs::create_dir_all(&folder)?;
        let (child, api) = Self::run(&folder, &arguments).await?;
        Ok(Self { child, api, folder, arguments })
    }

    async fn start_again(&mut self) -> Result<(), CliError> {
        (self.child, self.api) = Self::run(&self.folder, &self.arguments).await?;
        Ok(())
    }

    async fn run(folder: &Path, arguments: &[String]) -> Result<(Child, String), CliError> {
        // Past its limit for files, a process is told by a signal that ends it, unless it does not listen.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe()?);
        command.stdin(Stdio::null()).stderr(log(folder.join("log"))?);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (child, started) = launch(command, folder, &arguments).await?;
        Ok((child, started.api))
    }
}

impl Shared {
    /// Wires to the servers, and the arguments that lead over them.
    async fn between(servers: &Servers, arguments: &mut Vec<String>) -> Result<Self, CliError> {
        let [database_url, redis_url, nats_urls] = servers.addresses();
        let (postgres, database_url) = wired(&database_url).await?;
        let (redis, redis_url) = wired(&redis_url).await?;
        // One server is enough: the others of its cluster are not led over a wire.
        let first = nats_urls.split(',').next().unwrap_or_default();
        let (nats, nats_url) = wired(first).await?;
        arguments.extend(servers.words_at([database_url, redis_url, nats_url]));
        Ok(Self { postgres, redis, nats })
    }
}

/// A wire to the server of a URL, and the URL over it.
async fn wired(url: &str) -> Result<(Wire, String), CliError> {
    let unusable = || CliError::Usage(format!("{url:?} has no plain host:port; chaos puts a wire before it"));
    let place = place(url).ok_or_else(unusable)?;
    let far = tokio::net::lookup_host(place).await?.next().ok_or_else(unusable)?;
    let wire = Wire::to(far).await?;
    let over = url.replacen(place, &wire.address.to_string(), 1);
    Ok((wire, over))
}

/// The host and port in a URL.
fn place(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    place.contains(':').then_some(place)
}

fn address(api: &str) -> Result<SocketAddr, CliError> {
    let place = place(api).and_then(|place| place.parse().ok());
    place.ok_or_else(|| CliError::Server(format!("the server said that it listens on {api:?}")))
}

fn pid(child: &Child) -> Result<Pid, CliError> {
    let raw = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    raw.ok_or_else(|| CliError::Server("a process of the installation has ended by itself".to_owned()))
}

pub(super) fn worker_name(n: usize) -> String {
    format!("chaos-worker-{n}")
}

/// What processes complain about while they are mistreated is not for the terminal.
fn log(path: PathBuf) -> Result<Stdio, CliError> {
    Ok(File::options().create(true).append(true).open(path)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_a_url_is_found_whatever_stands_around_it() {
        assert_eq!(place("postgres://user:a@b@127.0.0.1:5432/db?x=y"), Some("127.0.0.1:5432"));
        assert_eq!(place("redis://localhost:6379"), Some("localhost:6379"));
        assert_eq!(place("http://127.0.0.1:80/"), Some("127.0.0.1:80"));
        assert_eq!(place("postgres:///db?host=/run"), None);
    }
}
