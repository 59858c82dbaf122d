//! `lockgate workers`: who can run jobs.

use clap::{Args, Subcommand};
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Field, Output, Tone};
use crate::session::Session;
use crate::view;

/// List the workers and what they do, or let one leave
#[derive(Args, Debug)]
pub(crate) struct Workers {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Drain(Drain),
}

/// List the workers and what they do; the same as `lockgate workers`
#[derive(Args, Debug)]
struct List {}

/// Let a worker finish what it holds and leave
#[derive(Args, Debug)]
struct Drain {
    /// Name of the worker
    worker: String,
}

impl Workers {
    pub(crate) async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
        match self.command.unwrap_or(Command::List(List {})) {
            Command::List(command) => command.run(session).await,
            Command::Drain(command) => command.run(session).await,
        }
    }
}

impl List {
    async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
        let response = session.client.list_workers(v1::ListWorkersRequest {}).await;
        let workers = view::Workers::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&workers)?;
        } else if workers.workers.is_empty() {
            session.out.remark("no workers; start one with `lockgate worker`");
        } else {
            session.out.line(&table(&workers, session.out))?;
        }
        Ok(Exit::Success)
    }
}

impl Drain {
    async fn run(self, session: &Session) -> Result<Exit, CliError> {
        let response = session.pools().drain_worker(v1::DrainWorkerRequest { worker_id: self.worker.clone() }).await;
        let sessions = session.answer(response)?.sessions;
        let out = session.out;
        if out.is_json() {
            out.json(&view::DrainedWorker { worker_id: self.worker, sessions })?;
        } else {
            let note = out.paint("finishes what it holds and leaves", Tone::Waiting);
            out.line(&format!("{}  {note}", self.worker))?;
        }
        Ok(Exit::Success)
    }
}

fn table(workers: &view::Workers, out: Output) -> String {
    let row = |worker: &view::Worker| {
        let tone = if worker.status == "attached" { Tone::Good } else { Tone::Waiting };
        vec![
            Field::text(&worker.worker_id),
            Field::text(&worker.status).toned(tone),
            Field::text(&worker.pool),
            Field::number(&format!("{}/{}", worker.busy, worker.slots)),
            Field::text(load(worker)),
            out.relative_or_dash(worker.last_beat_at),
            Field::text(worker.capabilities.join(" ")),
            Field::clipped(&worker.topics.join(" ")),
        ]
    };
    let rows: Vec<_> = workers.workers.iter().map(row).collect();
    out.table(&["worker", "status", "pool", "busy", "load", "last beat", "capabilities", "topics"], &rows)
}

/// What was measured, and nothing about the rest.
fn load(worker: &view::Worker) -> String {
    let measures = [("cpu", worker.cpu_load), ("gpu", worker.gpu_utilization), ("mem", worker.memory_load)];
    let shown: Vec<String> = measures.iter().filter_map(|(name, load)| Some(format!("{name} {}%", (*load)?))).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(" ") }
}
