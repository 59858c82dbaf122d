//! Schedules as their authors write them, and what they do.

mod backfills;
mod clocks;
mod ids;
mod loading;
mod misfires;
mod orders;
mod overlaps;
mod properties;
mod refusals;
mod schema;
mod turns;
mod world;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config::ConfigError;
use crate::policy::rfc3339;
use crate::request::Caller;
use crate::time::Timestamp;

const KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The moment of a text.
fn at(text: &str) -> Timestamp {
    rfc3339::parse(text).unwrap_or_else(|| panic!("{text} is no moment"))
}

fn ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A file with one schedule of these lines.
fn file(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("version: 1\nschedules:\n  s:\n{lines}")
}

/// A schedule of these lines that starts a job.
fn spec(lines: &str) -> Spec {
    with_work(&format!("{lines}\njob: {{topic: t}}"))
}

fn with_work(lines: &str) -> Spec {
    let mut specs = load("s.yaml", &file(lines)).unwrap_or_else(|errors| panic!("{}", shown(&errors).join("\n")));
    specs.remove(0).1
}

fn shown(errors: &[ConfigError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn caller() -> Caller {
    Caller::new("acme", "ann")
}

fn begun(spec: Spec, now: Timestamp) -> Schedule {
    Schedule::begin("s".into(), spec, &caller(), "birth-1".into(), now)
}

fn news(now: Timestamp) -> ScheduleNews {
    ScheduleNews { now, keep: KEEP, ..ScheduleNews::default() }
}

/// The next turn, in which all that was due is found started.
fn settle(schedule: &Schedule, now: Timestamp) -> Option<ScheduleDecision> {
    let begun = schedule.unbegun(now, KEEP).map(|(target, _)| (target.clone(), Ok(()))).collect();
    schedule.turn(&ScheduleNews { begun, ..news(now) })
}

/// Turns a schedule until there is nothing to do, and returns it with all slots as they were last written.
fn run(mut schedule: Schedule, now: Timestamp) -> (Schedule, Vec<Slot>) {
    let mut slots: Vec<Slot> = Vec::new();
    for _ in 0..10_000 {
        let Some(turn) = settle(&schedule, now) else { break };
        for slot in turn.fresh.into_iter().chain(turn.changed) {
            match slots.iter_mut().find(|known| known.key == slot.key) {
                Some(known) => *known = slot,
                None => slots.push(slot),
            }
        }
        schedule = turn.schedule;
        if schedule.wakes_at.is_none_or(|wakes| wakes > now) {
            break;
        }
    }
    slots.sort_by_key(|slot| slot.key.nominal);
    (schedule, slots)
}

fn outcomes(slots: &[Slot]) -> Vec<(i64, SlotOutcome)> {
    slots.iter().map(|slot| (slot.key.nominal.as_millis(), slot.outcome)).collect()
}

fn reasons(slots: &[Slot]) -> Vec<&str> {
    slots.iter().filter_map(|slot| slot.reason.as_deref()).collect()
}

fn target(slot: &Slot) -> Target {
    slot.target.clone().unwrap_or_else(|| panic!("{slot:?} starts nothing"))
}

fn ended(schedule: &Schedule, now: Timestamp) -> ScheduleNews {
    ScheduleNews { ended: schedule.at_work().cloned().collect(), ..news(now) }
}

fn arc(text: &str) -> Arc<str> {
    text.into()
}
