use super::*;

#[test]
fn a_pause_of_a_year_is_one_row() {
    let (schedule, _) = run(begun(spec("every: 1m"), ms(0)), ms(MINUTE));
    let paused = schedule.pause(ms(MINUTE)).unwrap().schedule;
    assert_eq!(paused.wakes_at, None);
    assert!(paused.pause(ms(MINUTE)).is_none());
    assert_eq!(run(paused.clone(), ms(DAY)).1, [], "nothing comes due");
    let resumed = paused.resume(ms(365 * DAY)).unwrap();
    assert_eq!(outcomes(&resumed.fresh), [(365 * DAY, SlotOutcome::Missed)]);
    let text = "525599 times from 1970-01-01T00:02:00+00:00 to 1971-01-01T00:00:00+00:00 fell into a pause";
    assert_eq!(reasons(&resumed.fresh), [text]);
    assert_eq!(resumed.schedule.wakes_at, Some(ms(365 * DAY + MINUTE)));
    assert!(resumed.schedule.resume(ms(365 * DAY)).is_none());
}

#[test]
fn a_short_pause_leaves_nothing() {
    let paused = begun(spec("every: 1h"), ms(0)).pause(ms(1)).unwrap().schedule;
    assert_eq!(paused.resume(ms(2)).unwrap().fresh, []);
}

#[test]
fn an_equal_spec_changes_nothing_and_another_takes_over_from_now() {
    let schedule = begun(spec("every: 1h"), ms(0));
    assert!(matches!(schedule.apply(spec("every: 1h"), &caller(), ms(1)), Ok(None)));
    let turn = schedule.apply(spec("every: 1m"), &Caller::new("acme", "bob"), ms(90 * MINUTE)).unwrap().unwrap();
    assert_eq!(outcomes(&turn.fresh), [(HOUR, SlotOutcome::Missed)], "what was not decided is not lost without a trace");
    assert_eq!(reasons(&turn.fresh), ["it had not begun when the schedule was changed"]);
    let changed = turn.schedule;
    assert_eq!((changed.revision, changed.actor.as_str()), (2, "bob"));
    assert_eq!(changed.wakes_at, Some(ms(91 * MINUTE)), "times of the new spec before now are none of its business");
}

#[test]
fn what_is_due_is_begun_with_the_spec_it_was_made_of() {
    let due = begun(spec("every: 1h"), ms(0)).turn(&news(ms(HOUR))).unwrap().schedule;
    let dag = with_work("every: 1h\ndag: {name: d}");
    assert!(matches!(due.apply(dag.clone(), &caller(), ms(HOUR)), Err(Unsettled)));
    assert!(matches!(due.retire(ms(HOUR)), Err(Unsettled)));
    let (settled, _) = run(due, ms(HOUR));
    assert!(matches!(settled.apply(dag, &caller(), ms(HOUR)), Ok(Some(_))));
}

#[test]
fn the_file_says_whether_a_schedule_begins_paused_and_people_have_the_last_word() {
    let paused = begun(spec("every: 1h\npaused: true"), ms(0));
    assert_eq!(paused.wakes_at, None);
    let resumed = paused.resume(ms(1)).unwrap().schedule;
    let edited = resumed.apply(spec("every: 2h\npaused: true"), &caller(), ms(2)).unwrap().unwrap().schedule;
    assert_eq!(edited.paused_at, None, "the file says what it said before");
    let stopped = begun(spec("every: 1h"), ms(0)).apply(spec("every: 1h\npaused: true"), &caller(), ms(2));
    assert_eq!(stopped.unwrap().unwrap().schedule.paused_at, Some(ms(2)));
}

#[test]
fn a_start_out_of_turn_is_a_slot_of_its_own_even_while_paused() {
    let schedule = begun(spec("every: 1h\noverlap: allow"), ms(0)).pause(ms(1)).unwrap().schedule;
    let first = schedule.trigger(ms(5));
    assert_eq!(first.fresh[0].key, SlotKey { series: Series::manual(), nominal: ms(5) });
    let second = first.schedule.trigger(ms(5));
    assert_eq!(second.fresh[0].key.nominal, ms(6), "two in one moment are two");
    assert_ne!(first.fresh[0].target, second.fresh[0].target);
    assert_eq!(second.schedule.wakes_at, Some(ms(5)));
}

#[test]
fn a_start_out_of_turn_waits_in_line() {
    let (schedule, _) = run(begun(spec("every: 1h\noverlap: skip"), ms(0)), ms(HOUR));
    assert_eq!(schedule.trigger(ms(HOUR + 1)).fresh[0].outcome, SlotOutcome::Skipped);
    let idle = begun(spec("every: 1h\noverlap: skip"), ms(0)).trigger(ms(5));
    let (schedule, _) = run(idle.schedule, ms(5));
    assert_eq!(run(schedule, ms(HOUR)).1[0].outcome, SlotOutcome::Skipped, "and the next time waits for it");
}

#[test]
fn a_removed_schedule_starts_nothing_that_waits() {
    let (schedule, _) = run(begun(spec("every: 1h\noverlap: queue"), ms(0)), ms(HOUR));
    let (schedule, _) = run(schedule, ms(2 * HOUR));
    let last = schedule.retire(ms(2 * HOUR)).unwrap();
    assert_eq!(outcomes(&last.changed), [(2 * HOUR, SlotOutcome::Skipped)]);
    assert_eq!(last.schedule.version, schedule.version + 1);
}

#[test]
fn a_head_survives_being_stored() {
    let (schedule, _) = run(begun(spec("every: 1h\noverlap: queue"), ms(0)), ms(HOUR));
    let (schedule, _) = run(schedule, ms(2 * HOUR));
    let body: Schedule = serde_json::from_str(&serde_json::to_string(&schedule).unwrap()).unwrap();
    let Schedule { tenant, name, version, wakes_at, .. } = schedule.clone();
    assert_eq!(Schedule { tenant, name, version, wakes_at, ..body }, schedule);
}
