use super::*;

fn asked(schedule: &Schedule, from: i64, to: i64, concurrency: u32) -> Result<ScheduleDecision, BackfillRefused> {
    schedule.backfill(Backfill::new("b".into(), ms(from), ms(to), concurrency), ms(100 * DAY))
}

fn daily() -> Schedule {
    daily_with("allow")
}

fn daily_with(overlap: &str) -> Schedule {
    begun(spec(&format!("cron: 0 2 * * *\nstart_at: 1970-04-11T00:00:00Z\noverlap: {overlap}")), ms(100 * DAY))
}

/// A backfill of ten days, its first time at work, and then the first of the schedule's own.
fn beside_a_backfill(overlap: &str) -> (Schedule, Vec<Slot>) {
    let (schedule, slots) = run(asked(&daily_with(overlap), 0, 9 * DAY + 2 * HOUR, 1).unwrap().schedule, ms(100 * DAY));
    assert_eq!(outcomes(&slots), [(2 * HOUR, SlotOutcome::Started)]);
    run(schedule, ms(100 * DAY + 2 * HOUR))
}

#[test]
fn a_backfill_starts_each_time_of_its_span_once_a_few_at_a_time() {
    let mut schedule = asked(&daily(), 0, 9 * DAY + 2 * HOUR, 3).unwrap().schedule;
    assert_eq!(schedule.wakes_at, Some(ms(100 * DAY)));
    let mut started = Vec::new();
    for step in 0..100 {
        let now = ms(100 * DAY + step);
        let Some(turn) = settle(&schedule, now) else { break };
        started.extend(turn.fresh.iter().map(|slot| slot.key.nominal.as_millis()));
        assert!(turn.schedule.open.len() <= 3);
        let at_work = ended(&turn.schedule, now);
        schedule = turn.schedule.turn(&at_work).map_or(turn.schedule, |turn| {
            started.extend(turn.fresh.iter().map(|slot| slot.key.nominal.as_millis()));
            turn.schedule
        });
    }
    assert_eq!(started, (0..=9).map(|day| day * DAY + 2 * HOUR).collect::<Vec<_>>());
    assert!(schedule.backfills.is_empty() && schedule.open.is_empty(), "it is done with: {schedule:?}");
}

#[test]
fn a_backfill_does_not_get_in_the_way_of_the_schedules_own_times() {
    let (schedule, _) = run(asked(&daily(), 0, 9 * DAY, 2).unwrap().schedule, ms(100 * DAY));
    let (schedule, slots) = run(schedule, ms(100 * DAY + 2 * HOUR));
    assert_eq!(outcomes(&slots), [(100 * DAY + 2 * HOUR, SlotOutcome::Started)]);
    assert_eq!(schedule.at_work().count(), 2, "the backfill's");
}

#[test]
fn under_any_other_overlap_a_time_waits_for_what_a_backfill_has_at_work_and_goes_before_the_rest_of_it() {
    let own = 100 * DAY + 2 * HOUR;
    for overlap in ["skip", "queue", "replace"] {
        let (schedule, slots) = beside_a_backfill(overlap);
        assert_eq!(outcomes(&slots), [(own, SlotOutcome::Queued)], "{overlap}: neither lost nor beside it");
        assert_eq!(reasons(&slots), ["waits until what a backfill started for 1970-01-01T02:00:00+00:00 has ended"]);
        assert!(schedule.wakes_at > Some(ms(own)), "{overlap}: it sleeps until it looks again: {:?}", schedule.wakes_at);
        let turn = schedule.turn(&ended(&schedule, ms(own + 1))).unwrap();
        assert_eq!((outcomes(&turn.changed), outcomes(&turn.fresh)), (vec![(own, SlotOutcome::Due)], vec![]), "{overlap}");
        let (schedule, _) = run(turn.schedule, ms(own + 2));
        assert_eq!(schedule.at_work().count(), 1, "{overlap}: the backfill waits now");
        let turn = schedule.turn(&ended(&schedule, ms(own + 3))).unwrap();
        assert_eq!(outcomes(&turn.fresh), [(DAY + 2 * HOUR, SlotOutcome::Due)], "{overlap}: and goes on");
    }
}

