//! Writes other than changes of jobs: each is one statement or one short transaction.

mod credentials;
mod runs;
mod schedules;
mod sessions;
mod tenants;
mod timelines;
mod trail;
mod turns;
mod upkeep;

pub(crate) use credentials::{add_credential, end_credential};
pub(crate) use runs::{erase_runs, forget_of_runs, prune_runs, put_dag};
pub(crate) use schedules::{prune_slots, turn};
pub(crate) use sessions::{acquire, attach, close_edges, close_session, keep_tries, release, renew_edge, send_away};
pub(crate) use tenants::{erase_jobs, erase_rest, erase_slots};
pub(crate) use timelines::{is_at_work, renew_tokens};
pub(crate) use trail::{activate, append_audit, number_audit, seal};
pub(crate) use upkeep::{append_logs, beat, forget, outbox_done, prune, rehearse};

use std::time::Duration;

use tokio_postgres::Row;

use crate::conn::{Conn, SqlCall};
use crate::error::StatementError;

/// A duration as statements take it.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4)
}

/// A transaction in one round trip.
async fn transact(conn: &mut Conn, begin: &str, calls: &[SqlCall<'_>]) -> Result<Vec<Vec<Row>>, StatementError> {
    let (rows, committed) = conn.together(Some(begin), calls, Some("COMMIT")).await?.split()?;
    committed?;
    Ok(rows)
}
