//! Reads schedules and their slots.

use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::SlotQuery;
use lockgate_ports::{Listing, Unreadable};
use rusqlite::{Connection, Row, Rows, params};

use super::damage::EVERY_ROW;
use super::lists::ListPage;
use super::{collect, text};
use crate::error::StatementError;

pub(super) const SCHEDULE: &str =
    "SELECT tenant, name, version, wakes_at, body FROM schedules WHERE tenant = ?1 AND name = ?2";
pub(super) const SCHEDULES: &str = "SELECT tenant, name, version, wakes_at, body FROM schedules
    WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
pub(super) const NEXT: &str = "SELECT wakes_at FROM schedules WHERE wakes_at IS NOT NULL ORDER BY wakes_at LIMIT 1";

pub(crate) fn load_schedules(
    conn: &Connection,
    keys: &[(TenantId, Arc<str>)],
) -> Result<Vec<Option<Schedule>>, StatementError> {
    let load = |(tenant, name): &(TenantId, Arc<str>)| {
        Ok(collect(conn, SCHEDULE, params![tenant.as_str(), &**name], schedule)?.pop())
    };
    keys.iter().map(load).collect()
}

pub(crate) fn list_schedules(
    conn: &Connection,
    unreadable: &Unreadable,
    tenant: &TenantId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Schedule>, StatementError> {
    let mut statement = conn.prepare_cached(SCHEDULES)?;
    let mut rows = statement.query(params![tenant.as_str(), after.unwrap_or_default(), EVERY_ROW])?;
    readable(&mut rows, unreadable, limit)
}

/// The first schedules of a query that can be decoded.
fn readable(rows: &mut Rows<'_>, unreadable: &Unreadable, limit: usize) -> Result<Vec<Schedule>, StatementError> {
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let (tenant, name) = (text(row, 0)?, text(row, 1)?);
        found.extend(unreadable.or_told(|| format!("schedule {name} of {tenant}"), schedule(row))?);
    }
    Ok(found)
}

pub(crate) fn due_schedules(
    conn: &Connection,
    unreadable: &Unreadable,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Schedule>, StatementError> {
    let mut statement = conn.prepare_cached(include_str!("../../queries/due_schedules.sql"))?;
    let mut rows = statement.query([now.as_millis(), EVERY_ROW])?;
    readable(&mut rows, unreadable, limit)
}

pub(crate) fn next_schedule(conn: &Connection) -> Result<Option<Timestamp>, StatementError> {
    Ok(collect(conn, NEXT, [], |row| Ok(Timestamp::from_millis(row.get(0)?)))?.pop())
}

/// Columns: tenant, name, version, time to wake, body.
fn schedule(row: &Row<'_>) -> Result<Schedule, StatementError> {
    let mut schedule: Schedule = serde_json::from_str(row.get_ref(4)?.as_str()?)?;
    schedule.tenant = TenantId::new(text(row, 0)?);
    schedule.name = text(row, 1)?;
    schedule.version = row.get(2)?;
    schedule.wakes_at = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
    Ok(schedule)
}

pub(crate) fn list_slots(
    conn: &Connection,
    unreadable: &Unreadable,
    query: &SlotQuery,
) -> Result<Listing<Slot>, StatementError> {
    let before = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
    let mut statement = conn.prepare_cached(include_str!("../../queries/list_slots.sql"))?;
    let mut rows = statement.query(params![query.tenant.as_str(), &*query.schedule, before, EVERY_ROW])?;
    let mut page = ListPage::new(query.limit);
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        let place = row.get(0)?;
        page.look_at(place);
        let read = row.get_ref(1)?.as_str().map_err(StatementError::from);
        let slot = read.and_then(|body| Ok(serde_json::from_str(body)?));
        page.items.extend(unreadable.or_told(|| format!("slot {place} of schedule {}", query.schedule), slot)?);
    }
    Ok(page.done())
}
