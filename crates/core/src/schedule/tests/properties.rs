//! Random schedules, clocks that jump, and turns that are cut off anywhere, against a plain list of all times.

use proptest::prelude::*;

use super::world::{Crash, World};
use super::*;

#[derive(Clone, Debug)]
enum Op {
    /// Minutes, back or forth.
    Clock(i64),
    Visit(Crash),
    EndOne,
    EndAll,
    /// Minutes of a span that begins a day ago.
    Backfill(i64),
}

fn op() -> impl Strategy<Value = Op> {
    let crash = prop_oneof![Just(Crash::AfterBeginning), Just(Crash::AfterDeciding), Just(Crash::AfterCommit)];
    prop_oneof![
        4 => (0_i64..20).prop_map(Op::Clock),
        1 => (20_i64..3_000).prop_map(Op::Clock),
        1 => (-500_i64..0).prop_map(Op::Clock),
        6 => Just(Op::Visit(Crash::Never)),
        3 => crash.prop_map(Op::Visit),
        2 => Just(Op::EndOne),
        1 => Just(Op::EndAll),
    ]
}

/// As above, and now and then a backfill is asked for.
fn op_or_backfill() -> impl Strategy<Value = Op> {
    prop_oneof![9 => op(), 1 => (1_i64..60).prop_map(Op::Backfill)]
}

#[derive(Clone, Debug)]
struct Plan {
    minutes: i64,
    misfire: &'static str,
    window: i64,
    grace: i64,
    overlap: &'static str,
    queue: u32,
    jitter: i64,
    cron: bool,
}

impl Plan {
    fn spec(&self) -> Spec {
        let Self { minutes, misfire, window, grace, overlap, queue, jitter, cron } = self;
        let rhythm = if *cron { format!("cron: '*/{minutes} * * * *'") } else { format!("every: {minutes}m") };
        let window = if *misfire == "skip" { String::new() } else { format!("\nmisfire_window: {window}m") };
        let queue = if *overlap == "queue" { format!("\nqueue: {queue}") } else { String::new() };
        spec(&format!("{rhythm}\nmisfire: {misfire}{window}\ngrace: {grace}s\noverlap: {overlap}{queue}\njitter: {jitter}s"))
    }

    /// All times after one moment and up to another.
    fn times(&self, after: i64, until: i64) -> impl Iterator<Item = i64> {
        let period = self.minutes * MINUTE;
        (after.div_euclid(period) + 1..=until.div_euclid(period)).map(move |n| n * period)
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        prop::sample::select(vec![1_i64, 5, 15, 30]),
        prop::sample::select(vec!["skip", "latest", "all"]),
        5_i64..600,
        prop::sample::select(vec![1_i64, 60, 600]),
        prop::sample::select(vec!["allow", "skip", "queue", "replace"]),
        1_u32..4,
        prop::sample::select(vec![0_i64, 0, 20, 4_000]),
        any::<bool>(),
    )
        .prop_map(|(minutes, misfire, window, grace, overlap, queue, jitter, cron)| Plan {
            minutes,
            misfire,
            window,
            grace,
            overlap,
            queue,
            jitter,
            cron,
        })
}

const START: i64 = 7 * MINUTE + 13;

fn played(plan: &Plan, ops: &[Op]) -> World {
    let mut world = World::new(plan.spec(), START);
    let mut latest = START;
    for op in ops {
        latest = latest.max(world.now);
        match op {
            Op::Clock(minutes) => world.now = (world.now + minutes * MINUTE).max(0),
            Op::Visit(crash) => world.visit(*crash),
            Op::EndOne => world.end_one(),
            Op::EndAll => world.end_all(),
            Op::Backfill(minutes) => world.backfill(world.now - DAY, *minutes),
        }
    }
    // The clock is right again, everything ends, and every queued slot starts: no slot stays open.
    world.now = world.now.max(latest);
    for round in 0..5_000 {
        if round >= 20 && world.head.backfills.is_empty() {
            break;
        }
        world.end_all();
        world.now = world.now.max(world.head.wakes_at.map_or(0, |wakes| wakes.as_millis().min(world.now + 15_000)));
        world.rest();
    }
    world
}

/// T-2: the slots cover every time up to where the schedule is, each once.
fn assert_every_time_is_decided_once(plan: &Plan, world: &World) {
    let mut before = START;
    for (key, slot) in &world.slots {
        let covered: Vec<i64> = plan.times(before, key.nominal.as_millis()).collect();
        assert_eq!(covered.last(), Some(&key.nominal.as_millis()), "{slot:?} is for a time of the schedule");
        if covered.len() > 1 {
            assert_eq!(slot.outcome, SlotOutcome::Missed, "{slot:?} stands for {} times", covered.len());
            let text = format!("{} times from ", covered.len());
            assert!(slot.reason.as_ref().is_some_and(|reason| reason.starts_with(&text)), "{slot:?}, {text}");
        }
        before = key.nominal.as_millis();
    }
    let undecided: Vec<i64> = plan.times(before, world.now).collect();
    let slack = if plan.jitter > 0 { 1 } else { 0 };
    assert!(undecided.len() <= slack, "{undecided:?} are not decided at {}", world.now);
}