#[test]
fn a_backfill_waits_for_what_the_schedule_has_at_work() {
    let (schedule, _) = run(daily_with("skip"), ms(100 * DAY + 2 * HOUR));
    assert_eq!(schedule.at_work().count(), 1);
    let later = ms(100 * DAY + 3 * HOUR);
    let asked = schedule.backfill(Backfill::new("b".into(), ms(0), ms(DAY), 1), later).unwrap().schedule;
    let (schedule, slots) = run(asked, later);
    assert_eq!(slots, [], "nothing beside it");
    assert!(schedule.wakes_at > Some(later), "and no busy waiting");
    let turn = schedule.turn(&ended(&schedule, later)).unwrap();
    assert_eq!(outcomes(&turn.fresh), [(2 * HOUR, SlotOutcome::Due)]);
}

#[test]
fn what_a_cancelled_backfill_left_at_work_still_counts() {
    let schedule = asked(&daily_with("skip"), 0, 9 * DAY, 1).unwrap().schedule;
    let (schedule, _) = run(schedule, ms(100 * DAY));
    let cancelled = schedule.cancel_backfill("b", ms(100 * DAY)).unwrap().schedule;
    let (schedule, slots) = run(cancelled, ms(100 * DAY + 2 * HOUR));
    assert_eq!(outcomes(&slots), [(100 * DAY + 2 * HOUR, SlotOutcome::Queued)]);
    let turn = schedule.turn(&ended(&schedule, ms(100 * DAY + 3 * HOUR))).unwrap();
    assert_eq!(outcomes(&turn.changed), [(100 * DAY + 2 * HOUR, SlotOutcome::Due)]);
}

#[test]
fn more_at_once_than_the_overlap_lets_work_is_refused() {
    let refused = asked(&daily_with("queue"), 0, DAY, 2).unwrap_err();
    assert_eq!(refused, BackfillRefused::OneAtATime(Overlap::Queue));
    assert_eq!(
        refused.to_string(),
        "the schedule has overlap queue, so one at a time is at work; use 1, or set its overlap to allow first"
    );
}

#[test]
fn a_cancelled_backfill_starts_no_more() {
    let (schedule, slots) = run(asked(&daily(), 0, 9 * DAY, 2).unwrap().schedule, ms(100 * DAY));
    assert_eq!(slots.len(), 2);
    let cancelled = schedule.cancel_backfill("b", ms(100 * DAY)).unwrap().schedule;
    assert!(cancelled.open.is_empty());
    assert_eq!(cancelled.wakes_at, Some(ms(100 * DAY + 2 * HOUR)));
    assert!(cancelled.cancel_backfill("b", ms(100 * DAY)).is_none());
}

#[test]
fn a_backfill_that_makes_no_sense_is_refused() {
    let schedule = daily();
    let refusal = |from, to, concurrency| asked(&schedule, from, to, concurrency).unwrap_err();
    assert_eq!(refusal(DAY, 0, 1), BackfillRefused::Backwards);
    assert_eq!(refusal(0, 101 * DAY, 1), BackfillRefused::Future);
    assert_eq!(refusal(0, HOUR, 1), BackfillRefused::Empty);
    assert_eq!(refusal(0, DAY, 0), BackfillRefused::Concurrency);
    assert_eq!(refusal(0, DAY, 101), BackfillRefused::Concurrency);
    let secondly = begun(spec("every: 1s"), ms(100 * DAY));
    let refused = asked(&secondly, 1, 2 * DAY, 1).unwrap_err();
    assert_eq!(refused, BackfillRefused::TooMany(Count::Exactly(172_800)));
    assert!(refused.to_string().starts_with("172800 times lie between from and to"));
    let mut busy = schedule;
    for number in 0..BACKFILLS_MAX {
        let ask = Backfill::new(number.to_string().into(), ms(0), ms(DAY), 1);
        busy = busy.backfill(ask, ms(100 * DAY)).unwrap().schedule;
    }
    assert_eq!(asked(&busy, 0, DAY, 1).unwrap_err(), BackfillRefused::Busy);
}
