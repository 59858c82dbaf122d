//! Why a shape is not placed, and what would place it.

use std::sync::Arc;

use super::{candidate, free, labels, names, place, profile, routing};
use crate::lane::Shape;
use crate::placement::{Candidate, Roster, Unavailable, WORKERS_SHOWN_MAX};
use crate::pools::Closed;
use crate::pools::Closed::{Draining, Paused};
use crate::worker::Load;

const FILE: &str = "
topics: {job.*: [d1, d2], mixed.*: [d1, q]}
pools: {d1: {dispatch: direct}, d2: {dispatch: direct}, q: {dispatch: queue}}
";

fn with(closed: &[(&str, Closed)], workers: impl IntoIterator<Item = Candidate>) -> Roster<u32> {
    let mut roster = Roster::new(routing(FILE, closed));
    (0..).zip(workers).for_each(|(key, worker)| roster.insert(key, worker));
    roster
}

fn refused(roster: &Roster<u32>, topic: &str) -> String {
    roster.explain(&Shape::of(topic)).refusal.map_or_else(|| "placed".into(), |refusal| refusal.to_string())
}

fn hopeless(roster: &mut Roster<u32>, topic: &str) -> Option<String> {
    let shape = Arc::new(Shape::of(topic));
    let first = roster.is_hopeless(&shape);
    assert_eq!(roster.is_hopeless(&shape), first);
    first.map(|refusal| refusal.to_string())
}

fn overloaded(mut worker: Candidate) -> Candidate {
    worker.load = Load { cpu: Some(95), ..Load::default() };
    worker
}

fn away(mut worker: Candidate, away: Unavailable) -> Candidate {
    worker.away = Some(away);
    worker
}

#[test]
fn every_code_is_reached() {
    let unfit = candidate(profile("w", "d1", &["other.*"]), 1);
    let detached = away(free("w", "d1", 1), Unavailable::Detached);
    let busy = Candidate { active: 1, ..free("w", "q", 1) };
    for (closed, workers, topic, code) in [
        (&[][..], vec![], "unknown.x", "no_pool_mapping"),
        (&[], vec![], "job.x", "no_workers"),
        (&[], vec![unfit], "job.x", "no_workers"),
        (&[], vec![detached.clone()], "job.x", "workers_away"),
        (&[], vec![away(free("w", "d1", 1), Unavailable::Elsewhere)], "job.x", "workers_busy"),
        (&[], vec![detached.clone(), overloaded(free("v", "d2", 1))], "job.x", "pool_overloaded"),
        (&[], vec![away(overloaded(free("w", "d1", 1)), Unavailable::Elsewhere)], "job.x", "pool_overloaded"),
        (&[], vec![away(overloaded(free("w", "d1", 1)), Unavailable::Unheard)], "job.x", "pool_overloaded"),
        (&[], vec![overloaded(free("v", "d1", 1)), busy], "mixed.x", "workers_busy"),
        (&[], vec![detached, free("v", "d2", 1)], "job.x", "placed"),
        (&[("d1", Paused)], vec![free("v", "d2", 1)], "job.x", "pool_paused"),
        (&[("d1", Draining)], vec![free("v", "d2", 1)], "job.x", "placed"),
        (&[("d1", Draining), ("d2", Draining)], vec![free("v", "d2", 1)], "job.x", "pool_draining"),
        (&[("d1", Draining), ("d2", Paused)], vec![free("v", "d2", 1)], "job.x", "pool_paused"),
        (&[("d2", Paused)], vec![free("v", "d2", 1)], "job.x", "pool_paused"),
        (&[("d2", Draining)], vec![free("v", "d2", 1)], "job.x", "no_workers"),
    ] {
        assert_eq!(refused(&with(closed, workers), topic), code, "{closed:?} {topic}");
    }
    let roster = with(&[], [free("w", "d1", 1)]);
    let elsewhere = Shape { preferred_pool: Some("q".into()), ..Shape::of("job.x") };
    let forbidden = Shape { allowed_pools: Some(names(&["q"])), ..Shape::of("job.x") };
    let code = |shape| roster.explain(&shape).refusal.map(|refusal| refusal.to_string());
    assert_eq!(code(elsewhere).as_deref(), Some("preferred_pool_not_mapped"));
    assert_eq!(code(forbidden).as_deref(), Some("no_allowed_pool"));
}

