//! `lockgate workers`: who can run jobs.

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// List the workers and what they do, or let one leave
#[derive(Args, Debug)]
pub(crate) struct WorkersArgs {
    #[command(subcommand)]
    command: Option<WorkerCommand>,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    List(ListWorkers),
    Drain(DrainWorker),
}

/// List the workers and what they do; the same as `lockgate workers`
#[derive(Args, Debug)]
struct ListWorkers {}

/// Let a worker finish what it holds and leave
#[derive(Args, Debug)]
struct DrainWorker {
    /// Name of the worker
    worker: String,
}

impl WorkersArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        match self.command.unwrap_or(WorkerCommand::List(ListWorkers {})) {
            WorkerCommand::List(command) => command.run(session).await,
            WorkerCommand::Drain(command) => command.run(session).await,
        }
    }
}

impl ListWorkers {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
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

impl DrainWorker {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
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
            TableCell::text(&worker.worker_id),
            TableCell::text(&worker.status).toned(tone),
            TableCell::text(&worker.pool),
            TableCell::number(&format!("{}/{}", worker.busy, worker.slots)),
            TableCell::text(load(worker)),
            out.relative_or_dash(worker.last_beat_at),
            TableCell::text(worker.capabilities.join(" ")),
            TableCell::clipped(&worker.topics.join(" ")),
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
