//! `lockgate worker`: run jobs with the built-in handlers.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lockgate_core::pools::DEFAULT_POOL;
use lockgate_ports::Spans;
use lockgate_worker::handlers::{Builtin, Faults};
use lockgate_worker::{Access, AccessError, Breakers, LeaseLoss, Worker as Library, WorkerError};
use tokio::sync::watch;

use crate::args;
use crate::cli::Connection;
use crate::descriptors;
use crate::effects;
use crate::error::{CliError, Exit};
use crate::faults;
use crate::logging::LogArgs;
use crate::output::Output;
use crate::slots::SlotPlan;
use crate::spans::SpanArgs;

/// Run jobs with the built-in handlers until SIGTERM or Ctrl-C
#[derive(Args, Debug)]
#[command(
    after_long_help = "The topics are job.noop, job.echo, job.sleep, job.flaky, job.always_fail, job.fan_out and job.http_call, \
    and, where they are allowed, job.exec and job.db_tx."
)]
pub(crate) struct WorkerArgs {
    /// Jobs to run at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "COUNT")]
    slots: u32,

    /// Topics with slots of their own, like io=8:job.http_call,mail.*; can be given many times. Others share --slots
    #[arg(long = "slots-for", value_parser = args::group, value_name = "GROUP=COUNT:TOPICS")]
    groups: Vec<args::SlotGroup>,

    /// Let the slots follow the load between these bounds: fewer above 85 % of the processors, more below 40 %
    #[arg(long, value_parser = args::bounds, value_name = "MIN..MAX")]
    adaptive_slots: Option<(u32, u32)>,

    /// With --adaptive-slots: fewer when the slowest in twenty jobs take longer than this, more when they are well below
    #[arg(long, value_parser = args::duration, requires = "adaptive_slots", value_name = "SPAN")]
    target_p95: Option<Duration>,

    /// Name that operators see; random without one
    #[arg(long)]
    name: Option<String>,

    /// Pool that this worker belongs to
    #[arg(long, default_value = DEFAULT_POOL, value_name = "NAME")]
    pool: String,

    /// Something this worker has and jobs may require; can be given many times
    #[arg(long = "capability", value_name = "NAME")]
    capabilities: Vec<String>,

    /// A label, for jobs that ask where they run; can be given many times
    #[arg(long = "label", value_parser = args::pair, value_name = "NAME=VALUE")]
    labels: Vec<(String, String)>,

    /// Where this worker is; jobs may ask for it by the label placement.region
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Jobs to hold ready beside those that run, so that the next one starts at once
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4), value_name = "COUNT")]
    prefetch: u32,

    /// One more server to attach to when the first does not answer; can be given many times
    #[arg(long = "or-server", value_name = "URL")]
    more_servers: Vec<String>,

    /// File that keeps results until the server has them, over a crash of this worker; without it memory keeps them
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,

    /// What becomes of running jobs of a topic when no server is heard until their lease is about to end: stop, so that at no time
    /// two workers run one job, or continue, as without this. A trailing * names every topic with that beginning; can be given many
    /// times, and the last that names a topic holds
    #[arg(long = "on-lease-loss", value_parser = args::lease_loss, value_name = "TOPIC=CHOICE")]
    lease_losses: Vec<(String, LeaseLoss)>,

    /// Serve job.db_tx, with its effects in this folder
    #[arg(long, value_name = "FOLDER")]
    effects: Option<PathBuf>,

    /// Serve job.exec, which runs any command as this user
    #[arg(long)]
    allow_exec: bool,

    /// Let job.http_call reach private, loopback and link-local addresses
    #[arg(long)]
    allow_private_addresses: bool,

    /// Let the key travel in the clear to servers on other machines, as in a mesh that encrypts
    #[arg(long)]
    insecure_plaintext: bool,

    /// For drills: what goes wrong on purpose, and how likely that is for every attempt, like error=0.1,hang=0.01,slow=0.2:500ms or
    /// crash=0.001
    #[arg(long, value_parser = faults::read, value_name = "LIST")]
    faults: Option<Faults>,

    /// How long running jobs may go on after SIGTERM
    #[arg(long, default_value = "30s", value_parser = args::duration, value_name = "SPAN")]
    drain: Duration,

    #[command(flatten)]
    spans: SpanArgs,

    #[command(flatten)]
    log: LogArgs,
}

impl WorkerArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        self.log.start(out)?;
        descriptors::raise_limit();
        faults::announce(self.faults.as_ref(), out);
        let instance = self.name.clone().unwrap_or_else(|| format!("worker-{}", std::process::id()));
        let exporter = self.spans.exporter("lockgate-worker", &instance)?;
        let mut worker = self.into_library(connection)?;
        let (stop, stopping) = watch::channel(false);
        let mut sending = None;
        if let Some(exporter) = exporter {
            let sink = exporter.clone();
            worker = worker.spans(move |span| sink.record(vec![span]));
            sending = Some(tokio::spawn(async move { exporter.run(stopping).await }));
        }
        let ended = worker.run().await;
        stop.send_replace(true);
        if let Some(sending) = sending {
            // Its last words; a task that broke has none.
            let _ = sending.await;
        }
        ended.map_err(|error| refusal(&error))?;
        Ok(Exit::Success)
    }

    fn into_library(self, connection: &Connection) -> Result<Library, CliError> {
        let access = Access { plaintext: self.insecure_plaintext, ..connection.access()? };
        for address in std::iter::once(&connection.server).chain(&self.more_servers) {
            if let Err(error @ AccessError::InTheClear(_)) = access.endpoint(address) {
                return Err(CliError::Usage(format!("{error}, or insist with --insecure-plaintext")));
            }
        }
        let mut worker = Library::connect(connection.server.as_str())
            .tls(access.tls)
            .slots(self.slots)
            .pool(self.pool)
            .prefetch(self.prefetch)
            .drain_timeout(self.drain);
        if let Some(credential) = access.credential {
            worker = worker.credential(credential);
        }
        if self.insecure_plaintext {
            worker = worker.insecure_plaintext();
        }
        for address in self.more_servers {
            worker = worker.or_connect(address);
        }
        for capability in self.capabilities {
            worker = worker.capability(capability);
        }
        for (name, value) in self.labels {
            worker = worker.label(name, value);
        }
        if let Some(region) = self.region {
            worker = worker.region(region);
        }
        if let Some(name) = self.name {
            worker = worker.worker_id(name);
        }
        if let Some(path) = self.journal {
            worker = worker.journal(path);
        }
        let builtin = Builtin {
            allow_exec: self.allow_exec,
            allow_private_addresses: self.allow_private_addresses,
            breakers: Breakers::default(),
            effects: self.effects.as_deref().map(effects::open).transpose()?,
            faults: self.faults,
        };
        let slots = SlotPlan { groups: self.groups, adaptive: self.adaptive_slots, target_p95: self.target_p95 };
        self.lease_losses.into_iter().try_fold(slots.given_to(builtin.register(worker)), with_lease_loss)
    }
}

fn with_lease_loss(worker: Library, (topic, choice): (String, LeaseLoss)) -> Result<Library, CliError> {
    if !worker.has_handler(&topic) {
        return Err(CliError::Usage(format!("--on-lease-loss {topic}: this worker serves no such topic")));
    }
    Ok(worker.on_lease_loss(&topic, choice))
}

fn refusal(error: &WorkerError) -> CliError {
    match error {
        WorkerError::Refused(_) => CliError::Refused { message: error.to_string(), fields: Vec::new() },
        WorkerError::Setup(_) | WorkerError::Journal { .. } | WorkerError::System(_) => CliError::Usage(error.to_string()),
    }
}