#[test]
fn only_what_cannot_be_waited_for_is_hopeless() {
    let no_workers = Some("no_workers".to_owned());
    let cases = [
        (&[][..], vec![], "unknown.x", Some("no_pool_mapping".to_owned())),
        (&[], vec![], "job.x", no_workers.clone()),
        (&[], vec![candidate(profile("w", "d1", &["other.*"]), 1)], "job.x", no_workers.clone()),
        (&[], vec![away(free("w", "d2", 1), Unavailable::Detached)], "job.x", None),
        (&[], vec![overloaded(free("w", "d2", 1))], "job.x", None),
        (&[], vec![], "mixed.x", None),
        (&[("q", Draining)], vec![], "mixed.x", no_workers.clone()),
        (&[("q", Paused)], vec![], "mixed.x", None),
        (&[("d1", Paused)], vec![], "job.x", None),
        (&[("d1", Draining)], vec![], "job.x", no_workers),
        (&[("d1", Draining), ("d2", Draining)], vec![], "job.x", None),
    ];
    for (closed, workers, topic, expected) in cases {
        assert_eq!(hopeless(&mut with(closed, workers), topic), expected, "{closed:?} {topic}");
    }
}

#[test]
fn hope_comes_and_goes_with_the_workers() {
    let mut roster = with(&[], []);
    assert!(hopeless(&mut roster, "job.x").is_some());
    roster.insert(7, free("w", "d2", 1));
    assert_eq!(hopeless(&mut roster, "job.x"), None);
    roster.remove(&7);
    assert!(hopeless(&mut roster, "job.x").is_some());
}

#[test]
fn a_closed_pool_gets_nothing_and_a_pause_holds_back_the_pools_after_it() {
    let both = || [free("w", "d1", 1), free("v", "d2", 1)];
    let shape = Arc::new(Shape::of("job.x"));
    let plans = |closed: &[(&str, Closed)]| {
        let mut roster = with(closed, both());
        ["d1", "d2"].map(|pool| roster.plan(&shape, &pool.into(), 1, false).len())
    };
    assert_eq!(plans(&[]), [1, 1]);
    assert_eq!(plans(&[("d1", Draining)]), [0, 1]);
    assert_eq!(plans(&[("d1", Paused)]), [0, 0]);
    assert_eq!(plans(&[("d2", Paused)]), [1, 0]);
    let reasons = with(&[("d1", Paused)], both()).explain(&shape).pools.into_iter().map(|look| look.reason);
    let codes: Vec<String> = reasons.flatten().map(|reason| reason.to_string()).collect();
    assert_eq!(codes, ["pool_paused", "behind_paused_pool"]);
}

#[test]
fn the_preferred_worker_takes_what_it_has_room_for_in_whichever_pool_of_the_route() {
    let mut roster = with(&[], [free("w0", "d1", 10), Candidate { active: 2, ..free("w1", "d2", 5) }, free("w2", "q", 5)]);
    let prefers = |name: &str| Arc::new(Shape { preferred_worker: Some(name.into()), ..Shape::of("job.x") });
    assert_eq!(roster.plan(&prefers("w1"), &"d1".into(), 4, false), [(1, 3), (0, 1)]);
    assert_eq!(roster.plan(&prefers("w1"), &"d2".into(), 9, false), [(1, 3)], "it has no room twice");
    assert_eq!(roster.plan(&prefers("w2"), &"d1".into(), 1, false), [(0, 1)], "q is not on the route");
    assert_eq!(roster.plan(&prefers("gone"), &"d1".into(), 1, false), [(0, 1)]);
    roster.change(&1, |worker| worker.away = Some(Unavailable::Draining));
    assert_eq!(roster.plan(&prefers("w1"), &"d1".into(), 1, false), [(0, 1)]);
}

