//! What a file says is what the pools answer.

use std::time::Duration;

use super::*;
use crate::rate::Rate;

const FULL: &str = "
topics:
  job.echo: echo
  job.repo.*: [repo-fast, repo]
pools:
  echo: {}
  repo: {dispatch: queue, overload: {cpu: 80}}
  repo-fast:
    description: machines with local disks
    dispatch: direct
    capabilities: [git, ssd]
    labels: {zone: eu, example.com/rack: '7'}
    max_concurrent: 100
    tenant_max_concurrent: 10
    tenants: {acme: 50}
    overload: {cpu: 75}
limits:
  - {name: deploys, topics: [job.deploy.*], per: [tenant, key], max_concurrent: 1}
  - {name: starts, rate: 100/m}
fairness:
  priorities: {critical: 8, low: 2}
  tenants: {acme: 3}
";

#[test]
fn every_key_of_a_pool_is_kept() {
    let pools = load(FULL);
    assert_eq!(pools.pool(&"echo".into()), Some(&Pool::named("echo".into())));
    let queue = Overload { cpu_percent: Some(80), ..Overload::QUEUE };
    assert_eq!(pools.pool(&"repo".into()), Some(&Pool { overload: queue, ..Pool::named("repo".into()) }));
    let fast = Pool {
        description: Some("machines with local disks".into()),
        dispatch: DispatchMode::Direct,
        capabilities: ["git", "ssd"].map(Arc::from).into(),
        labels: [("zone", "eu"), ("example.com/rack", "7")].map(|(name, value)| (name.into(), value.into())).into(),
        max_concurrent: Some(100),
        tenant_max_concurrent: Some(10),
        tenants: [("acme".into(), 50)].into(),
        overload: Overload { cpu_percent: Some(75), ..Overload::DIRECT },
        ..Pool::named("repo-fast".into())
    };
    assert_eq!(pools.pool(&"repo-fast".into()), Some(&fast));
    assert_eq!(pools.pools().map(|pool| pool.name.as_str()).collect::<Vec<_>>(), ["echo", "repo", "repo-fast"]);
}

#[test]
fn a_file_of_topics_alone_has_the_pools_that_they_lead_to() {
    let pools = load("topics: {job.echo: echo, 'job.repo.*': [repo-fast, repo]}\nlimits: [{name: l, max_concurrent: 1}]\n");
    let expected = ["echo", "repo", "repo-fast"].map(|name| Pool::named(name.into()));
    assert_eq!(pools.pools().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(pools.limits.len(), 1);
}

#[test]
fn limits_and_fairness_are_kept() {
    let pools = load(FULL);
    let [deploys, starts] = &pools.limits[..] else { panic!("two limits") };
    assert_eq!((&*deploys.name, deploys.max_concurrent, deploys.rate), ("deploys", Some(1), None));
    assert_eq!(deploys.per, [Per::Tenant, Per::Key]);
    assert_eq!((&*starts.name, starts.max_concurrent, starts.per.len()), ("starts", None, 0));
    assert_eq!(starts.rate, Some(Rate { max: 100, window: Duration::from_secs(60) }));
    let fairness = Fairness { priorities: PriorityShares::Weights([8, 16, 4, 2]), tenants: [("acme".into(), 3)].into() };
    assert_eq!(pools.fairness(), &fairness);
}

#[test]
fn what_is_left_out_has_its_default() {
    let pools = load("topics: {'*': all}\npools: {all: {dispatch: direct}}\n");
    assert_eq!(pools.pool(&"all".into()).unwrap().overload, Overload::DIRECT);
    assert_eq!(pools.fairness(), &Fairness::default());
    assert!(pools.limits.is_empty());
    let strict = load("topics: {'*': all}\npools: {all: {}}\nfairness: {priorities: strict}\n");
    assert_eq!(strict.fairness().priorities, PriorityShares::Strict);
}

#[test]
fn an_exact_topic_beats_a_glob_and_the_most_literal_glob_beats_the_others() {
    let pools = load(
        "topics: {'*.scan': any, job.*: job, job.repo.*: [repo, job], job.repo.scan: scan}\npools: {any: {}, job: {}, repo: {}, scan: {}}\n",
    );
    for (topic, expected) in [
        ("job.repo.scan", &["scan"][..]),
        ("job.repo.lint", &["repo", "job"]),
        ("job.echo", &["job"]),
        ("x.scan", &["any"]),
        ("job.scan", &["any"]),
        ("other", &[]),
    ] {
        assert_eq!(led_to(&pools, topic), expected, "{topic}");
    }
    assert_eq!(pools.route(&Shape::of("other")), Err(Unrouted::NoMapping));
}

#[test]
fn a_pool_knows_the_topics_that_lead_to_it() {
    let pools = load("topics: {job.*: [x, y], job.b: y, job.a: y, '*': x}\npools: {x: {}, y: {}}\n");
    assert_eq!(pools.patterns(&"y".into()).collect::<Vec<_>>(), ["job.a", "job.b", "job.*"]);
    assert_eq!(pools.patterns(&"x".into()).collect::<Vec<_>>(), ["job.*", "*"]);
    assert_eq!(Pools::default().patterns(&DEFAULT_POOL.into()).collect::<Vec<_>>(), ["*"]);
}

#[test]
fn a_job_and_policy_narrow_the_route() {
    let pools = load("topics: {a: [x, y, z]}\npools: {x: {}, y: {}, z: {}}\n");
    let route = |preferred: Option<&str>, allowed: Option<&[&str]>| {
        let allowed_pools = allowed.map(|names| names.iter().map(|name| Arc::from(*name)).collect());
        let shape = Shape { preferred_pool: preferred.map(PoolName::from), allowed_pools, ..Shape::of("a") };
        pools.route(&shape).map(|route| route.pools().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(route(None, Some(&["z", "x", "w"])), Ok("x z".to_owned()));
    assert_eq!(route(Some("y"), None), Ok("y".to_owned()));
    assert_eq!(route(Some("w"), None), Err(Unrouted::PreferredPool));
    assert_eq!(route(None, Some(&["w"])), Err(Unrouted::AllowedPools));
    assert_eq!(route(Some("y"), Some(&["x"])), Err(Unrouted::AllowedPools));
}

#[test]
fn equal_texts_and_no_others_have_the_same_snapshot() {
    let text = "topics: {a: x}\npools: {x: {}}\n";
    let snapshot = load(text).snapshot().clone();
    assert_eq!((&snapshot[..6], snapshot.len()), ("pools:", 6 + 64));
    assert_eq!(load(text).snapshot(), &snapshot);
    assert_ne!(load(&format!("{text}# note\n")).snapshot(), &snapshot);
    assert_eq!(&**Pools::default().snapshot(), BUILTIN_DEFAULT);
}
