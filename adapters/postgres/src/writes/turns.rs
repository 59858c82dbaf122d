//! T-1: applies the turns of one call, in order, to the locked and read rows, before anything is written.

use std::collections::BTreeMap;

use lockgate_core::audit::AuditEntry;
use lockgate_core::schedule::{Series, SlotKey};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{TurnConflict, next_place, places};
use lockgate_sql::{EncodedScheduleTurn, EncodedSlot};
use tokio_postgres::Row;

use crate::conn::{SqlCall, SqlParam};
use crate::error::StatementError;
use crate::row::{get, text};
use crate::writer::{KEEP_AUDIT, audit_columns};

/// Tenant and name.
type ScheduleName<'a> = (&'a str, &'a str);

/// Everything that the call may write.
pub(super) struct TurnWrites<'a> {
    heads: BTreeMap<ScheduleName<'a>, Head<'a>>,
    audit: Vec<&'a AuditEntry>,
}

/// A schedule whose row is locked until the commit.
struct Head<'a> {
    /// The version of the stored row.
    stored: i64,
    /// The version after the turns applied so far; 0 if there is no schedule.
    version: i64,
    /// The next content of the row, if a turn was accepted.
    row: Option<&'a EncodedScheduleTurn>,
    /// The content of the row, if this call inserted it.
    begun: Option<&'a EncodedScheduleTurn>,
    /// Positions of the slots of the times that the call touches.
    known: BTreeMap<SlotKey, i64>,
    /// The highest position at each of these times.
    highest: BTreeMap<i64, i64>,
    written: BTreeMap<&'a SlotKey, (i64, &'a EncodedSlot)>,
}

/// The turns that would create a schedule, by name: the first turn of version 1.
pub(super) fn births(sheets: &[EncodedScheduleTurn]) -> BTreeMap<ScheduleName<'_>, &EncodedScheduleTurn> {
    let births = sheets.iter().rev().filter(|sheet| sheet.schedule.version == 1 && !sheet.gone);
    births.map(|sheet| (sheet.name(), sheet)).collect()
}

impl<'a> TurnWrites<'a> {
    /// `found` are the versions of locked rows, the names of inserted rows, and slots.
    pub(super) fn over(
        births: &BTreeMap<ScheduleName<'a>, &'a EncodedScheduleTurn>,
        locked: &'a [Row],
        begun: &'a [Row],
        slots: &'a [Row],
    ) -> Result<Self, StatementError> {
        let mut heads: BTreeMap<ScheduleName<'a>, Head<'a>> = BTreeMap::new();
        for row in locked {
            let version = get(row, 2)?;
            heads.insert((get(row, 0)?, get(row, 1)?), Head::at(version, version, None));
        }
        for row in begun {
            let name = (get(row, 0)?, get(row, 1)?);
            heads.insert(name, Head::at(1, 0, births.get(&name).copied()));
        }
        for row in slots {
            if let Some(head) = heads.get_mut(&(get(row, 0)?, get(row, 1)?)) {
                let key = SlotKey { series: Series(text(row, 2)?), nominal: Timestamp::from_millis(get(row, 3)?) };
                head.know(key, get(row, 4)?);
            }
        }
        Ok(Self { heads, audit: Vec::new() })
    }

    pub(super) fn take(&mut self, sheet: &'a EncodedScheduleTurn) -> Result<(), TurnConflict> {
        // Neither found nor inserted: another transaction is creating it, or it does not exist.
        self.heads.get_mut(&sheet.name()).ok_or(TurnConflict)?.take(sheet)?;
        self.audit.extend(&sheet.audit);
        Ok(())
    }

