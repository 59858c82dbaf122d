//! `lockgate workers`: who can run jobs.

use clap::Args;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Field, Output, Tone};
use crate::session::Session;
use crate::view;

/// List the workers and what they do
#[derive(Args, Debug)]
pub(crate) struct Workers {}

impl Workers {
    pub(crate) async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
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

fn table(workers: &view::Workers, out: Output) -> String {
    let row = |worker: &view::Worker| {
        let tone = if worker.status == "attached" { Tone::Good } else { Tone::Waiting };
        vec![
            Field::text(&worker.worker_id),
            Field::text(&worker.status).toned(tone),
            Field::text(&worker.pool),
            Field::number(&format!("{}/{}", worker.busy, worker.slots)),
            out.relative_or_dash(worker.last_beat_at),
            Field::text(worker.capabilities.join(" ")),
            Field::clipped(&worker.topics.join(" ")),
        ]
    };
    let rows: Vec<_> = workers.workers.iter().map(row).collect();
    out.table(&["worker", "status", "pool", "busy", "last beat", "capabilities", "topics"], &rows)
}
