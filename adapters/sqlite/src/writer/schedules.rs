//! Writes turns of schedules, and deletes slots past their retention.

use lockgate_ports::store::{TurnConflict, next_place, places};
use lockgate_sql::{EncodedScheduleTurn, EncodedSlot};
use rusqlite::params;

use super::WriteTx;
use crate::error::StatementError;

/// Tenant and name of a schedule.
type ScheduleName<'a> = (&'a str, &'a str);

impl WriteTx<'_> {
    pub(crate) fn turn(&mut self, sheets: &[EncodedScheduleTurn]) -> Result<Vec<Result<(), TurnConflict>>, StatementError> {
        sheets.iter().map(|sheet| self.take_turn(sheet)).collect()
    }

    /// T-1: checks a turn as a whole before anything of it is written, so that a refused turn leaves no trace and needs no
    /// savepoint.
    fn take_turn(&mut self, sheet: &EncodedScheduleTurn) -> Result<Result<(), TurnConflict>, StatementError> {
        let schedule = &sheet.schedule;
        let name = (schedule.tenant.as_str(), &*schedule.name);
        if !self.fits(name, sheet)? {
            return Ok(Err(TurnConflict));
        }
        if sheet.gone {
            self.conn.prepare_cached("DELETE FROM schedules WHERE tenant = ?1 AND name = ?2")?.execute(name)?;
        } else {
            let wakes_at = schedule.wakes_at.map(|at| at.as_millis());
            let mut write = self.conn.prepare_cached(include_str!("../../queries/write_schedule.sql"))?;
            write.execute(params![name.0, name.1, schedule.version, wakes_at, sheet.body])?;
        }
        for slot in &sheet.fresh {
            self.insert_slot(name, slot)?;
        }
        for slot in &sheet.changed {
            self.change_slot(name, slot)?;
        }
        self.keep_audit(&sheet.audit)?;
        Ok(Ok(()))
    }

    fn fits(&self, name: ScheduleName<'_>, sheet: &EncodedScheduleTurn) -> Result<bool, StatementError> {
        let version = self.number("SELECT version FROM schedules WHERE tenant = ?1 AND name = ?2", name)?.unwrap_or(0);
        let removes_nothing = sheet.gone && version == 0;
        let mut fits = version + 1 == sheet.schedule.version && !removes_nothing && !sheet.has_twins;
        let known = "SELECT 1 FROM schedule_slots WHERE tenant = ?1 AND schedule = ?2 AND series = ?3 AND nominal = ?4";
        for EncodedSlot { key, .. } in &sheet.fresh {
            fits = fits && self.number(known, params![name.0, name.1, &*key.series.0, key.nominal.as_millis()])?.is_none();
        }
        Ok(fits)
    }

    fn insert_slot(&self, name: ScheduleName<'_>, slot: &EncodedSlot) -> Result<(), StatementError> {
        let EncodedSlot { key, outcome, decided_at, body } = slot;
        let (first, last) = places(key.nominal);
        let latest = self.number(include_str!("../../queries/latest_place.sql"), params![name.0, name.1, first, last])?;
        let place = next_place(key.nominal, latest);
        let (series, nominal) = (&*key.series.0, key.nominal.as_millis());
        let columns = params![name.0, name.1, series, nominal, outcome, decided_at, body, place];
        self.conn.prepare_cached(include_str!("../../queries/insert_slot.sql"))?.execute(columns)?;
        Ok(())
    }

    /// Updates the slot; one that was pruned meanwhile is inserted again.
    fn change_slot(&self, name: ScheduleName<'_>, slot: &EncodedSlot) -> Result<(), StatementError> {
        let EncodedSlot { key, outcome, decided_at, body } = slot;
        let columns = params![name.0, name.1, &*key.series.0, key.nominal.as_millis(), outcome, decided_at, body];
        if self.conn.prepare_cached(include_str!("../../queries/update_slot.sql"))?.execute(columns)? == 0 {
            self.insert_slot(name, slot)?;
        }
        Ok(())
    }

    /// Deletes slots, the oldest decision first. Returns how many.
    pub(super) fn prune_slots(&self, before: i64, limit: usize) -> Result<u64, StatementError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let gone = self.conn.prepare_cached(include_str!("../../queries/prune_slots.sql"))?.execute([before, limit])?;
        Ok(gone as u64)
    }
}
