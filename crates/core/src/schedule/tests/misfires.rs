use super::*;

fn after(lines: &str, now: i64) -> Vec<Slot> {
    run(begun(spec(&format!("every: 1m\noverlap: allow\n{lines}")), ms(0)), ms(now)).1
}

#[test]
fn what_is_noticed_within_the_grace_is_on_time() {
    assert_eq!(
        outcomes(&after("misfire: skip\ngrace: 5m", 6 * MINUTE)),
        (1..=6).map(|n| (n * MINUTE, SlotOutcome::Started)).collect::<Vec<_>>()
    );
}

#[test]
fn skip_leaves_one_row_for_all_that_were_missed() {
    let slots = after("misfire: skip", 1_000 * MINUTE + 1);
    assert_eq!(outcomes(&slots), [(999 * MINUTE, SlotOutcome::Missed), (1_000 * MINUTE, SlotOutcome::Started)]);
    assert_eq!(reasons(&slots), ["999 times from 1970-01-01T00:01:00+00:00 to 1970-01-01T16:39:00+00:00 were missed"]);
}

#[test]
fn latest_starts_the_latest_that_was_missed_and_one_row_tells_of_the_others() {
    let slots = after("misfire: latest\nmisfire_window: 1h", 1_000 * MINUTE + 1);
    let (missed, started) = (SlotOutcome::Missed, SlotOutcome::Started);
    assert_eq!(outcomes(&slots), [(998 * MINUTE, missed), (999 * MINUTE, started), (1_000 * MINUTE, started)]);
    assert!(reasons(&slots)[0].starts_with("998 times"), "{slots:?}");
}

#[test]
fn all_starts_exactly_those_of_the_window_in_order() {
    let slots = after("misfire: all\nmisfire_window: 1000m", 2_000 * MINUTE);
    let mut expected = vec![(999 * MINUTE, SlotOutcome::Missed)];
    expected.extend((1_000..=2_000).map(|n| (n * MINUTE, SlotOutcome::Started)));
    assert_eq!(outcomes(&slots), expected);
    assert!(reasons(&slots)[0].starts_with("999 times"));
}

#[test]
fn what_lies_in_the_window_stays_in_it_while_it_is_made_up_for() {
    let spec = spec("every: 1m\noverlap: allow\nmisfire: all\nmisfire_window: 1000m");
    let mut schedule = begun(spec, ms(0));
    let mut started = Vec::new();
    let mut now = 1_000 * MINUTE;
    // Every turn takes as long as 50 of the times.
    while let Some(turn) = settle(&schedule, ms(now)).filter(|_| now < 3_000 * MINUTE) {
        started.extend(turn.fresh.iter().filter(|slot| slot.outcome == SlotOutcome::Due).map(|slot| slot.key.nominal));
        assert!(turn.fresh.iter().all(|slot| slot.outcome == SlotOutcome::Due));
        schedule = turn.schedule;
        now += 50 * MINUTE;
    }
    assert!(started.is_sorted());
    assert!((1..=1_000).all(|n| started.contains(&ms(n * MINUTE))));
}

#[test]
fn all_and_latest_give_up_what_is_older_than_the_window() {
    for misfire in ["all", "latest"] {
        let slots = run(begun(spec(&format!("cron: '0 0 1 1 *'\nmisfire: {misfire}")), ms(0)), ms(400 * DAY)).1;
        assert_eq!(outcomes(&slots), [(365 * DAY, SlotOutcome::Missed)], "{misfire}");
        assert_eq!(reasons(&slots), ["it was noticed 35d late"]);
    }
}

#[test]
fn a_year_of_missed_seconds_is_one_row() {
    let spec = spec("cron: '* * * * * *'\nmisfire: skip");
    let slots = run(begun(spec, ms(0)), ms(365 * DAY)).1;
    assert_eq!(slots.iter().filter(|slot| slot.outcome == SlotOutcome::Missed).count(), 1);
    assert!(reasons(&slots)[0].starts_with("more than 10000 times"), "{:?}", reasons(&slots)[0]);
}

#[test]
fn with_a_jitter_a_time_is_missed_only_so_long_after_it_was_due() {
    let spec = spec("every: 10m\njitter: 9m\ngrace: 1m\nmisfire: skip\noverlap: allow");
    let schedule = begun(spec, ms(0));
    let due = schedule.wakes_at.unwrap();
    let on_time = run(schedule.clone(), due + Duration::from_secs(60)).1;
    assert_eq!(outcomes(&on_time), [(10 * MINUTE, SlotOutcome::Started)]);
    let late = run(schedule, due + Duration::from_millis(60_001)).1;
    assert_eq!(outcomes(&late), [(10 * MINUTE, SlotOutcome::Missed)]);
}
