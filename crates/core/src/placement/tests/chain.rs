//! Each reason for which a worker is passed over, in the order of the chain.

use std::sync::Arc;

use super::{candidate, labels, names, profile, routing};
use crate::lane::Shape;
use crate::placement::{Candidate, Roster, Unavailable};
use crate::worker::Load;

const FILE: &str = "
topics: {job.*: p}
pools: {p: {dispatch: direct, capabilities: [ssd], labels: {zone: eu, placement.rack: r1}}}
";

fn demanding() -> Shape {
    Shape {
        requires: names(&["gpu", "ssd"]),
        placement: labels(&[("constraint.avx", "true"), ("node.disk", "fast"), ("placement.zone", "eu")]),
        ..Shape::of("job.x")
    }
}

/// The reason for which the only worker is passed over; checks that `plan` agrees.
fn reason(candidate: Candidate, shape: Shape) -> String {
    let mut roster = Roster::new(routing(FILE, &[]));
    roster.insert(1, candidate);
    let placement = roster.explain(&shape);
    let reason = placement.pools[0].workers[0].reason();
    let planned = roster.plan(&Arc::new(shape), &"p".into(), 1, false);
    assert_eq!(planned.is_empty(), reason.is_some());
    reason.map_or_else(|| "fits".into(), |reason| reason.to_string())
}

#[test]
fn the_first_check_that_fails_is_the_reason() {
    let mut worker = candidate(profile("w", "p", &["other.*"]), 0);
    worker.away = Some(Unavailable::Detached);
    worker.load = Load { cpu: Some(90), gpu: Some(95), memory: Some(100) };
    let mut seen = Vec::new();
    let mut look = |worker: &Candidate| seen.push(reason(worker.clone(), demanding()));
    let edit = |worker: &mut Candidate, label: &str| {
        let profile = Arc::make_mut(&mut worker.profile);
        profile.labels.insert(label.into(), if label == "disk" { "fast".into() } else { "true".into() });
    };
    look(&worker);
    Arc::make_mut(&mut worker.profile).topics = vec!["job.*".into()];
    look(&worker);
    Arc::make_mut(&mut worker.profile).capabilities = names(&["gpu"]);
    look(&worker);
    edit(&mut worker, "constraint.avx");
    look(&worker);
    edit(&mut worker, "disk");
    look(&worker);
    worker.away = Some(Unavailable::Draining);
    look(&worker);
    worker.away = None;
    look(&worker);
    worker.capacity = 1;
    look(&worker);
    worker.load.cpu = Some(89);
    look(&worker);
    worker.load.gpu = None;
    look(&worker);
    assert_eq!(
        seen,
        [
            "topic_not_served",
            "missing_capability:gpu",
            "placement_mismatch:constraint.avx",
            "placement_mismatch:node.disk",
            "detached",
            "draining",
            "overloaded:active",
            "overloaded:cpu",
            "overloaded:gpu",
            "fits",
        ]
    );
}

#[test]
fn without_overload_limits_a_full_worker_is_busy() {
    let mut roster = Roster::new(routing("{topics: {x: p}, pools: {p: {}}}", &[]));
    let load = Load { cpu: Some(100), gpu: Some(100), memory: Some(100) };
    roster.insert(1, Candidate { active: 2, load, ..candidate(profile("w", "p", &["*"]), 2) });
    let reason = roster.explain(&Shape::of("x")).pools[0].workers[0].reason();
    assert_eq!(reason.map(|reason| reason.to_string()), Some("busy".into()));
    roster.change(&1, |worker| worker.active = 1);
    assert_eq!(roster.plan(&Arc::new(Shape::of("x")), &"p".into(), 5, false), [(1, 1)]);
}

#[test]
fn labels_hold_by_full_name_or_bare_name_of_the_worker_or_else_of_its_pool() {
    for (label, value, own, holds) in [
        ("placement.zone", "eu", &[][..], true),
        ("placement.zone", "us", &[], false),
        ("node.zone", "eu", &[], true),
        ("constraint.zone", "eu", &[], true),
        ("placement.zone", "eu", &[("zone", "us")], false),
        ("placement.zone", "us", &[("zone", "us")], true),
        ("placement.zone", "us", &[("placement.zone", "us"), ("zone", "eu")], true),
        ("placement.zone", "eu", &[("placement.zone", "us"), ("zone", "eu")], false),
        ("node.zone", "us", &[("placement.zone", "us")], false),
        ("placement.rack", "r1", &[], true),
        ("node.rack", "r1", &[], false),
        ("placement.rack", "r1", &[("rack", "r2")], false),
        ("node.absent", "x", &[], false),
        ("constraint.ssd", "true", &[], true),
        ("constraint.gpu", "true", &[], true),
        ("constraint.gpu", "false", &[], false),
        ("constraint.tpu", "true", &[], false),
        ("placement.gpu", "true", &[], false),
    ] {
        let mut worker = profile("w", "p", &["job.x"]);
        worker.capabilities = names(&["gpu"]);
        worker.labels = labels(own);
        let shape = Shape { placement: labels(&[(label, value)]), ..Shape::of("job.x") };
        let expected = if holds { "fits".into() } else { format!("placement_mismatch:{label}") };
        assert_eq!(reason(candidate(worker, 1), shape), expected, "{label}={value} {own:?}");
    }
}
