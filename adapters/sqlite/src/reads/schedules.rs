//! Schedules and their slots.

use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::SlotQuery;
use lockgate_ports::{Listing, Unreadable};
use rusqlite::{Connection, Row, params};

use super::damage::EVERY_ROW;
use super::lists::{Page, ROWS_MAX};
use super::{bounded, collect, text};
use crate::error::Fault;

pub(super) const SCHEDULE: &str =
    "SELECT tenant, name, version, wakes_at, body FROM schedules WHERE tenant = ?1 AND name = ?2";
pub(super) const SCHEDULES: &str = "SELECT tenant, name, version, wakes_at, body FROM schedules
    WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
pub(super) const NEXT: &str = "SELECT wakes_at FROM schedules WHERE wakes_at IS NOT NULL ORDER BY wakes_at LIMIT 1";

pub(crate) fn load_schedules(conn: &Connection, keys: &[(TenantId, Arc<str>)]) -> Result<Vec<Option<Schedule>>, Fault> {
    let load = |(tenant, name): &(TenantId, Arc<str>)| {
        Ok(collect(conn, SCHEDULE, params![tenant.as_str(), &**name], schedule)?.pop())
    };
    keys.iter().map(load).collect()
}

pub(crate) fn list_schedules(
    conn: &Connection,
    tenant: &TenantId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Schedule>, Fault> {
    collect(conn, SCHEDULES, params![tenant.as_str(), after.unwrap_or_default(), bounded(limit)], schedule)
}

pub(crate) fn due_schedules(
    conn: &Connection,
    unreadable: &Unreadable,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Schedule>, Fault> {
    let mut statement = conn.prepare_cached(include_str!("../../queries/due_schedules.sql"))?;
    let mut rows = statement.query([now.as_millis(), EVERY_ROW])?;
    let mut due = Vec::new();
    while due.len() < limit
        && let Some(row) = rows.next()?
    {
        let (tenant, name) = (text(row, 0)?, text(row, 1)?);
        due.extend(unreadable.or_told(|| format!("schedule {name} of {tenant}"), schedule(row))?);
    }
    Ok(due)
}

pub(crate) fn next_schedule(conn: &Connection) -> Result<Option<Timestamp>, Fault> {
    Ok(collect(conn, NEXT, [], |row| Ok(Timestamp::from_millis(row.get(0)?)))?.pop())
}

/// Columns: tenant, name, version, time to wake, body.
fn schedule(row: &Row<'_>) -> Result<Schedule, Fault> {
    let mut schedule: Schedule = serde_json::from_str(row.get_ref(4)?.as_str()?)?;
    schedule.tenant = TenantId::new(text(row, 0)?);
    schedule.name = text(row, 1)?;
    schedule.version = row.get(2)?;
    schedule.wakes_at = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
    Ok(schedule)
}

pub(crate) fn list_slots(conn: &Connection, query: &SlotQuery) -> Result<Listing<Slot>, Fault> {
    let before = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
    let params = params![query.tenant.as_str(), &*query.schedule, before, bounded(query.limit.clamp(1, ROWS_MAX))];
    let slots = collect(conn, include_str!("../../queries/list_slots.sql"), params, |row| {
        Ok((row.get(0)?, serde_json::from_str(row.get_ref(1)?.as_str()?)?))
    })?;
    let mut page = Page::new(query.limit);
    for (place, slot) in slots {
        page.look_at(place);
        page.items.push(slot);
    }
    Ok(page.done())
}
