//! Schedules and slots as lists, and how long slots are kept.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::schedule::{Slot, SlotOutcome};
use lockgate_core::time::Timestamp;

use super::schedules_stage::{TENANT, all_slots, gone, keys, later, names, schedule, turn, waking};
use super::stage::{Proof, StoreHarness};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{ScheduleChange, SlotQuery};

const KEEP: Duration = Duration::from_secs(1);

pub async fn schedules_are_listed_by_name(h: &StoreHarness) -> Proof {
    for name in ["b", "a-c", "a", "B", "aé", "aa"] {
        h.put(name).await?;
        h.turn(turn(schedule("other", &format!("{name}2")))).await??;
    }
    let (mut after, mut found): (Option<Arc<str>>, Vec<String>) = (None, Vec::new());
    loop {
        let page = h.store.list_schedules(&TENANT.into(), after.as_deref(), 2).await?;
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(Arc::clone(&last.name));
        found.extend(names(&page).into_iter().map(str::to_owned));
    }
    assert_eq!(found, ["B", "a", "a-c", "aa", "aé", "b"]);
    assert_eq!(h.store.list_schedules(&"nobody".into(), None, 10).await?, []);
    Ok(())
}

pub async fn schedules_wake_by_the_stores_own_clock(h: &StoreHarness) -> Proof {
    let now = h.clock.now().as_millis();
    assert_eq!(h.store.next_schedule().await?, (None, h.clock.now()));
    h.put("sleeps").await?;
    assert_eq!(h.store.next_schedule().await?, (None, h.clock.now()));
    for (tenant, name, at) in
        [(TENANT, "b", 20), ("other", "a", 20), (TENANT, "c", 10), (TENANT, "d", 5_000), (TENANT, "a", 20)]
    {
        h.turn(turn(waking(schedule(tenant, name), now + at))).await??;
    }
    h.advance_ms(9);
    assert_eq!(h.store.due_schedules(10).await?, []);
    assert_eq!(h.store.next_schedule().await?, (Some(Timestamp::from_millis(now + 10)), h.clock.now()));
    h.advance_ms(11);
    let due = h.store.due_schedules(10).await?;
    assert_eq!(names(&due), ["c", "a", "b", "a"]);
    assert_eq!((due[0].clone(), due[3].tenant.as_str()), (waking(schedule(TENANT, "c"), now + 10), "other"));
    assert_eq!(names(&h.store.due_schedules(2).await?), ["c", "a"]);
    // Moved on, put to sleep, and gone.
    let changes = vec![
        turn(waking(later(&schedule(TENANT, "c")), now + 9_000)),
        turn(later(&schedule(TENANT, "a"))),
        gone(&schedule(TENANT, "b")),
    ];
    assert_eq!(h.store.turn(changes).await?, [Ok(()); 3]);
    let due = h.store.due_schedules(10).await?;
    assert_eq!((names(&due), due[0].tenant.as_str()), (vec!["a"], "other"));
    assert_eq!(h.store.next_schedule().await?.0, due[0].wakes_at);
    h.turn(gone(&due[0])).await??;
    assert_eq!(h.store.next_schedule().await?.0, Some(Timestamp::from_millis(now + 5_000)));
    Ok(())
}

pub async fn slots_are_listed_latest_time_first_over_pages(h: &StoreHarness) -> Proof {
    let now = h.clock.now().as_millis();
    let first = schedule(TENANT, "a");
    let fresh =
        vec![h.slot(now, SlotOutcome::Due), h.slot_of("z", now, SlotOutcome::Due), h.slot(now - 60_000, SlotOutcome::Due)];
    h.turn(ScheduleChange { fresh, ..turn(first.clone()) }).await??;
    // Later turns fill in what is earlier, and the same times again.
    let fresh: Vec<Slot> = ["m", "b"]
        .iter()
        .flat_map(|series| [0, -1, -60_000].map(|at| h.slot_of(series, now + at, SlotOutcome::Due)))
        .collect();
    h.turn(ScheduleChange { fresh, ..turn(later(&first)) }).await??;
    h.turn(ScheduleChange { changed: vec![h.slot(now, SlotOutcome::Started)], ..turn(later(&later(&first))) }).await??;
    let elsewhere = ScheduleChange { fresh: vec![h.slot(now, SlotOutcome::Due)], ..turn(schedule("other", "a")) };
    h.turn(elsewhere).await??;
    let expected =
        [("b", 0), ("m", 0), ("z", 0), ("", 0), ("b", -1), ("m", -1), ("b", -60_000), ("m", -60_000), ("", -60_000)];
    let expected = expected.map(|(series, at)| (series, now + at));
    for limit in [0, 1, 2, 3, 4, 9, 10] {
        let slots = all_slots(&*h.store, TENANT, "a", limit).await?;
        assert_eq!(keys(&slots), expected, "pages of {limit}");
        assert_eq!(slots[3].outcome, SlotOutcome::Started, "a change does not move it");
    }
    assert_eq!((h.slots("nobody").await?, all_slots(&*h.store, "other", "a", 1).await?.len()), (Vec::new(), 1));
    Ok(())
}

