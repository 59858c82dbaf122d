//! T-1: one turn of a schedule, all of it or none of it.

use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Slot, SlotOutcome, Target};

use super::schedules_stage::{TENANT, gone, keys, later, names, schedule, turn, waking};
use super::stage::{Proof, StoreHarness};
use lockgate_ports::store::{ScheduleChange, TurnConflict};

const CONFLICT: Result<(), TurnConflict> = Err(TurnConflict);

pub async fn a_new_schedule_is_loaded_as_it_was_committed(h: &StoreHarness) -> Proof {
    let new = Schedule { actor: "ünal".into(), actor_type: Some("agent".into()), ..waking(schedule(TENANT, "näme"), -7) };
    let run = Slot { target: Some(Target::Run("run-1".into())), ..h.slot(6, SlotOutcome::Started) };
    let long = Slot { reason: Some("\"why\" ".repeat(20_000).into()), ..h.slot_of("backfill-1", 5, SlotOutcome::Refused) };
    let outcomes = [SlotOutcome::Missed, SlotOutcome::Skipped, SlotOutcome::Queued, SlotOutcome::Due];
    let plain = outcomes.into_iter().zip(1..).map(|(outcome, at)| h.slot(at, outcome));
    let mut fresh: Vec<Slot> = plain.chain([long, run]).collect();
    h.turn(ScheduleChange { fresh: fresh.clone(), ..turn(new.clone()) }).await??;
    assert_eq!(h.schedule("näme").await?, Some(new));
    fresh.reverse();
    assert_eq!(h.slots("näme").await?, fresh);
    Ok(())
}

pub async fn schedules_are_loaded_in_the_order_asked(h: &StoreHarness) -> Proof {
    let (a, b) = (h.put("a").await?, h.put("b").await?);
    let theirs = schedule("other", "a");
    h.turn(turn(theirs.clone())).await??;
    let asked: Vec<(TenantId, Arc<str>)> =
        [("acme", "b"), ("acme", "nobody"), ("other", "a"), ("acme", "a"), ("other", "b"), ("acme", "b")]
            .map(|(tenant, name)| (tenant.into(), name.into()))
            .into();
    let found = h.store.load_schedules(&asked).await?;
    assert_eq!(found, [Some(b.clone()), None, Some(theirs), Some(a), None, Some(b)]);
    assert_eq!((h.store.load_schedules(&[]).await?, h.store.turn(Vec::new()).await?), (Vec::new(), Vec::new()));
    Ok(())
}

pub async fn a_turn_replaces_the_schedule_and_writes_its_slots(h: &StoreHarness) -> Proof {
    let first = Schedule { actor_type: Some("agent".into()), ..waking(schedule(TENANT, "a"), 50) };
    let fresh = vec![h.slot(1, SlotOutcome::Due), h.slot(2, SlotOutcome::Queued)];
    h.turn(ScheduleChange { fresh, ..turn(first) }).await??;
    h.advance_ms(10);
    let second = Schedule { actor: "bob".into(), ..later(&schedule(TENANT, "a")) };
    let started = Slot { reason: Some("late".into()), ..h.slot(1, SlotOutcome::Started) };
    // One that is not there any more is there again, and the last word about a slot counts.
    let (old, new) = (h.slot_of("backfill", 1, SlotOutcome::Missed), h.slot(3, SlotOutcome::Due));
    let changed = vec![h.slot(1, SlotOutcome::Refused), started.clone(), old.clone(), h.slot(3, SlotOutcome::Skipped)];
    h.turn(ScheduleChange { fresh: vec![new], changed, ..turn(second.clone()) }).await??;
    assert_eq!(h.schedule("a").await?, Some(second));
    let waits = h.slots("a").await?.into_iter().find(|slot| slot.key.nominal.as_millis() == 2).ok_or("a slot is gone")?;
    assert_eq!(h.slots("a").await?, [h.slot(3, SlotOutcome::Skipped), waits.clone(), old, started]);
    assert_eq!(waits.outcome, SlotOutcome::Queued);
    Ok(())
}