#[test]
fn beyond_a_hundred_workers_are_counted_by_reason() {
    let unfit = (0..70).map(|n| candidate(profile(&format!("u{n}"), "d1", &["other"]), 1));
    let full = (0..50).map(|n| free(&format!("f{n}"), "d1", 1));
    let mut roster = with(&[], unfit.chain(full));
    place(&mut roster, &Arc::new(Shape::of("job.x")), "d1", 40);
    let look = roster.explain(&Shape::of("job.x")).pools.swap_remove(0);
    assert_eq!(look.workers.len(), WORKERS_SHOWN_MAX);
    assert_eq!(look.workers.iter().filter(|worker| worker.reason().is_none()).count(), 10);
    let rest: Vec<_> = look.rest.iter().map(|(reason, n)| (reason.as_ref().map(ToString::to_string), *n)).collect();
    assert_eq!(rest, [(Some("topic_not_served".into()), 20)]);
}

#[test]
fn the_smallest_change_is_named() {
    let gpu = Shape { requires: names(&["gpu"]), placement: labels(&[("node.zone", "eu")]), ..Shape::of("job.x") };
    let mut near = profile("near", "d2", &["job.*"]);
    near.labels = labels(&[("zone", "eu")]);
    let mut able = profile("able", "d1", &["job.*"]);
    able.capabilities = names(&["gpu"]);
    let far = candidate(profile("far", "d1", &["other"]), 1);
    let busy = Candidate { active: 1, ..free("busy", "q", 1) };
    let elsewhere = Shape { preferred_pool: Some("q".into()), ..Shape::of("job.x") };
    let forbidden = Shape { allowed_pools: Some(names(&["q", "z"])), ..Shape::of("job.x") };
    let x = || Shape::of("job.x");
    let cases = [
        (&[][..], vec![], Shape::of("unknown"), "Map unknown to a pool in pools.yaml."),
        (
            &[],
            vec![],
            elsewhere,
            "Add pool q to the pools of job.x in pools.yaml, or submit the job without preferred_pool.",
        ),
        (
            &[],
            vec![],
            forbidden,
            "Policy allows only these pools: q, z. Map job.x to one of them in pools.yaml, or allow another.",
        ),
        (&[], vec![], x(), "Start a worker in pool d1 that serves job.x."),
        (&[("d1", Draining)], vec![], x(), "Start a worker in pool d2 that serves job.x."),
        (&[("d1", Paused)], vec![free("w", "d2", 1)], x(), "Resume pool d1: `lockgate pools resume d1`."),
        (&[("d1", Draining), ("d2", Draining)], vec![], x(), "Resume pool d1: `lockgate pools resume d1`."),
        (&[], vec![far.clone()], x(), "Let worker far of pool d1 serve job.x."),
        (&[], vec![far.clone(), candidate(near, 1)], gpu.clone(), "Add the capability gpu to worker near of pool d2."),
        (&[], vec![far.clone(), candidate(able, 1)], gpu.clone(), "Give worker able of pool d1 the label node.zone=eu."),
        (
            &[],
            vec![far],
            gpu,
            "Start a worker in pool d1 that serves job.x and has the capability gpu and has the label node.zone=eu.",
        ),
        (
            &[],
            vec![away(free("w", "d2", 1), Unavailable::Detached)],
            x(),
            "Bring worker w of pool d2 back: its connection is down.",
        ),
        (&[], vec![away(free("w", "d2", 1), Unavailable::Draining)], x(), "Start a worker in pool d1 that serves job.x."),
        (
            &[],
            vec![overloaded(free("w", "d2", 1))],
            x(),
            "Wait until worker w of pool d2 is below its overload limit (overloaded:cpu), or start another one there.",
        ),
        (
            &[],
            vec![overloaded(free("w", "d1", 1)), busy],
            Shape::of("mixed.x"),
            "Wait for a free place: every worker that fits is busy. More slots or workers in pool q start it sooner.",
        ),
        (&[], vec![free("w", "d1", 1)], x(), "Nothing: a worker is free and takes it when its turn comes."),
    ];
    for (closed, workers, shape, expected) in cases {
        assert_eq!(with(closed, workers).explain(&shape).smallest_change(&shape), expected);
    }
}