    /// The statements for the accepted turns.
    pub(super) fn calls(&self) -> Vec<SqlCall<'a>> {
        let audit = (!self.audit.is_empty()).then(|| SqlCall { sql: KEEP_AUDIT, params: audit_columns(&self.audit) });
        [self.moved(), self.dropped(), self.slots(), audit].into_iter().flatten().collect()
    }

    fn moved(&self) -> Option<SqlCall<'a>> {
        let moves = |head: &Head<'a>| {
            let sheet = head.row?;
            let is_there = head.begun.is_some_and(|begun| std::ptr::eq(begun, sheet));
            (!is_there).then_some((head.stored, sheet))
        };
        let moved: Vec<(i64, &'a EncodedScheduleTurn)> = self.heads.values().filter_map(moves).collect();
        let params: Vec<SqlParam<'a>> = vec![
            column(&moved, |(_, sheet)| sheet.name().0),
            column(&moved, |(_, sheet)| sheet.name().1),
            column(&moved, |(stored, _)| *stored),
            column(&moved, |(_, sheet)| sheet.schedule.version),
            column(&moved, |(_, sheet)| sheet.schedule.wakes_at.map(|at| at.as_millis())),
            column(&moved, |(_, sheet)| sheet.body.as_str()),
        ];
        (!moved.is_empty()).then_some(SqlCall { sql: include_str!("../../queries/move_schedules.sql"), params })
    }

    /// Deletes schedules that are gone, and rows inserted for a turn that was refused.
    fn dropped(&self) -> Option<SqlCall<'a>> {
        let none = self.heads.iter().filter(|(_, head)| head.version == 0);
        let names: Vec<ScheduleName<'a>> = none.map(|(name, _)| *name).collect();
        let params = vec![column(&names, |name| name.0), column(&names, |name| name.1)];
        (!names.is_empty()).then_some(SqlCall { sql: include_str!("../../queries/drop_schedules.sql"), params })
    }

    fn slots(&self) -> Option<SqlCall<'a>> {
        let of = |(name, head): (&ScheduleName<'a>, &Head<'a>)| {
            let name = *name;
            head.written.values().map(move |(place, slot)| (name, *place, *slot)).collect::<Vec<_>>()
        };
        let slots: Vec<(ScheduleName<'a>, i64, &'a EncodedSlot)> = self.heads.iter().flat_map(of).collect();
        let params: Vec<SqlParam<'a>> = vec![
            column(&slots, |(name, ..)| name.0),
            column(&slots, |(name, ..)| name.1),
            column(&slots, |(.., slot)| &*slot.key.series.0),
            column(&slots, |(.., slot)| slot.key.nominal.as_millis()),
            column(&slots, |(_, place, _)| *place),
            column(&slots, |(.., slot)| slot.outcome),
            column(&slots, |(.., slot)| slot.decided_at),
            column(&slots, |(.., slot)| slot.body.as_str()),
        ];
        (!slots.is_empty()).then_some(SqlCall { sql: include_str!("../../queries/write_slots.sql"), params })
    }
}

impl<'a> Head<'a> {
    fn at(stored: i64, version: i64, begun: Option<&'a EncodedScheduleTurn>) -> Self {
        let (known, highest, written) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { stored, version, row: None, begun, known, highest, written }
    }

    fn know(&mut self, key: SlotKey, place: i64) {
        let highest = self.highest.entry(places(key.nominal).0).or_insert(place);
        *highest = place.max(*highest);
        self.known.insert(key, place);
    }

    fn take(&mut self, sheet: &'a EncodedScheduleTurn) -> Result<(), TurnConflict> {
        let removes_nothing = sheet.gone && self.version == 0;
        let follows = self.version + 1 == sheet.schedule.version && !removes_nothing;
        let is_free = |slot: &EncodedSlot| !self.known.contains_key(&slot.key);
        if !follows || sheet.has_twins || !sheet.fresh.iter().all(is_free) {
            return Err(TurnConflict);
        }
        self.version = if sheet.gone { 0 } else { sheet.schedule.version };
        self.row = (!sheet.gone).then_some(sheet);
        for slot in sheet.slots() {
            let first = places(slot.key.nominal).0;
            let next = || next_place(slot.key.nominal, self.highest.get(&first).copied());
            let place = self.known.get(&slot.key).copied().unwrap_or_else(next);
            self.know(slot.key.clone(), place);
            self.written.insert(&slot.key, (place, slot));
        }
        Ok(())
    }
}

pub(super) fn column<'a, T, V>(rows: &[T], of: impl Fn(&T) -> V) -> SqlParam<'a>
where
    Vec<V>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    Box::new(rows.iter().map(of).collect::<Vec<V>>())
}