pub async fn a_stale_turn_leaves_nothing_and_its_neighbours_are_done(h: &StoreHarness) -> Proof {
    let (first, other) = (h.put("a").await?, h.put("b").await?);
    h.turn(ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], ..turn(later(&first)) }).await??;
    let before = h.around_schedules(&["a", "unknown"]).await?;
    let stale = |schedule: Schedule| ScheduleChange {
        fresh: vec![h.slot(5, SlotOutcome::Due)],
        changed: vec![h.slot(1, SlotOutcome::Refused)],
        audit: h.audit_of("stale"),
        ..turn(waking(schedule, 1))
    };
    let ahead = Schedule { version: 4, ..first.clone() };
    let unknown = later(&schedule(TENANT, "unknown"));
    let changes = [first.clone(), later(&first), ahead, unknown].map(stale);
    let going = changes.clone().map(|change| ScheduleChange { gone: true, ..change });
    assert_eq!(h.store.turn(changes.into_iter().chain(going).collect()).await?, [CONFLICT; 8]);
    assert_eq!(h.around_schedules(&["a", "unknown"]).await?, before);
    let next = ScheduleChange { fresh: vec![h.slot(7, SlotOutcome::Due)], ..turn(later(&other)) };
    let results = h.store.turn(vec![stale(first.clone()), next, stale(later(&first))]).await?;
    assert_eq!(results, [CONFLICT, Ok(()), CONFLICT]);
    assert_eq!(h.schedule("b").await?, Some(later(&other)));
    assert_eq!((keys(&h.slots("b").await?), keys(&h.slots("a").await?)), (vec![("", 7)], vec![("", 1)]));
    Ok(())
}

pub async fn a_name_is_taken_once_by_each_tenant(h: &StoreHarness) -> Proof {
    h.put("a").await?;
    let before = h.around_schedules(&["a"]).await?;
    let twin = Schedule { actor: "bob".into(), ..waking(schedule(TENANT, "a"), 1) };
    let twin = ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], audit: h.audit_of("twin"), ..turn(twin) };
    assert_eq!(h.turn(twin).await?, CONFLICT);
    assert_eq!(h.around_schedules(&["a"]).await?, before);
    let theirs = schedule("other", "a");
    h.turn(turn(theirs.clone())).await??;
    assert_eq!(h.store.list_schedules(&"other".into(), None, 10).await?, [theirs]);
    Ok(())
}

pub async fn a_time_is_decided_once(h: &StoreHarness) -> Proof {
    let first = schedule(TENANT, "a");
    h.turn(ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Missed)], ..turn(first.clone()) }).await??;
    h.put("b").await?;
    let before = h.around_schedules(&["a", "b", "c"]).await?;
    let (known, new) = (h.slot(1, SlotOutcome::Due), h.slot(2, SlotOutcome::Due));
    for fresh in [vec![new.clone(), known.clone()], vec![new.clone(), new.clone()]] {
        let (changed, audit) = (vec![h.slot(9, SlotOutcome::Refused)], h.audit_of("refused"));
        let refused = ScheduleChange { fresh, changed, audit, ..turn(waking(later(&first), 3)) };
        let going = ScheduleChange { gone: true, ..refused.clone() };
        assert_eq!(h.store.turn(vec![refused, going]).await?, [CONFLICT; 2]);
        assert_eq!(h.around_schedules(&["a", "b", "c"]).await?, before);
    }
    let twins = ScheduleChange { fresh: vec![new.clone(), new.clone()], ..turn(schedule(TENANT, "c")) };
    assert_eq!(h.turn(twins).await?, CONFLICT);
    assert_eq!(h.around_schedules(&["a", "b", "c"]).await?, before, "a birth that was refused leaves nothing either");
    let fresh = vec![h.slot_of("backfill", 1, SlotOutcome::Due), new];
    h.turn(ScheduleChange { fresh, ..turn(later(&first)) }).await??;
    let elsewhere = ScheduleChange { fresh: vec![known], ..turn(later(&schedule(TENANT, "b"))) };
    h.turn(elsewhere).await??;
    assert_eq!(keys(&h.slots("a").await?), [("", 2), ("backfill", 1), ("", 1)]);
    assert_eq!(keys(&h.slots("b").await?), [("", 1)]);
    Ok(())
}

