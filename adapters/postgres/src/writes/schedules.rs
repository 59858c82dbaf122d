//! Writes turns of schedules, and deletes slots past their retention.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_ports::store::{TurnConflict, places};
use lockgate_sql::EncodedScheduleTurn;

use super::millis;
use super::turns::{TurnWrites, births, column};
use crate::conn::{Conn, SqlCall};
use crate::error::StatementError;
use crate::row::{bounded, get};

/// Two round trips, however many turns: the first locks and reads the schedules; then the turns are applied in memory; the
/// second writes the outcome with COMMIT. A concurrent change of one of the schedules waits for its row lock, even if the
/// answer to COMMIT is lost. So a call of unknown outcome can be read back by version and needs no other fence.
pub(crate) async fn turn(
    conn: &mut Conn,
    begin: &str,
    sheets: &[EncodedScheduleTurn],
) -> Result<Vec<Result<(), TurnConflict>>, StatementError> {
    let births = births(sheets);
    let calls = [lock(sheets), begin_all(&births), seen(sheets)];
    let (found, _) = conn.together(Some(begin), &calls, None).await?.split()?;
    let [locked, begun, slots] = found.as_slice() else {
        return Err(StatementError::Row("a statement was not answered".to_owned()));
    };
    let mut draft = TurnWrites::over(&births, locked, begun, slots)?;
    let results = sheets.iter().map(|sheet| draft.take(sheet)).collect();
    let (_, committed) = conn.together(None, &draft.calls(), Some("COMMIT")).await?.split()?;
    committed?;
    Ok(results)
}

fn lock(sheets: &[EncodedScheduleTurn]) -> SqlCall<'_> {
    let names: Vec<(&str, &str)> =
        sheets.iter().map(EncodedScheduleTurn::name).collect::<BTreeSet<_>>().into_iter().collect();
    let params = vec![column(&names, |name| name.0), column(&names, |name| name.1)];
    SqlCall { sql: include_str!("../../queries/lock_schedules.sql"), params }
}

/// A row that does not exist cannot be locked, so it is inserted first, and deleted if no turn creates the schedule after
/// all.
fn begin_all<'a>(births: &BTreeMap<(&'a str, &'a str), &'a EncodedScheduleTurn>) -> SqlCall<'a> {
    let births: Vec<&EncodedScheduleTurn> = births.values().copied().collect();
    let params = vec![
        column(&births, |sheet| sheet.name().0),
        column(&births, |sheet| sheet.name().1),
        column(&births, |sheet| sheet.schedule.wakes_at.map(|at| at.as_millis())),
        column(&births, |sheet| sheet.body.as_str()),
    ];
    SqlCall { sql: include_str!("../../queries/begin_schedules.sql"), params }
}

/// Reads the slots of all times that the turns touch: which exist, and the next free position.
fn seen(sheets: &[EncodedScheduleTurn]) -> SqlCall<'_> {
    let times = sheets.iter().flat_map(|sheet| sheet.slots().map(|slot| (sheet.name(), places(slot.key.nominal))));
    let times: Vec<_> = times.collect::<BTreeSet<_>>().into_iter().collect();
    let params = vec![
        column(&times, |(name, _)| name.0),
        column(&times, |(name, _)| name.1),
        column(&times, |(_, (first, _))| *first),
        column(&times, |(_, (_, last))| *last),
    ];
    SqlCall { sql: include_str!("../../queries/slots_of_times.sql"), params }
}

/// Deletes one batch of slots, oldest decision first. Returns how many.
pub(crate) async fn prune_slots(
    conn: &mut Conn,
    now: Option<i64>,
    keep: Duration,
    limit: usize,
) -> Result<u64, StatementError> {
    let rows = conn.rows(include_str!("../../queries/prune_slots.sql"), &[&now, &millis(keep), &bounded(limit)]).await?;
    let gone: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
    Ok(gone.unsigned_abs())
}
