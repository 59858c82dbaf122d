//! A store, things that are started, and a clock, for schedules whose turns are interrupted by crashes.

use std::collections::BTreeMap;

use super::*;

/// Where a turn is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crash {
    Never,
    AfterBeginning,
    AfterDeciding,
    AfterCommit,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: i64,
    pub(super) head: Schedule,
    pub(super) slots: BTreeMap<SlotKey, Slot>,
    /// When each slot was decided for the first time.
    pub(super) noticed: BTreeMap<SlotKey, i64>,
    /// Whether it has ended.
    pub(super) targets: BTreeMap<Target, bool>,
    /// The most that were at work at once for the schedule's own times.
    pub(super) most_at_work: usize,
    pub(super) most_open: usize,
    pub(super) most_queued: usize,
    /// Times that backfills were asked to start.
    pub(super) asked: usize,
}

impl World {
    pub(super) fn new(spec: Spec, now: i64) -> Self {
        let (slots, noticed, targets) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let head = begun(spec, ms(now));
        Self { now, head, slots, noticed, targets, most_at_work: 0, most_open: 0, most_queued: 0, asked: 0 }
    }

    /// What a loop does with a schedule that it was told to look at.
    pub(super) fn visit(&mut self, crash: Crash) {
        let now = ms(self.now);
        let mut news = ScheduleNews { now, keep: KEEP, ..ScheduleNews::default() };
        let due: Vec<Target> = self.head.unbegun(now, KEEP).map(|(target, _)| target.clone()).collect();
        for target in due {
            // A process that begins it a second time finds it.
            self.targets.entry(target.clone()).or_insert(false);
            news.begun.insert(target, Ok(()));
        }
        self.count();
        if crash == Crash::AfterBeginning {
            return;
        }
        news.ended = self.head.at_work().filter(|target| self.targets[*target]).cloned().collect();
        let Some(turn) = self.head.turn(&news).filter(|_| crash != Crash::AfterDeciding) else { return };
        self.commit(&turn);
        if crash != Crash::AfterCommit {
            self.targets.extend(turn.stop.into_iter().map(|target| (target, true)));
        }
    }

    fn commit(&mut self, turn: &ScheduleDecision) {
        assert_eq!(turn.schedule.version, self.head.version + 1);
        assert!(turn.schedule.done_until >= self.head.done_until, "what is decided stays decided");
        assert!(turn.fresh.len() <= 100);
        for slot in &turn.fresh {
            assert!(self.slots.insert(slot.key.clone(), slot.clone()).is_none(), "{slot:?} was decided before");
            self.noticed.insert(slot.key.clone(), self.now);
        }
        for slot in &turn.changed {
            assert!(self.slots.insert(slot.key.clone(), slot.clone()).is_some(), "{slot:?} was not decided before");
        }
        let body = serde_json::to_string(&turn.schedule).unwrap();
        let Schedule { tenant, name, version, wakes_at, .. } = turn.schedule.clone();
        self.head = Schedule { tenant, name, version, wakes_at, ..serde_json::from_str(&body).unwrap() };
        self.most_open = self.most_open.max(self.head.open.len());
        let queued = self.head.open.iter().filter(|slot| slot.outcome == SlotOutcome::Queued).count();
        self.most_queued = self.most_queued.max(queued);
    }

    /// What cannot be asked for, such as a span without times, is left out.
    pub(super) fn backfill(&mut self, from: i64, minutes: i64) {
        let (from, until) = (ms(from.max(0)), ms(from.max(0) + minutes * MINUTE));
        let ask = Backfill::new(format!("b{}", self.asked).into(), from, until, 1);
        let table = Timetable::of(&self.head.spec).unwrap().unbounded();
        let times = match table.count(ask.done_until, ask.until) {
            Count::Exactly(times) => times as usize,
            Count::MoreThan(times) => panic!("more than {times} times"),
        };
        if let Ok(turn) = self.head.backfill(ask, ms(self.now)) {
            self.commit(&turn);
            self.asked += times;
        }
    }

    fn count(&mut self) {
        self.most_at_work = self.most_at_work.max(self.targets.values().filter(|ended| !**ended).count());
    }

    /// Goes on until the schedule sleeps. Nothing crashes.
    pub(super) fn rest(&mut self) {
        for _ in 0..1_000 {
            if self.head.wakes_at.is_none_or(|wakes| wakes > ms(self.now)) {
                return;
            }
            self.visit(Crash::Never);
        }
        panic!("the schedule never sleeps: {:?}", self.head);
    }

    pub(super) fn end_all(&mut self) {
        self.targets.values_mut().for_each(|ended| *ended = true);
    }

    /// Ends the one that was at work for the longest.
    pub(super) fn end_one(&mut self) {
        let mut at_work = self.slots.values().filter_map(|slot| slot.target.as_ref());
        if let Some(target) = at_work.find(|target| self.targets.get(*target) == Some(&false)).cloned() {
            self.targets.insert(target, true);
        }
    }
}