pub async fn one_call_may_take_several_turns_of_one_schedule(h: &StoreHarness) -> Proof {
    let first = schedule(TENANT, "a");
    let (second, third) = (later(&first), waking(later(&later(&first)), 70));
    let turns = vec![
        ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], audit: h.audit_of("one"), ..turn(first.clone()) },
        ScheduleChange { fresh: vec![h.slot(2, SlotOutcome::Due)], audit: h.audit_of("two"), ..turn(second.clone()) },
        ScheduleChange { fresh: vec![h.slot(3, SlotOutcome::Due)], audit: h.audit_of("no"), ..turn(second.clone()) },
        // Decided by an earlier one of the same call.
        ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], audit: h.audit_of("no"), ..turn(third.clone()) },
        ScheduleChange { changed: vec![h.slot(1, SlotOutcome::Started)], audit: h.audit_of("three"), ..turn(third.clone()) },
        turn(first.clone()),
    ];
    let results = h.store.turn(turns).await?;
    assert_eq!(results, [Ok(()), Ok(()), CONFLICT, CONFLICT, Ok(()), CONFLICT]);
    assert_eq!(h.schedule("a").await?, Some(third.clone()));
    assert_eq!(h.slots("a").await?, [h.slot(2, SlotOutcome::Due), h.slot(1, SlotOutcome::Started)]);
    let audit: Vec<_> = h.store.audit(0, 10).await?.into_iter().map(|row| row.entry.subject).collect();
    assert_eq!(audit, ["one", "two", "three"].map(Arc::from));
    // Removed, made again and removed; and one that is there only in between.
    let turns = vec![
        gone(&third),
        gone(&third),
        ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], ..turn(first.clone()) },
        ScheduleChange { fresh: vec![h.slot(4, SlotOutcome::Due)], ..turn(waking(first.clone(), 9)) },
        turn(schedule(TENANT, "short")),
        ScheduleChange { changed: vec![h.slot(5, SlotOutcome::Missed)], ..gone(&schedule(TENANT, "short")) },
    ];
    assert_eq!(h.store.turn(turns).await?, [Ok(()), CONFLICT, CONFLICT, Ok(()), Ok(()), Ok(())]);
    assert_eq!(h.store.list_schedules(&TENANT.into(), None, 10).await?, [waking(first, 9)]);
    assert_eq!(keys(&h.slots("a").await?), [("", 4), ("", 2), ("", 1)]);
    assert_eq!(keys(&h.slots("short").await?), [("", 5)]);
    Ok(())
}

pub async fn a_schedule_that_goes_leaves_its_slots(h: &StoreHarness) -> Proof {
    let first = waking(schedule(TENANT, "a"), 1);
    h.turn(ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], ..turn(first.clone()) }).await??;
    let never = ScheduleChange { gone: true, ..turn(schedule(TENANT, "never")) };
    assert_eq!(h.turn(never).await?, CONFLICT, "there is nothing to remove");
    let last = ScheduleChange { changed: vec![h.slot(1, SlotOutcome::Started)], audit: h.audit_of("a"), ..gone(&first) };
    h.turn(last.clone()).await??;
    assert_eq!((h.schedule("a").await?, h.store.due_schedules(10).await?), (None, Vec::new()));
    assert_eq!(h.slots("a").await?, [h.slot(1, SlotOutcome::Started)]);
    assert_eq!(h.turn(last).await?, CONFLICT);
    assert_eq!(h.turn(turn(later(&first))).await?, CONFLICT, "it begins anew");
    assert_eq!(h.store.audit(0, 10).await?.len(), 1);
    let again = ScheduleChange { fresh: vec![h.slot(1, SlotOutcome::Due)], ..turn(first.clone()) };
    assert_eq!(h.turn(again).await?, CONFLICT, "what was decided stays decided");
    assert_eq!(h.schedule("a").await?, None);
    h.turn(turn(first.clone())).await??;
    assert_eq!(h.schedule("a").await?, Some(first));
    Ok(())
}

