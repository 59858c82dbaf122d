//! `lockgate queues`: how much waits where.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell};
use crate::session::CliSession;

/// Show how many jobs wait, and where
#[derive(Args, Debug)]
pub(crate) struct QueuesArgs {}

impl QueuesArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.client.list_queues(v1::ListQueuesRequest {}).await;
        let queues = view::Queues::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&queues)?;
        } else {
            session.out.line(&text(&queues, session.out))?;
        }
        Ok(Exit::Success)
    }
}

fn text(queues: &view::Queues, out: Output) -> String {
    let dead: u64 = queues.dead_letters.values().sum();
    let totals =
        format!("{} live ({} held by workers), {} ended, {dead} dead letters", queues.live, queues.held, queues.ended);
    if queues.queues.is_empty() {
        return format!("{totals}\nnothing waits");
    }
    let row = |queue: &view::Queue| {
        vec![
            TableCell::text(if queue.pool.is_empty() { "-" } else { &queue.pool }),
            TableCell::text(&queue.priority),
            TableCell::text(&queue.tenant),
            TableCell::text(&queue.shape),
            TableCell::number(&queue.waiting),
            out.relative_or_dash(queue.oldest_at),
        ]
    };
    let rows: Vec<_> = queues.queues.iter().map(row).collect();
    format!("{totals}\n\n{}", out.table(&["pool", "priority", "tenant", "shape", "waiting", "oldest"], &rows))
}
