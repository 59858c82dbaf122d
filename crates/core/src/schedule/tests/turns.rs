use super::*;

#[test]
fn a_time_is_due_then_started_and_the_schedule_sleeps_until_the_next() {
    let schedule = begun(spec("every: 1h\noverlap: allow"), ms(10));
    assert_eq!((schedule.version, schedule.wakes_at), (1, Some(ms(HOUR))));
    assert!(schedule.turn(&news(ms(HOUR - 1))).is_none(), "nothing to do before");
    let due = schedule.turn(&news(ms(HOUR))).unwrap();
    assert_eq!(outcomes(&due.fresh), [(HOUR, SlotOutcome::Due)]);
    assert_eq!((due.schedule.version, due.schedule.wakes_at), (2, Some(ms(HOUR))), "what is due is to be begun at once");
    let started = settle(&due.schedule, ms(HOUR)).unwrap();
    assert_eq!(outcomes(&started.changed), [(HOUR, SlotOutcome::Started)]);
    assert_eq!(started.schedule.wakes_at, Some(ms(2 * HOUR)));
    assert!(started.schedule.open.is_empty(), "where times may overlap nobody waits for the end");
}

#[test]
fn what_could_not_be_begun_is_refused_with_the_reason() {
    let schedule = begun(spec("every: 1h"), ms(0)).turn(&news(ms(HOUR))).unwrap().schedule;
    let begun = schedule.unbegun(ms(HOUR), KEEP).map(|(target, _)| (target.clone(), Err(arc("no such DAG")))).collect();
    let turn = schedule.turn(&ScheduleNews { begun, ..news(ms(HOUR)) }).unwrap();
    assert_eq!((turn.changed[0].outcome, reasons(&turn.changed)), (SlotOutcome::Refused, vec!["no such DAG"]));
    assert!(turn.schedule.open.is_empty());
}

#[test]
fn what_nobody_can_tell_to_have_begun_is_not_begun_again() {
    let schedule = begun(spec("every: 1h"), ms(0)).turn(&news(ms(HOUR))).unwrap().schedule;
    let late = ms(HOUR) + KEEP;
    assert_eq!(schedule.unbegun(ms(late.as_millis() - 1), KEEP).count(), 1);
    assert_eq!(schedule.unbegun(late, KEEP).count(), 0);
    let turn = schedule.turn(&news(late)).unwrap();
    assert_eq!(turn.changed[0].outcome, SlotOutcome::Missed);
    assert_eq!(reasons(&turn.changed), ["nobody knows whether it was started: that was too long ago"]);
}

#[test]
fn a_jitter_moves_each_time_by_its_own_amount_and_never_past_the_next() {
    let schedule = begun(spec("every: 1m\njitter: 5m\noverlap: allow"), ms(0));
    let mut delays = Vec::new();
    let mut schedule = schedule;
    for minute in 1..=50 {
        let wakes = schedule.wakes_at.unwrap();
        delays.push(wakes.as_millis() - minute * MINUTE);
        assert!(schedule.turn(&news(ms(wakes.as_millis() - 1))).is_none());
        schedule = run(schedule, wakes).0;
    }
    assert!(delays.iter().all(|delay| (0..MINUTE).contains(delay)), "{delays:?}");
    assert!(delays.iter().collect::<std::collections::BTreeSet<_>>().len() > 40, "{delays:?}");
}

#[test]
fn a_clock_that_goes_back_decides_nothing_twice() {
    let (schedule, slots) = run(begun(spec("every: 1h\noverlap: allow"), ms(0)), ms(2 * HOUR));
    assert_eq!(slots.len(), 2);
    let (schedule, again) = run(schedule, ms(HOUR));
    assert_eq!(again, []);
    assert_eq!(schedule.wakes_at, Some(ms(3 * HOUR)));
}

#[test]
fn a_schedule_that_a_wrong_clock_drove_ahead_is_brought_back_once_and_starts_others() {
    let (schedule, early) = run(begun(spec("every: 1h\noverlap: allow"), ms(10 * MINUTE)), ms(5 * HOUR));
    let right = ms(20 * MINUTE);
    assert!(schedule.bring_back(ms(5 * HOUR - MINUTE)).is_none(), "clocks of several machines may be apart so far");
    let back = schedule.bring_back(right).expect("it is hours ahead").schedule;
    assert_eq!((back.wakes_at, back.version), (Some(ms(HOUR)), schedule.version + 1));
    assert!(back.bring_back(right).is_none());
    let (back, slots) = run(back, ms(2 * HOUR));
    assert_eq!(slots.iter().map(|slot| slot.key.nominal).collect::<Vec<_>>(), [ms(HOUR), ms(2 * HOUR)]);
    assert!(slots.iter().all(|slot| early.iter().all(|early| early.key != slot.key && early.target != slot.target)));
    assert_eq!(back.due_at(&slots[0].key), Some(ms(HOUR)));
}

#[test]
fn a_schedule_keeps_to_its_first_and_last_moment() {
    let spec = spec("every: 1h\nstart_at: 1970-01-01T02:30:00Z\nend_at: 1970-01-01T04:30:00Z\nmisfire: all\noverlap: allow");
    let (schedule, slots) = run(begun(spec, ms(0)), ms(DAY));
    let half = HOUR / 2;
    assert_eq!(outcomes(&slots), [(2 * HOUR + half, SlotOutcome::Started), (3 * HOUR + half, SlotOutcome::Started)]);
    assert_eq!(schedule.wakes_at, None);
}

#[test]
fn a_turn_decides_a_hundred_times_at_most_and_comes_again_at_once() {
    let spec = spec("every: 1s\ngrace: 1h\noverlap: allow");
    let turn = begun(spec, ms(0)).turn(&news(ms(MINUTE * 10))).unwrap();
    assert!((99..=100).contains(&turn.fresh.len()), "{}", turn.fresh.len());
    assert_eq!(turn.schedule.wakes_at, Some(ms(MINUTE * 10)));
    let blocked = turn.schedule.turn(&news(ms(MINUTE * 10))).map_or(0, |turn| turn.fresh.len());
    assert!(turn.fresh.len() + blocked <= 100, "no more is decided until these are begun");
}

#[test]
fn a_schedule_whose_times_cannot_be_worked_out_any_more_sleeps_and_says_why() {
    let mut schedule = begun(spec("every: 1h"), ms(0));
    schedule.spec.time_zone = "Gone/Zone".into();
    let turn = schedule.turn(&news(ms(HOUR))).unwrap();
    assert_eq!((turn.fresh, turn.schedule.wakes_at), (Vec::new(), None));
    assert!(schedule.upcoming(ms(0), 1).unwrap_err().starts_with("\"Gone/Zone\" is no time zone"));
}