pub async fn many_turns_are_written_at_once(h: &StoreHarness) -> Proof {
    let all: Vec<Schedule> = (0..1_000).map(|n| waking(schedule(TENANT, &format!("s-{n:04}")), n)).collect();
    let births = all.iter().rev().cloned().map(turn).collect();
    assert!(h.store.turn(births).await?.iter().all(Result::is_ok));
    let next = |(n, schedule): (i64, &Schedule)| ScheduleChange {
        fresh: vec![h.slot(n, SlotOutcome::Due), h.slot_of("backfill", n, SlotOutcome::Due)],
        audit: h.audit_of(&schedule.name),
        ..turn(Schedule { version: if n == 500 { 3 } else { 2 }, ..schedule.clone() })
    };
    let results = h.store.turn((0..).zip(&all).map(next).collect()).await?;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 999);
    assert_eq!(results[500], CONFLICT);
    let found = h.store.list_schedules(&TENANT.into(), None, 2_000).await?;
    assert_eq!(names(&found), names(&all));
    assert_eq!(found.iter().map(|schedule| schedule.version).sum::<i64>(), 1_999);
    for n in [0, 499, 999] {
        assert_eq!(keys(&h.slots(&format!("s-{n:04}")).await?), [("backfill", n), ("", n)]);
    }
    assert_eq!((h.slots("s-0500").await?.len(), h.store.audit(0, 2_000).await?.len()), (0, 999));
    Ok(())
}

pub async fn concurrent_turns_of_one_version_have_one_winner(h: &StoreHarness) -> Proof {
    let (a, b) = (h.put("a").await?, h.put("b").await?);
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..16 {
        let next = |of: &Schedule| ScheduleChange { fresh: vec![h.slot(n, SlotOutcome::Due)], ..turn(later(of)) };
        // Half of them ask for the other one first.
        let both = if n % 2 == 0 { vec![next(&a), next(&b)] } else { vec![next(&b), next(&a)] };
        let store = Arc::clone(&h.store);
        racers.spawn(async move { store.turn(both).await });
    }
    let mut winners = 0;
    while let Some(results) = racers.join_next().await {
        winners += results??.iter().filter(|result| result.is_ok()).count();
    }
    assert_eq!(winners, 2);
    assert_eq!((h.slots("a").await?.len(), h.slots("b").await?.len()), (1, 1));
    assert_eq!((h.schedule("a").await?, h.schedule("b").await?), (Some(later(&a)), Some(later(&b))));
    Ok(())
}

pub async fn concurrent_schedules_of_one_name_have_one_winner(h: &StoreHarness) -> Proof {
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..12 {
        let birth =
            |name| ScheduleChange { fresh: vec![h.slot(n, SlotOutcome::Due)], ..turn(waking(schedule(TENANT, name), n)) };
        let both = if n % 2 == 0 { vec![birth("a"), birth("b")] } else { vec![birth("b"), birth("a")] };
        let store = Arc::clone(&h.store);
        racers.spawn(async move { store.turn(both).await });
    }
    let mut winners = 0;
    while let Some(results) = racers.join_next().await {
        winners += results??.iter().filter(|result| result.is_ok()).count();
    }
    assert_eq!(winners, 2);
    for name in ["a", "b"] {
        let (found, slots) = (h.schedule(name).await?.ok_or("nobody won")?, h.slots(name).await?);
        assert_eq!(slots.iter().map(|slot| Some(slot.key.nominal)).collect::<Vec<_>>(), [found.wakes_at]);
    }
    Ok(())
}
