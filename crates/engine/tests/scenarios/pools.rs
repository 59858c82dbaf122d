//! Pools: who gets what, in which order, and what happens to what nobody can take.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::ids::JobId;
use lockgate_core::job::{JobState, Outcome, Reason};
use lockgate_core::lane::Priority;
use lockgate_core::policy::Policy;
use lockgate_core::pools::{Closed, Pools};
use lockgate_core::quotas::Quotas;
use lockgate_core::request::{Json, NewJob};
use lockgate_core::time::Timestamp;
use lockgate_core::timeouts::Timeouts;
use lockgate_core::worker::Load;
use lockgate_engine::{ApiError, ToWorker};
use lockgate_ports::{Activation, Hold, Lanes, Leases as _, SnapshotKind, Snapshots};
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job, pass};

const TWO_POOLS: &str = "
topics: {t.fast: [fast, slow], t.slow: slow}
pools: {fast: {}, slow: {}}
";

fn done() -> Outcome {
    Outcome::Succeeded { result: Json::null() }
}

fn labelled(topic: &str, name: &str, value: &str) -> NewJob {
    NewJob { labels: BTreeMap::from([(name.to_owned(), value.to_owned())]), ..job(topic) }
}

async fn reason(stage: &Stage, id: &JobId) -> String {
    stage.engine.why(&caller(), id).await.expect("explained").reason
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_to_its_first_pool_and_runs_over_to_the_next_when_that_is_full() {
    let stage = Stage::new();
    stage.pools(TWO_POOLS).await;
    let mut fast = Hand::attach_as(&stage.engine, "f", &Kind::of("fast", &["*"], 1)).await;
    let mut slow = Hand::attach_as(&stage.engine, "s", &Kind::of("slow", &["*"], 1)).await;
    let first = stage.submit(job("t.fast")).await;
    assert_eq!(fast.take().await.job.request.job_id, first);
    let second = stage.submit(job("t.fast")).await;
    assert_eq!(slow.take().await.job.request.job_id, second, "the first pool has no place left");
    let third = stage.submit(job("t.slow")).await;
    assert_eq!(reason(&stage, &third).await, "workers_busy");
}

#[tokio::test(start_paused = true)]
async fn a_new_file_moves_what_waits_to_its_new_pool_at_once() {
    let stage = Stage::new();
    stage.pools("topics: {t: a}\npools: {a: {}}\n").await;
    let ids = [stage.submit(job("t")).await, stage.submit(job("t")).await];
    assert_eq!(reason(&stage, &ids[0]).await, "no_workers");
    stage.pools("topics: {t: b, u: a}\npools: {a: {}, b: {}}\n").await;
    let mut a = Hand::attach_as(&stage.engine, "a", &Kind::of("a", &["*"], 4)).await;
    let mut b = Hand::attach_as(&stage.engine, "b", &Kind::of("b", &["*"], 1)).await;
    let got = b.take().await;
    assert_eq!(got.job.request.job_id, ids[0]);
    let other = stage.submit(job("u")).await;
    assert_eq!(a.take().await.job.request.job_id, other, "nothing of the old mapping is left in its pool");
    b.report(&got, done()).await;
    assert_eq!(b.take().await.job.request.job_id, ids[1]);
}

#[tokio::test(start_paused = true)]
async fn a_faulty_file_changes_nothing_and_names_every_fault() {
    let stage = Stage::new();
    stage.pools(TWO_POOLS).await;
    let refused = stage.try_pools("topics: {t: nowhere, u: fst}\npools: {fast: {dispatch: pull}}\n").await;
    let Err(ApiError::Invalid(errors)) = refused else { panic!("{refused:?}") };
    assert!(errors.len() >= 3, "{errors:?}");
    assert_eq!(stage.engine.pools().await.expect("told").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_an_unknown_pool_is_told_which_there_are() {
    let stage = Stage::new();
    let refused = Hand::try_attach(&stage.engine, "w", &Kind::of("gpu", &["*"], 1)).await;
    let Err(ApiError::Invalid(errors)) = refused else { panic!("attached") };
    assert!(errors[0].field == "pool" && errors[0].message.contains("default"), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn labels_and_capabilities_decide_who_may_take_a_job() {
    let stage = Stage::new();
    let kind = |zone: &str, capability: &str| Kind {
        labels: BTreeMap::from([("zone".into(), zone.into())]),
        capabilities: BTreeSet::from([capability.into()]),
        ..Kind::of("default", &["*"], 4)
    };
    let mut eu = Hand::attach_as(&stage.engine, "eu", &kind("eu", "cpu")).await;
    let mut us = Hand::attach_as(&stage.engine, "us", &kind("us", "gpu")).await;
    let placed = stage.submit(labelled("t", "placement.zone", "us")).await;
    assert_eq!(us.take().await.job.request.job_id, placed);
    let constrained = stage.submit(labelled("t", "constraint.gpu", "true")).await;
    assert_eq!(us.take().await.job.request.job_id, constrained);
    let selected = stage.submit(labelled("t", "node.zone", "eu")).await;
    assert_eq!(eu.take().await.job.request.job_id, selected);
    let preferred = stage.submit(labelled("t", "preferred_worker_id", "us")).await;
    assert_eq!(us.take().await.job.request.job_id, preferred, "although the other one has less to do");
    let nobody = stage.submit(labelled("t", "placement.zone", "mars")).await;
    let why = stage.engine.why(&caller(), &nobody).await.expect("explained");
    assert_eq!(why.reason, "no_workers");
    let verdicts: Vec<&str> = why.pools[0].workers.iter().map(|worker| worker.verdict.as_str()).collect();
    assert_eq!(verdicts, ["placement_mismatch:placement.zone"; 2]);
    assert!(why.next_step.contains("placement.zone=mars"), "{}", why.next_step);
}

#[tokio::test(start_paused = true)]
async fn a_burst_in_a_direct_pool_is_spread_evenly() {
    let stage = Stage::new();
    stage.pools("topics: {t: d}\npools: {d: {dispatch: direct}}\n").await;
    let mut workers = Vec::new();
    for n in 0..10 {
        workers.push(Hand::attach_as(&stage.engine, &format!("w{n}"), &Kind::of("d", &["*"], 200)).await);
    }
    let jobs = vec![job("t"); 1_000];
    stage.engine.submit(&caller(), jobs).await.expect("taken");
    for worker in &mut workers {
        let got = worker.take_many(100).await.len();
        assert_eq!(got, 100);
    }
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_worker_gets_nothing_until_its_beat_says_otherwise() {
    let stage = Stage::new();
    stage.pools("topics: {t: d}\npools: {d: {dispatch: direct}}\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("d", &["*"], 10)).await;
    worker.beat_with(Load { cpu: Some(95), ..Load::default() }).await;
    let id = stage.submit(job("t")).await;
    assert_eq!(reason(&stage, &id).await, "pool_overloaded");
    worker.beat_with(Load { cpu: Some(20), ..Load::default() }).await;
    assert_eq!(worker.take().await.job.request.job_id, id);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_ever_take_is_given_up_after_50_tries() {
    let stage = Stage::new();
    stage.pools("topics: {t: d}\npools: {d: {dispatch: direct}}\n").await;
    let ids = [stage.submit(job("t")).await, stage.submit(job("unmapped")).await];
    assert_eq!(reason(&stage, &ids[0]).await, "no_workers");
    assert_eq!(reason(&stage, &ids[1]).await, "no_pool_mapping");
    tokio::time::advance(Duration::from_secs(65)).await;
    stage.until_tried(&ids[0], 6).await;
    let later = stage.engine.why(&caller(), &ids[1]).await.expect("explained");
    assert_eq!(later.tries.map(|tries| tries.max), Some(50));
    for (id, expected) in ids.iter().zip([Reason::NoWorkers, Reason::NoPoolMapping]) {
        tokio::time::advance(Duration::from_secs(1_300)).await;
        let ended = stage.until(id, |job| job.state().is_terminal()).await;
        assert_eq!(ended.state(), JobState::Failed);
        assert_eq!(ended.life.last_error.expect("said").reason, expected);
        assert_eq!(ended.life.counters.failures, 0, "no attempt was made");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_in_a_queue_pool_burns_no_tries() {
    let stage = Stage::new();
    let id = stage.submit(job("t")).await;
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 1).await;
    assert_eq!(worker.take().await.job.request.job_id, id);
}

#[tokio::test(start_paused = true)]
async fn a_paused_pool_keeps_its_jobs_and_a_draining_one_passes_them_on() {
    let stage = Stage::new();
    stage.pools(TWO_POOLS).await;
    let mut fast = Hand::attach_as(&stage.engine, "f", &Kind::of("fast", &["*"], 4)).await;
    let mut slow = Hand::attach_as(&stage.engine, "s", &Kind::of("slow", &["*"], 4)).await;
    let pool = "fast".into();
    stage.engine.set_pool_state(&caller(), &pool, Some(Closed::Paused)).await.expect("paused");
    let first = stage.submit(job("t.fast")).await;
    assert_eq!(reason(&stage, &first).await, "pool_paused");
    let other = stage.submit(job("t.slow")).await;
    assert_eq!(slow.take().await.job.request.job_id, other, "and not the one that waits for its pool");
    stage.engine.set_pool_state(&caller(), &pool, Some(Closed::Draining)).await.expect("draining");
    assert_eq!(slow.take().await.job.request.job_id, first);
    stage.engine.set_pool_state(&caller(), &pool, None).await.expect("open");
    let last = stage.submit(job("t.fast")).await;
    assert_eq!(fast.take().await.job.request.job_id, last);
    let unknown = stage.engine.set_pool_state(&caller(), &"nowhere".into(), Some(Closed::Paused)).await;
    assert!(matches!(unknown, Err(ApiError::NoSuch { what: "pool", .. })), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_outlives_a_crash() {
    let stage = Stage::new();
    stage.pools(TWO_POOLS).await;
    stage.engine.set_pool_state(&caller(), &"fast".into(), Some(Closed::Paused)).await.expect("paused");
    let stage = stage.crash(Duration::from_secs(1)).await;
    let id = stage.submit(job("t.fast")).await;
    stage.until_reason(&id, "pool_paused").await;
}

#[tokio::test(start_paused = true)]
async fn limits_hold_over_a_crash_and_free_what_waits_for_them() {
    let stage = Stage::new();
    let text = "topics: {t: p}\npools: {p: {tenant_max_concurrent: 1}}\n";
    stage.pools(text).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 4)).await;
    let (first, second) = (stage.submit(job("t")).await, stage.submit(job("t")).await);
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, first);
    assert_eq!(reason(&stage, &second).await, "tenant_limit");
    let (held, highest) = worker.into_inventory();
    let stage = stage.crash(Duration::from_secs(1)).await;
    let mut worker = Hand::attach_kind(&stage.engine, "w", &Kind::of("p", &["*"], 4), held, highest).await;
    stage.until_reason(&second, "tenant_limit").await;
    worker.report(&assignment, done()).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn policy_limits_how_many_of_a_tenants_topic_run_at_once() {
    let stage = Stage::new();
    let rule =
        "{id: few, match: {topics: [t]}, decision: allow_with_constraints, constraints: {max_concurrent: 2}, reason: few}";
    stage.apply(&format!("version: 1\ndefault: {{decision: allow, reason: fine}}\nrules:\n  - {rule}\n")).await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 9).await;
    for _ in 0..3 {
        stage.submit(job("t")).await;
    }
    let free = stage.submit(job("u")).await;
    let mut got = Vec::new();
    for _ in 0..3 {
        got.push(worker.take().await);
    }
    let of_t = got.iter().filter(|assignment| assignment.job.request.topic.as_str() == "t").count();
    assert_eq!(of_t, 2);
    assert!(got.iter().any(|assignment| assignment.job.request.job_id == free), "others are not delayed");
    let limited = got.iter().find(|assignment| assignment.job.request.topic.as_str() == "t").expect("one");
    worker.report(limited, done()).await;
    assert_eq!(worker.take().await.job.request.topic.as_str(), "t");
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_finishes_is_dismissed_and_gets_nothing_more() {
    let stage = Stage::new();
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 2).await;
    stage.submit(job("t")).await;
    let assignment = worker.take().await;
    assert_eq!(stage.engine.drain_worker(&caller(), &"w".into()).await.expect("told"), 1);
    let id = stage.submit(job("t")).await;
    assert!(matches!(worker.next().await, ToWorker::Drain));
    worker.report(&assignment, done()).await;
    assert!(worker.dismissed);
    assert_eq!(reason(&stage, &id).await, "workers_away");
    let nobody = stage.engine.drain_worker(&caller(), &"nobody".into()).await;
    assert!(matches!(nobody, Err(ApiError::NoSuch { what: "worker", .. })), "{nobody:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_away_when_it_was_drained_is_told_when_it_is_back() {
    let stage = Stage::new();
    let worker = Hand::attach(&stage.engine, "w", &["*"], 1).await;
    drop(worker);
    stage.engine.drain_worker(&caller(), &"w".into()).await.expect("told");
    let mut back = Hand::attach(&stage.engine, "w", &["*"], 1).await;
    assert!(matches!(back.next().await, ToWorker::Drain));
}

/// What is said of a configuration, without its name.
fn said(it: &impl std::fmt::Debug, snapshot: &str) -> String {
    format!("{it:?}").replace(snapshot, "")
}

#[tokio::test(start_paused = true)]
async fn what_holds_without_files_can_be_read_as_files_that_say_the_same() {
    let stage = Stage::new();
    let text = async |kind: SnapshotKind| stage.engine.config_text(kind, kind.builtin()).await;
    let (pools, none) = (text(SnapshotKind::Pools).await.expect("a text"), Pools::default());
    let pools = Pools::load("", &pools).expect("pools");
    assert_eq!(said(&pools, pools.snapshot()), said(&none, none.snapshot()));
    let (timeouts, none) = (text(SnapshotKind::Timeouts).await.expect("a text"), Timeouts::default());
    let timeouts = Timeouts::load("", &timeouts).expect("timeouts");
    assert_eq!(said(&timeouts, timeouts.snapshot()), said(&none, none.snapshot()));
    let (quotas, none) = (text(SnapshotKind::Quotas).await.expect("a text"), Quotas::default());
    let quotas = Quotas::load("", &quotas).expect("quotas");
    assert_eq!(said(&quotas, quotas.snapshot()), said(&none, none.snapshot()));
    Policy::load("", &text(SnapshotKind::Policy).await.expect("a text")).expect("a policy");
    assert!(text(SnapshotKind::PoolStates).await.is_err(), "no file says that");
}

#[tokio::test(start_paused = true)]
async fn timeouts_follow_the_topic() {
    let stage = Stage::new();
    stage.timeouts("defaults: {running: 10s}\ntopics: {t.long: {dispatch: 5s, running: 1h}}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["*"], 2).await;
    stage.submit(job("t.long")).await;
    let long = worker.take().await;
    assert_eq!(long.timeout, Duration::from_secs(3600));
    let binding = long.job.life.attempt.binding.clone().expect("sent");
    assert_eq!(binding.start_by.since(binding.dispatched_at), Duration::from_secs(5));
    stage.submit(job("t.short")).await;
    assert_eq!(worker.take().await.timeout, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_rate_starts_what_waits_as_soon_as_it_has_room() {
    let stage = Stage::new();
    let text = "topics: {t: p}\npools: {p: {}}\nlimits: [{name: slow, topics: [t], rate: 2/m}]\n";
    stage.pools(text).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let began = tokio::time::Instant::now();
    let ids = [stage.submit(job("t")).await, stage.submit(job("t")).await, stage.submit(job("t")).await];
    for assignment in worker.take_many(2).await {
        worker.report(&assignment, done()).await;
    }
    stage.until_reason(&ids[2], "rate_limited").await;
    let why = stage.engine.why(&caller(), &ids[2]).await.expect("explained");
    assert!(why.next_at.is_some(), "{why:?}");
    let mut beats = tokio::time::interval(Duration::from_secs(3));
    while stage.job(&ids[2]).await.state() == JobState::Scheduled {
        worker.beat().await;
        beats.tick().await;
    }
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(30) && waited < Duration::from_secs(40), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_with_the_same_key_run_one_after_the_other() {
    let stage = Stage::new();
    let text = "topics: {t: p}\npools: {p: {}}\nlimits: [{name: one, per: [key], max_concurrent: 1}]\n";
    stage.pools(text).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let keyed = |key: &str| NewJob { concurrency_key: Some(key.to_owned()), ..job("t") };
    let (a1, a2, b) = (keyed("a"), keyed("a"), keyed("b"));
    let (a1, a2, b) = (stage.submit(a1).await, stage.submit(a2).await, stage.submit(b).await);
    let first = worker.take().await;
    assert_eq!(first.job.request.job_id, a1);
    assert_eq!(worker.take().await.job.request.job_id, b, "another key is not delayed");
    assert_eq!(reason(&stage, &a2).await, "limit_full");
    worker.report(&first, done()).await;
    assert_eq!(worker.take().await.job.request.job_id, a2);
}

#[tokio::test(start_paused = true)]
async fn a_pool_runs_no_more_than_it_may() {
    let stage = Stage::new();
    stage.pools("topics: {t: p}\npools: {p: {max_concurrent: 1}}\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    let (first, second) = (stage.submit(job("t")).await, stage.submit(job("t")).await);
    let assignment = worker.take().await;
    assert_eq!(assignment.job.request.job_id, first);
    assert_eq!(reason(&stage, &second).await, "pool_limit");
    worker.report(&assignment, done()).await;
    assert_eq!(worker.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn what_runs_over_from_one_pool_does_not_delay_the_own_jobs_of_another() {
    let stage = Stage::new();
    stage.pools("topics: {over: [a, b], own: b}\npools: {a: {}, b: {}}\n").await;
    for _ in 0..50 {
        stage.submit(job("over")).await;
    }
    let own = stage.submit(job("own")).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("b", &["*"], 1)).await;
    assert_eq!(worker.take().await.job.request.job_id, own);
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_passes_its_jobs_on() {
    let stage = Stage::new();
    stage.pools("topics: {t: [a, b]}\npools: {a: {max_concurrent: 1}, b: {}}\n").await;
    let mut a = Hand::attach_as(&stage.engine, "a", &Kind::of("a", &["*"], 9)).await;
    let mut b = Hand::attach_as(&stage.engine, "b", &Kind::of("b", &["*"], 9)).await;
    let (first, second) = (stage.submit(job("t")).await, stage.submit(job("t")).await);
    assert_eq!(a.take().await.job.request.job_id, first);
    assert_eq!(b.take().await.job.request.job_id, second);
}

#[tokio::test(start_paused = true)]
async fn tries_to_place_a_job_go_on_after_a_restart() {
    let stage = Stage::new();
    stage.pools("topics: {t: d}\npools: {d: {dispatch: direct}}\n").await;
    let id = stage.submit(job("t")).await;
    stage.until_tried(&id, 8).await;
    // The count is kept with the next look after it grew.
    pass(Duration::from_secs(2)).await;
    // No try is made while no process runs, however long that is.
    let stage = stage.crash(Duration::from_secs(3_600)).await;
    pass(Duration::from_secs(5)).await;
    let made = stage.engine.why(&caller(), &id).await.expect("explained").tries.map(|tries| tries.made);
    assert_eq!(made, Some(8));
    pass(Duration::from_secs(35)).await;
    stage.until_tried(&id, 9).await;
    tokio::time::advance(Duration::from_secs(1_190)).await;
    stage.until_tried(&id, 48).await;
    pass(Duration::from_secs(2)).await;
    let stage = stage.crash(Duration::from_secs(1)).await;
    let restarted = Instant::now();
    let ended = stage.until(&id, |job| job.state().is_terminal()).await;
    assert_eq!(ended.life.last_error.expect("said").reason, Reason::NoWorkers);
    assert!(restarted.elapsed() <= Duration::from_secs(70), "{:?}", restarted.elapsed());
    assert!(restarted.elapsed() >= Duration::from_secs(30), "workers had no time to come: {:?}", restarted.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_after_a_restart_is_a_new_chance() {
    let stage = Stage::new();
    stage.pools("topics: {t: d}\npools: {d: {dispatch: direct}}\n").await;
    let id = stage.submit(job("t")).await;
    stage.until_tried(&id, 8).await;
    let stage = stage.crash(Duration::from_secs(1)).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("d", &["*"], 1)).await;
    assert_eq!(worker.take().await.job.request.job_id, id);
    pass(Duration::from_secs(90)).await;
    let stage = stage.crash(Duration::from_secs(60)).await;
    let next = stage.submit(job("t")).await;
    pass(Duration::from_secs(4)).await;
    let made = stage.engine.why(&caller(), &next).await.expect("explained").tries.map(|tries| tries.made);
    assert!(made.is_none_or(|made| made <= 2), "{made:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_mapping_is_a_new_chance_for_what_was_about_to_be_given_up() {
    let stage = Stage::new();
    stage.pools("topics: {other: d}\npools: {d: {dispatch: direct}}\n").await;
    let id = stage.submit(job("t")).await;
    stage.until_tried(&id, 1).await;
    tokio::time::advance(Duration::from_secs(1_370)).await;
    stage.until_tried(&id, 49).await;
    stage.pools("topics: {'*': d}\npools: {d: {dispatch: direct}}\n").await;
    tokio::time::advance(Duration::from_secs(60)).await;
    stage.until_reason(&id, "no_workers").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("d", &["*"], 2)).await;
    assert_eq!(worker.take().await.job.request.job_id, id);
}

#[tokio::test(start_paused = true)]
async fn two_operators_at_once_do_not_undo_each_other() {
    let stage = Stage::new();
    stage.pools(TWO_POOLS).await;
    let (caller, fast, slow) = (caller(), "fast".into(), "slow".into());
    let (a, b) = tokio::join!(
        stage.engine.set_pool_state(&caller, &fast, Some(Closed::Paused)),
        stage.engine.set_pool_state(&caller, &slow, Some(Closed::Draining)),
    );
    assert!(a.is_ok() && b.is_ok());
    let states: Vec<_> = stage.engine.pools().await.expect("told").iter().map(|view| view.closed).collect();
    assert_eq!(states, [Some(Closed::Paused), Some(Closed::Draining)]);
}

#[tokio::test(start_paused = true)]
async fn what_a_limit_counts_wrongly_is_freed_within_a_minute() {
    let stage = Stage::new();
    stage.pools("topics: {t: p}\npools: {p: {tenant_max_concurrent: 1}}\n").await;
    let id = stage.submit(job("t")).await;
    let lane = stage.job(&id).await.lane();
    stage.lanes.hold(vec![Hold { lane, pool: "p".into(), token: "nobody-has-it".into() }]).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 1)).await;
    assert_eq!(reason(&stage, &id).await, "tenant_limit");
    let mut beats = tokio::time::interval(Duration::from_secs(3));
    for _ in 0..21 {
        beats.tick().await;
        worker.beat().await;
    }
    assert_eq!(worker.take().await.job.request.job_id, id);
    assert!((stage.number("lockgate_limits_leaked_total") - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn at_a_full_pool_a_critical_job_is_next_whatever_else_waits() {
    let stage = Stage::new();
    stage.pools("topics: {'*': p}\npools: {p: {max_concurrent: 1}}\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("p", &["*"], 9)).await;
    for _ in 0..5 {
        stage.submit(job("a")).await;
    }
    let first = worker.take().await;
    let critical = stage.submit(NewJob { priority: Some(Priority::Critical), ..job("b") }).await;
    worker.report(&first, done()).await;
    assert_eq!(worker.take().await.job.request.job_id, critical);
}

#[tokio::test(start_paused = true)]
async fn a_preferred_worker_in_a_paused_or_full_pool_holds_nothing_up() {
    let stage = Stage::new();
    stage.pools("topics: {t: [a, b]}\npools: {a: {}, b: {max_concurrent: 1}}\n").await;
    let mut a = Hand::attach_as(&stage.engine, "in-a", &Kind::of("a", &["*"], 9)).await;
    let mut b = Hand::attach_as(&stage.engine, "in-b", &Kind::of("b", &["*"], 9)).await;
    let prefers_b = || labelled("t", "preferred_worker_id", "in-b");
    let preferred = stage.submit(prefers_b()).await;
    assert_eq!(b.take().await.job.request.job_id, preferred);
    let full = stage.submit(prefers_b()).await;
    assert_eq!(a.take().await.job.request.job_id, full, "the pool of the worker it prefers is full");
    stage.engine.set_pool_state(&caller(), &"b".into(), Some(Closed::Paused)).await.expect("paused");
    let paused = stage.submit(prefers_b()).await;
    assert_eq!(a.take().await.job.request.job_id, paused, "and now it is paused");
}

/// Pools after the first, as no process here can read them.
async fn activate_unreadable(stage: &Stage) {
    let newer = Activation {
        kind: SnapshotKind::Pools,
        id: "pools:newer".into(),
        text: "written: by a newer Lockgate".into(),
        actor: "newer".into(),
        expected: 1,
        audit: AuditEntry {
            at: Timestamp::ZERO,
            tenant: "default".into(),
            actor: "newer".into(),
            action: AuditAction::PoolsActivated,
            subject: "pools:newer".into(),
            detail: Json::null(),
        },
    };
    stage.store.activate(newer).await.expect("stored").expect("in force");
}

#[tokio::test(start_paused = true)]
async fn pools_that_cannot_be_read_here_stop_dispatching_and_why_says_so() {
    let stage = Stage::new();
    stage.pools(TWO_POOLS).await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("slow", &["*"], 1)).await;
    activate_unreadable(&stage).await;
    let id = stage.submit(job("t.slow")).await;
    stage.until_reason(&id, "config_unreadable").await;
    assert!(worker.is_quiet(), "nobody here can say who may take what");
    stage.pools("topics: {t.slow: slow}\npools: {slow: {}}\n").await;
    assert_eq!(worker.take().await.job.request.job_id, id);
}

/// The lanes would not hear it, and nobody else would know that it was not heard.
#[tokio::test(start_paused = true)]
async fn whoever_cannot_read_the_pools_leaves_the_lanes_to_others() {
    let stage = Stage::shared();
    stage.pools(TWO_POOLS).await;
    let led = async |lease: &str| {
        let leases = stage.store.leases().await.expect("memory");
        leases.iter().any(|row| row.name == lease && row.is_held())
    };
    let of_lanes = ["lockgate:retry:pump", "lockgate:replayer:lanes", "lockgate:limits"];
    pass(Duration::from_secs(30)).await;
    for lease in of_lanes {
        assert!(led(lease).await, "{lease}");
    }
    activate_unreadable(&stage).await;
    pass(Duration::from_secs(60)).await;
    for lease in of_lanes {
        assert!(!led(lease).await, "{lease}");
    }
    assert!(led("lockgate:reconciler:default").await, "all else goes on");
    stage.pools("topics: {t.slow: slow}\npools: {slow: {}}\n").await;
    pass(Duration::from_secs(30)).await;
    for lease in of_lanes {
        assert!(led(lease).await, "{lease}");
    }
}
