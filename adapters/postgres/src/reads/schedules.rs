//! Reads schedules and their slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::SlotQuery;
use lockgate_ports::{Listing, Unreadable};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::lists::ListPage;
use super::pages::PageSequence;
use crate::conn::Conn;
use crate::error::StatementError;
use crate::options::Now;
use crate::row::{bounded, get, text};

pub(crate) async fn load_schedules(
    conn: &mut Conn,
    keys: &[(TenantId, Arc<str>)],
) -> Result<Vec<Option<Schedule>>, StatementError> {
    let (tenants, names): (Vec<&str>, Vec<&str>) = keys.iter().map(|(tenant, name)| (tenant.as_str(), &**name)).unzip();
    let rows = conn.rows(include_str!("../../queries/load_schedules.sql"), &[&tenants, &names]).await?;
    let mut found: BTreeMap<(TenantId, Arc<str>), Schedule> = BTreeMap::new();
    for row in &rows {
        let schedule = schedule(row)?;
        found.insert((schedule.tenant.clone(), Arc::clone(&schedule.name)), schedule);
    }
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

pub(crate) async fn list_schedules(
    conn: &mut Conn,
    unreadable: &Unreadable,
    tenant: &TenantId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Schedule>, StatementError> {
    let mut after: Arc<str> = after.unwrap_or_default().into();
    let mut pages = PageSequence::of(limit);
    while let Some(wanted) = pages.wanted() {
        let params: [&(dyn ToSql + Sync); 3] = [&tenant.as_str(), &&*after, &wanted];
        let rows = conn.rows(include_str!("../../queries/list_schedules.sql"), &params).await?;
        pages.take(&rows, |row| {
            after = text(row, 1)?;
            unreadable.or_told(|| format!("schedule {after} of {tenant}"), schedule(row))
        })?;
    }
    Ok(pages.done())
}

pub(crate) async fn due_schedules(
    conn: &mut Conn,
    unreadable: &Unreadable,
    now: Now,
    limit: usize,
) -> Result<Vec<Schedule>, StatementError> {
    let mut after: (i64, Arc<str>, Arc<str>) = (i64::MIN, "".into(), "".into());
    let mut pages = PageSequence::of(limit);
    while let Some(wanted) = pages.wanted() {
        let params: [&(dyn ToSql + Sync); 5] = [&now, &after.0, &&*after.1, &&*after.2, &wanted];
        let rows = conn.rows(include_str!("../../queries/due_schedules.sql"), &params).await?;
        pages.take(&rows, |row| {
            after = (get(row, 3)?, text(row, 0)?, text(row, 1)?);
            let (_, tenant, name) = &after;
            unreadable.or_told(|| format!("schedule {name} of {tenant}"), schedule(row))
        })?;
    }
    Ok(pages.done())
}

pub(crate) async fn next_schedule(conn: &mut Conn, now: Now) -> Result<(Option<Timestamp>, Timestamp), StatementError> {
    let rows = conn.rows(include_str!("../../queries/next_schedule.sql"), &[&now]).await?;
    let row = rows.first().ok_or_else(|| StatementError::Row("the time was not told".to_owned()))?;
    Ok((get::<Option<i64>>(row, 0)?.map(Timestamp::from_millis), Timestamp::from_millis(get(row, 1)?)))
}

/// Columns: tenant, name, version, time to wake, body.
fn schedule(row: &Row) -> Result<Schedule, StatementError> {
    let mut schedule: Schedule = serde_json::from_str(get(row, 4)?)?;
    schedule.tenant = TenantId::new(text(row, 0)?);
    schedule.name = text(row, 1)?;
    schedule.version = get(row, 2)?;
    schedule.wakes_at = get::<Option<i64>>(row, 3)?.map(Timestamp::from_millis);
    Ok(schedule)
}

pub(crate) async fn list_slots(
    conn: &mut Conn,
    unreadable: &Unreadable,
    query: &SlotQuery,
) -> Result<Listing<Slot>, StatementError> {
    let mut page = ListPage::new(query.limit);
    while page.wants_more() {
        let (before, asked) = (page.before(query.cursor), page.wanted());
        let params: [&(dyn ToSql + Sync); 4] = [&query.tenant.as_str(), &&*query.schedule, &before, &bounded(asked)];
        let rows = conn.rows(include_str!("../../queries/list_slots.sql"), &params).await?;
        page.take(unreadable, "slot", asked, &rows, |row| Ok(Some(serde_json::from_str(get(row, 1)?)?)))?;
    }
    Ok(page.done())
}
