//! `lockgate serve`: the whole system in one process.

mod backends;
mod banner;
mod bus_submits;
mod bus_workers;
mod defaults;
mod files;
mod governance;
mod guard;
mod identity;
mod keyfile;
mod metrics;
mod parts;
mod relay;
mod roles;
mod routing;
mod wiring;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lockgate_core::pools::DEFAULT_POOL;
use lockgate_worker::handlers::Faults;
use tokio::signal::unix::{SignalKind, signal};

use crate::args;
use crate::error::{CliError, Exit};
use crate::faults;
use crate::logging::LogArgs;
use crate::output::Output;
use crate::servers::ServerArgs;
use crate::size;
use crate::spans::SpanArgs;
use roles::{Role, RoleSet};
use wiring::RunningServer;

/// The sweep runs every minute, so it sees a run more than once before the run is declared orphaned.
const ORPHAN_AFTER_MIN: Duration = Duration::from_secs(60);
/// With a shorter time, beats that are a little late would lose attempts.
const LOST_AFTER_MIN: Duration = Duration::from_secs(3);
/// A smaller database has room for nothing but its empty tables.
const DISK_LIMIT_MIN: u64 = 1 << 20;

/// Run the server: API, scheduler and a built-in worker, on one data folder
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Folder that holds everything; made if it does not exist
    #[arg(long, env = "LOCKGATE_DATA", hide_env_values = true, default_value = "lockgate-data", value_name = "FOLDER")]
    data: PathBuf,

    /// Most bytes of the database in that folder, such as 10G: new jobs are refused rather than the disk filled up
    #[arg(long, env = "LOCKGATE_DISK_LIMIT", hide_env_values = true, value_parser = size::bytes, value_name = "BYTES")]
    disk_limit: Option<u64>,

    /// Start although acknowledged work is missing in the data folder, and go on with what is left; docs/backup.md says more
    #[arg(long)]
    accept_loss: bool,

    /// What this process does
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all", value_name = "ROLES")]
    roles: Vec<Role>,

    /// Address of the API: gRPC and REST on one port
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Address of the metrics
    #[arg(long, default_value = "127.0.0.1:9090", value_name = "ADDRESS")]
    metrics: SocketAddr,

    /// Jobs the built-in worker runs at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "COUNT")]
    worker_slots: u32,

    /// Topics with slots of their own in the built-in worker, like io=8:job.http_call; can be given many times
    #[arg(long = "worker-slots-for", value_parser = args::group, value_name = "GROUP=COUNT:TOPICS")]
    worker_groups: Vec<args::SlotGroup>,

    /// Let the slots of the built-in worker follow the load between these bounds
    #[arg(long, value_parser = args::bounds, value_name = "MIN..MAX")]
    worker_adaptive_slots: Option<(u32, u32)>,

    /// With --worker-adaptive-slots: fewer when the slowest in twenty jobs take longer than this
    #[arg(long, value_parser = args::duration, requires = "worker_adaptive_slots", value_name = "SPAN")]
    worker_target_p95: Option<Duration>,

    /// Pool that the built-in worker belongs to
    #[arg(long, default_value = DEFAULT_POOL, value_name = "NAME")]
    worker_pool: String,

    /// For drills: what goes wrong on purpose in the built-in worker, and how likely that is for every attempt, like
    /// error=0.1,hang=0.01,slow=0.2:500ms
    #[arg(long, conflicts_with = "no_worker", value_parser = faults::read, value_name = "LIST")]
    worker_faults: Option<Faults>,

    /// Serve no dashboard, only the API
    #[arg(long)]
    no_dashboard: bool,

    /// Run no worker in this process
    #[arg(long)]
    no_worker: bool,

    /// Serve job.exec, which runs any command as this user
    #[arg(long, conflicts_with = "no_worker")]
    allow_exec: bool,

    /// Let job.http_call reach private, loopback and link-local addresses
    #[arg(long, conflicts_with = "no_worker")]
    allow_private_addresses: bool,

    /// Silence after which a worker counts as lost and its jobs go elsewhere; at least 3s
    #[arg(long, default_value = "10s", value_parser = args::duration, value_name = "SPAN")]
    lost_after: Duration,

    /// How long a run may wait for nothing, although it was planned anew, before it is ended; at least 1m
    #[arg(long, default_value = "5m", value_parser = args::duration, value_name = "SPAN")]
    orphan_after: Duration,

    /// Maximum time that Store failures may postpone lost-worker detection while our lease is healthy
    #[arg(long, default_value = "3m", value_parser = args::duration, value_name = "SPAN")]
    defer_max: Duration,

    /// In a cluster, how long the gateway of the worker that was chosen for a job has to claim it before another worker gets the job
    #[arg(long, default_value = "500ms", value_parser = args::duration, value_name = "SPAN")]
    handover_wait: Duration,

    /// How long a jump of this machine's clock must stand before it is followed; 0s follows every jump at once
    #[arg(long, default_value = "10m", value_parser = args::duration, value_name = "SPAN")]
    clock_settle: Duration,

    /// Attempts a second that run again when many are lost at once
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..), value_name = "COUNT")]
    loss_rate: u32,

    /// How long ended jobs are kept; their ids and idempotency keys are forgotten with them
    #[arg(long, default_value = "7d", value_parser = args::duration, value_name = "SPAN")]
    retention: Duration,

    /// How long running jobs may go on after SIGTERM
    #[arg(long, default_value = "30s", value_parser = args::duration, value_name = "SPAN")]
    drain: Duration,

    /// How long to go on answering after SIGTERM while /readyz says no, so that load balancers look elsewhere first
    #[arg(long, value_parser = args::duration, value_name = "SPAN")]
    linger: Option<Duration>,

    /// Listen on other than loopback addresses although clients are not authenticated
    #[arg(long)]
    insecure_no_auth: bool,

    #[command(flatten)]
    identity: identity::IdentityArgs,

    #[command(flatten)]
    servers: ServerArgs,

    #[command(flatten)]
    bus_submits: bus_submits::BusSubmitArgs,

    #[command(flatten)]
    bus_workers: bus_workers::OutpostArgs,

    #[command(flatten)]
    relay: relay::RelayArgs,

    #[command(flatten)]
    governance: governance::GovernanceArgs,

    #[command(flatten)]
    routing: routing::RoutingArgs,

    #[command(flatten)]
    spans: SpanArgs,

    #[command(flatten)]
    log: LogArgs,
}

