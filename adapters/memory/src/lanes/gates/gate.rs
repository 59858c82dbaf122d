//! One limit: how much of it is used, and which lanes wait for it.
//!
//! Two conditions hold between operations; together they are L-6 and L-7.
//! - A limit without room lets no lane through.
//! - If a group waits, its bound is reached, or as many of its lanes were let through as there is room, and at least one.

use std::sync::Arc;

use lockgate_core::pools::Limit;
use lockgate_core::rate::Bucket;
use lockgate_core::time::Timestamp;

use super::super::catalog::LaneAddress;
use super::line::{LimitLine, LineGroup};
use lockgate_ports::lanes::LimitView;

#[derive(Debug)]
pub(in super::super) struct LimitGate {
    pub(super) key: Arc<str>,
    pub(super) held: u32,
    pub(super) bucket: Option<Bucket>,
    /// The number of lanes with this limit, whether they have jobs or not.
    pub(super) lanes: usize,
    pub(super) line: LimitLine,
    /// Its entry among the limits that wait for a time.
    pub(super) due: Option<Timestamp>,
}

impl LimitGate {
    pub(super) fn new(limit: &Limit) -> Self {
        let bucket = limit.rate.map(Bucket::new);
        Self { key: limit.key.clone(), held: 0, bucket, lanes: 0, line: LimitLine::default(), due: None }
    }

    pub(super) fn is_used(&self) -> bool {
        self.lanes > 0 || self.held > 0
    }

    /// Whether a lane that comes now must wait: others wait already, or were let through to all the room there is. Otherwise
    /// it could overtake them because its tenant happens to be next in a queue.
    pub(in super::super) fn refuses(&self, group: LineGroup, now: Timestamp) -> bool {
        self.line.open_in(group) >= self.room(group.max, now) as usize || self.line.waits(group)
    }

    /// Groups that wait although there is room.
    pub(in super::super) fn callable(&self, now: Timestamp) -> Vec<LineGroup> {
        if self.tokens(now) == 0 { Vec::new() } else { self.line.waiting_above(self.held).collect() }
    }

    /// The next lane of a group, if fewer were let through than there is room.
    pub(in super::super) fn next(&self, group: LineGroup, now: Timestamp) -> Option<LaneAddress> {
        let room = self.room(group.max, now) as usize;
        if self.line.open_in(group) < room { self.line.next(group) } else { None }
    }

    /// Lanes that were let through and have no room any more.
    pub(in super::super) fn crowded_out(&self, now: Timestamp) -> Vec<LaneAddress> {
        if self.tokens(now) == 0 { self.line.all_open() } else { self.line.open_up_to(self.held) }
    }

    /// When the rate has room again, if a lane waits for nothing else.
    pub(super) fn next_room_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.line.waiting_above(self.held).next()?;
        self.bucket.as_ref()?.again_at(now)
    }

    pub(super) fn view(&self, limit: &Limit, now: Timestamp) -> LimitView {
        LimitView {
            key: limit.key.clone(),
            max: limit.max,
            held: self.held,
            again_at: self.bucket.as_ref().and_then(|bucket| bucket.again_at(now)),
            full: self.room(bound(limit), now) == 0,
        }
    }

    fn room(&self, max: u32, now: Timestamp) -> u32 {
        max.saturating_sub(self.held).min(self.tokens(now))
    }

    fn tokens(&self, now: Timestamp) -> u32 {
        self.bucket.as_ref().map_or(u32::MAX, |bucket| bucket.tokens(now))
    }
}

/// How many attempts a limit allows at once.
pub(super) fn bound(limit: &Limit) -> u32 {
    limit.max.unwrap_or(u32::MAX)
}