pub async fn a_page_goes_on_below_a_slot_that_is_gone(h: &StoreHarness) -> Proof {
    let first = schedule(TENANT, "a");
    let fresh = vec![
        h.slot(1, SlotOutcome::Due),
        h.slot_of("x", 5, SlotOutcome::Due),
        h.slot_of("y", 5, SlotOutcome::Missed),
        h.slot(9, SlotOutcome::Due),
    ];
    h.turn(ScheduleChange { fresh, ..turn(first.clone()) }).await??;
    let query = SlotQuery { tenant: TENANT.into(), schedule: "a".into(), cursor: None, limit: 2 };
    let page = h.store.list_slots(query.clone()).await?;
    assert_eq!(keys(&page.items), [("", 9), ("y", 5)]);
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 1);
    // What comes meanwhile comes at the top.
    h.turn(ScheduleChange { fresh: vec![h.slot(10, SlotOutcome::Due)], ..turn(later(&first)) }).await??;
    let page = h.store.list_slots(SlotQuery { cursor: page.next, ..query }).await?;
    assert_eq!(keys(&page.items), [("x", 5), ("", 1)]);
    Ok(())
}

pub async fn slots_are_pruned_oldest_decision_first_within_the_limit(h: &StoreHarness) -> Proof {
    let (a, b) = (schedule(TENANT, "a"), schedule("other", "b"));
    let slots = |series: &str| vec![h.slot_of(series, 2, SlotOutcome::Missed), h.slot_of(series, 1, SlotOutcome::Skipped)];
    let outcomes = vec![
        h.slot(3, SlotOutcome::Due),
        h.slot(4, SlotOutcome::Queued),
        h.slot(5, SlotOutcome::Started),
        h.slot(6, SlotOutcome::Refused),
    ];
    let births = vec![
        ScheduleChange { fresh: slots("y"), ..turn(b.clone()) },
        ScheduleChange { fresh: outcomes.into_iter().chain(slots("x")).collect(), ..turn(a.clone()) },
    ];
    assert_eq!(h.store.turn(births).await?, [Ok(()); 2]);
    h.advance_ms(1_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 0, "not longer ago than that");
    // Its last decision counts.
    h.turn(ScheduleChange { changed: vec![h.slot(5, SlotOutcome::Refused)], ..turn(later(&a)) }).await??;
    h.advance_ms(1);
    assert_eq!(h.store.prune(KEEP, 2).await?, 2);
    assert_eq!(keys(&h.slots("a").await?), [("", 5), ("", 4), ("", 3), ("x", 2)]);
    assert_eq!((h.store.prune(KEEP, 0).await?, h.store.prune(KEEP, 2).await?), (0, 2));
    assert_eq!(keys(&all_slots(&*h.store, "other", "b", 9).await?), [("y", 2)]);
    assert_eq!(h.store.prune(KEEP, 2).await?, 1);
    h.turn(gone(&later(&a))).await??;
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 1);
    assert_eq!(keys(&h.slots("a").await?), [("", 4), ("", 3)], "what is still to be decided stays, even of what is gone");
    assert_eq!(h.store.prune(KEEP, 10).await?, 0);
    assert_eq!(h.store.list_schedules(&"other".into(), None, 10).await?, [b], "schedules are not pruned");
    Ok(())
}

pub async fn a_pruned_time_can_be_decided_again(h: &StoreHarness) -> Proof {
    let first = schedule(TENANT, "a");
    let fresh = || vec![h.slot_of("x", 1, SlotOutcome::Missed), h.slot_of("y", 1, SlotOutcome::Missed)];
    h.turn(ScheduleChange { fresh: fresh(), ..turn(first.clone()) }).await??;
    h.advance_ms(2_000);
    assert_eq!(h.store.prune(KEEP, 1).await?, 1);
    let again = ScheduleChange { fresh: vec![h.slot_of("x", 1, SlotOutcome::Due)], ..turn(later(&first)) };
    h.turn(again).await??;
    assert_eq!(keys(&all_slots(&*h.store, TENANT, "a", 1).await?), [("x", 1), ("y", 1)]);
    Ok(())
}