impl Serve {
    fn roles(&self) -> Result<RoleSet, CliError> {
        let roles = RoleSet::of(&self.roles, self.no_worker, self.servers.is_shared()?)?;
        Ok(if self.bus_workers.nats_workers { roles.with_workers() } else { roles })
    }

    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        let roles = self.roles()?;
        self.check(roles)?;
        self.log.start(out)?;
        faults::announce(self.worker_faults.as_ref(), out);
        // Before any program can learn that this process is up and send it a signal to stop.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut server = RunningServer::start(&self, roles).await?;
        banner::show(&self, &server, out)?;
        let mut fatal = server.fatal();
        tokio::select! {
            // `biased`: a failed disk may be the cause of an ended part, and its error says more.
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            // After a failed fsync it is unknown what is on disk: only a restart finds out.
            Ok(error) = fatal.wait_for(Option::is_some) => {
                let text = error.as_ref().map_or_else(String::new, ToString::to_string);
                return Err(CliError::Server(format!("the disk did not confirm a write, so the server stops at once: {text}")));
            }
            how = server.broken() => {
                tracing::error!("{how}");
                return Err(CliError::Server(format!("the server cannot go on: {how}")));
            }
        }
        if let Some(linger) = self.linger {
            server.leave();
            tracing::info!(
                "leaving: calls are answered for {linger:?} more, and /readyz sends them elsewhere; a second signal stops at once"
            );
            tokio::select! {
                () = tokio::time::sleep(linger) => {}
                _ = terminate.recv() => return Ok(Exit::Success),
                _ = interrupt.recv() => return Ok(Exit::Success),
            }
        }
        tracing::info!("stopping: running jobs may finish for {:?}; a second signal stops at once", self.drain);
        tokio::select! {
            () = server.stop() => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(Exit::Success)
    }

    fn check(&self, roles: RoleSet) -> Result<(), CliError> {
        if roles.judges_only() && (self.routing.pools.is_some() || self.routing.timeouts.is_some()) {
            let text = "--pools and --timeouts rule where jobs run; with --roles kernel no jobs run here";
            return Err(CliError::Usage(text.to_owned()));
        }
        if self.orphan_after < ORPHAN_AFTER_MIN {
            return Err(CliError::Usage("--orphan-after must be at least 1m".to_owned()));
        }
        if self.lost_after < LOST_AFTER_MIN {
            return Err(CliError::Usage("--lost-after must be at least 3s".to_owned()));
        }
        self.governance.check()?;
        self.check_folder_flags()?;
        self.bus_submits.check(roles, self.servers.is_shared()?, self.identity.auth)?;
        self.bus_workers.check(roles, self.servers.is_shared()?, self.identity.auth)?;
        self.relay.check(roles, self.servers.is_shared()?)?;
        self.identity.check(self.insecure_no_auth)?;
        self.check_addresses()
    }

    fn check_folder_flags(&self) -> Result<(), CliError> {
        let text = match self.disk_limit {
            Some(bytes) if bytes < DISK_LIMIT_MIN => "--disk-limit must be at least 1M",
            Some(_) if self.servers.is_shared()? => "--disk-limit is for a folder of its own, not for PostgreSQL",
            _ if self.accept_loss && self.servers.is_shared()? => {
                "--accept-loss is for a folder of its own, not for PostgreSQL"
            }
            _ => return Ok(()),
        };
        Err(CliError::Usage(text.to_owned()))
    }

    fn check_addresses(&self) -> Result<(), CliError> {
        let addresses = [("--listen", self.listen), ("--metrics", self.metrics)];
        addresses
            .into_iter()
            .try_for_each(|(flag, address)| self.identity.check_address(flag, address, self.insecure_no_auth))
    }
}

#[cfg(test)]
impl Serve {
    /// As it is typed.
    fn typed(words: &[&str]) -> Self {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            serve: Serve,
        }

        let line: Line = clap::Parser::try_parse_from([&["serve"], words].concat()).expect("good usage");
        line.serve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str]) -> Result<(), String> {
        let serve = Serve::typed(words);
        serve.roles().and_then(|roles| serve.check(roles)).map_err(|error| error.to_string())
    }

    #[test]
    fn spans_that_would_call_the_living_lost_are_refused() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&["--lost-after", "3s"]), Ok(()));
        for (flag, span, least) in
            [("--lost-after", "2999ms", "3s"), ("--lost-after", "1ms", "3s"), ("--orphan-after", "59s", "1m")]
        {
            let told = check(&[flag, span]).expect_err(span);
            assert!(told.contains(&format!("{flag} must be at least {least}")), "{told}");
        }
    }
}