/// What was started late was allowed to be, and what was given up was not.
fn assert_the_misfire_policy_is_kept(plan: &Plan, world: &World) {
    let (grace, window) = (plan.grace * 1_000, plan.window * MINUTE);
    let jitter = (plan.jitter * 1_000).min(plan.minutes * MINUTE);
    let mut before = START;
    for (key, slot) in &world.slots {
        let (time, noticed) = (key.nominal.as_millis(), world.noticed[key]);
        let first = plan.times(before, time).next().unwrap();
        before = time;
        let late = noticed - time;
        if slot.outcome == SlotOutcome::Missed {
            assert!(late > grace, "{slot:?} was given up and not late");
            match plan.misfire {
                "all" => assert!(late > window, "{slot:?} was in the window"),
                "latest" => {
                    let next = world.slots.get(&SlotKey { nominal: ms(time + plan.minutes * MINUTE), ..key.clone() });
                    let taken = next.is_some_and(|slot| slot.outcome != SlotOutcome::Missed);
                    assert!(late > window || taken, "{slot:?} was the latest and in the window");
                }
                _ => {}
            }
            assert!(first <= time);
        } else if late > grace + jitter {
            assert_ne!(plan.misfire, "skip", "{slot:?} was started late");
            if plan.misfire == "latest" {
                assert!(
                    late <= window + grace + jitter || late <= plan.minutes * MINUTE + grace + jitter,
                    "{slot:?} is not the latest"
                );
            }
        }
    }
}

fn assert_starts_and_overlap(plan: &Plan, world: &World) {
    let started = world.slots.values().filter(|slot| slot.outcome == SlotOutcome::Started);
    let targets: Vec<Target> = started.map(target).collect();
    assert_eq!(targets.len(), world.targets.len(), "each started slot has one target, and each target a slot");
    assert!(targets.iter().all(|target| world.targets.contains_key(target)));
    assert!(world.slots.values().all(|slot| !matches!(slot.outcome, SlotOutcome::Due | SlotOutcome::Queued)));
    if plan.overlap != "allow" {
        assert!(world.most_at_work <= 1, "{} were at work at once", world.most_at_work);
    }
    let queue = match plan.overlap {
        "queue" => plan.queue as usize,
        "replace" => 1,
        _ => 0,
    };
    assert!(world.most_queued <= queue, "{} waited", world.most_queued);
    assert!(world.most_open <= 100 + queue + 1, "the head held {} slots", world.most_open);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_time_comes_to_one_outcome_whatever_crashes(plan in plan(), ops in prop::collection::vec(op(), 1..60)) {
        let world = played(&plan, &ops);
        assert_every_time_is_decided_once(&plan, &world);
        assert_the_misfire_policy_is_kept(&plan, &world);
        assert_starts_and_overlap(&plan, &world);
    }

    #[test]
    fn beside_backfills_one_at_a_time_is_at_work_and_no_time_is_lost(
        plan in plan(),
        ops in prop::collection::vec(op_or_backfill(), 1..60),
    ) {
        let world = played(&plan, &ops);
        prop_assert!(plan.overlap == "allow" || world.most_at_work <= 1, "{} were at work at once", world.most_at_work);
        let of_backfills = world.slots.values().filter(|slot| !slot.key.series.is_in_line());
        prop_assert_eq!(of_backfills.clone().count(), world.asked, "each time of each backfill has a slot");
        prop_assert!(of_backfills.clone().all(|slot| slot.outcome == SlotOutcome::Started));
        prop_assert!(world.slots.values().all(|slot| !matches!(slot.outcome, SlotOutcome::Due | SlotOutcome::Queued)));
        prop_assert!(world.head.backfills.is_empty(), "every backfill ends");
    }

    #[test]
    fn a_backfill_starts_each_time_once_within_its_concurrency(
        minutes in prop::sample::select(vec![5_i64, 15, 30]),
        span in 1_i64..2_000,
        concurrency in 1_u32..5,
        crashes in prop::collection::vec(any::<bool>(), 0..40),
    ) {
        let mut world = World::new(spec(&format!("every: {minutes}m\nmisfire: skip\noverlap: allow")), 100 * DAY);
        // Its own times are not what is looked at here.
        let ask = Backfill::new("b".into(), ms(DAY), ms(DAY + span * MINUTE), concurrency);
        let expected: Vec<i64> = (DAY..=DAY + span * MINUTE).step_by((minutes * MINUTE) as usize).collect();
        world.head = world.head.backfill(ask, ms(world.now)).unwrap().schedule;
        let mut crashes = crashes.into_iter();
        while !world.head.backfills.is_empty() {
            let crash = if crashes.next() == Some(true) { Crash::AfterCommit } else { Crash::Never };
            world.visit(crash);
            let at_work = world.targets.values().filter(|ended| !**ended).count();
            prop_assert!(at_work <= concurrency as usize);
            world.end_one();
        }
        let started: Vec<i64> = world.slots.keys().map(|key| key.nominal.as_millis()).collect();
        prop_assert_eq!(started, expected);
        prop_assert!(world.slots.values().all(|slot| slot.outcome == SlotOutcome::Started));
    }
}
