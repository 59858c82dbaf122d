use super::*;

/// The first time is at work, the second has come.
fn second(overlap: &str) -> (Schedule, Vec<Slot>) {
    let (schedule, _) = run(begun(spec(&format!("every: 1h\n{overlap}")), ms(0)), ms(HOUR));
    run(schedule, ms(2 * HOUR))
}

#[test]
fn allow_starts_beside_what_is_at_work() {
    assert_eq!(outcomes(&second("overlap: allow").1), [(2 * HOUR, SlotOutcome::Started)]);
}

#[test]
fn skip_leaves_a_time_out_while_an_earlier_one_is_at_work() {
    let (schedule, slots) = second("overlap: skip");
    assert_eq!(outcomes(&slots), [(2 * HOUR, SlotOutcome::Skipped)]);
    assert_eq!(reasons(&slots), ["what 1970-01-01T01:00:00+00:00 started was still at work"]);
    let turn = schedule.turn(&ended(&schedule, ms(3 * HOUR))).unwrap();
    assert_eq!(outcomes(&turn.fresh), [(3 * HOUR, SlotOutcome::Due)], "once it has ended the next one starts");
}

#[test]
fn queue_keeps_those_that_wait_and_leaves_later_ones_out() {
    let (schedule, slots) = second("overlap: queue\nqueue: 1");
    assert_eq!(outcomes(&slots), [(2 * HOUR, SlotOutcome::Queued)]);
    assert_eq!(schedule.wakes_at, Some(ms(2 * HOUR) + Duration::from_secs(15)), "looks again for the end");
    let (schedule, slots) = run(schedule, ms(3 * HOUR));
    assert_eq!(outcomes(&slots), [(3 * HOUR, SlotOutcome::Skipped)]);
    assert_eq!(reasons(&slots), ["the queue was full: 1 waited already"]);
    let turn = schedule.turn(&ended(&schedule, ms(3 * HOUR + 1))).unwrap();
    assert_eq!(outcomes(&turn.changed), [(2 * HOUR, SlotOutcome::Due)]);
}

#[test]
fn replace_stops_what_is_at_work_and_starts_once_it_has_ended() {
    let (schedule, slots) = second("overlap: replace");
    assert_eq!(outcomes(&slots), [(2 * HOUR, SlotOutcome::Queued)]);
    let at_work: Vec<Target> = schedule.at_work().cloned().collect();
    let again = schedule.turn(&news(ms(2 * HOUR + MINUTE))).unwrap();
    assert_eq!(again.stop, at_work, "said until it has ended");
    let (schedule, slots) = run(schedule, ms(3 * HOUR));
    assert_eq!(outcomes(&slots), [(2 * HOUR, SlotOutcome::Skipped), (3 * HOUR, SlotOutcome::Queued)]);
    let turn = schedule.turn(&ended(&schedule, ms(3 * HOUR + 1))).unwrap();
    assert_eq!(outcomes(&turn.changed), [(3 * HOUR, SlotOutcome::Due)]);
    assert_eq!(turn.stop, []);
}

#[test]
fn what_is_to_be_begun_counts_as_at_work() {
    let due = begun(spec("every: 1h\noverlap: skip\ngrace: 1d"), ms(0)).turn(&news(ms(2 * HOUR))).unwrap();
    assert_eq!(outcomes(&due.fresh), [(HOUR, SlotOutcome::Due), (2 * HOUR, SlotOutcome::Skipped)]);
}
