//! Who is let in, and who is told to come back when.

use std::time::Duration;

use lockgate_core::audit::AuditAction;
use lockgate_core::ids::{JobId, TenantId};
use lockgate_core::job::Outcome;
use lockgate_core::lane::Priority;
use lockgate_core::quotas::{Limited, LimitedBy};
use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_engine::{ApiError, ReplayRequest, RunOrder, StartRun, StartedRun, Submitted};
use lockgate_ports::{AuditStore, DeadLetterQuery, TenantStore, Upkeep};
use serde_json::json;

use super::stage::{Hand, Kind, Stage, caller, job};

const DAG: &str = "version: 1\ndag: d\nnodes:\n  a: {topic: t}\n";

impl Stage {
    async fn send(&self, caller: &Caller, jobs: Vec<NewJob>) -> Vec<Result<Submitted, ApiError>> {
        self.engine.submit(caller, jobs).await.expect("a good batch")
    }

    async fn send_many(&self, topic: &str, count: usize) -> Vec<Result<Submitted, ApiError>> {
        self.send(&caller(), vec![job(topic); count]).await
    }

    async fn begin_run(&self) -> Result<StartedRun, ApiError> {
        self.begin_keyed(None).await
    }

    async fn begin_keyed(&self, key: Option<&str>) -> Result<StartedRun, ApiError> {
        let idempotency_key = key.map(str::to_owned);
        let start = StartRun { dag: "d".to_owned(), version: None, params: json!({}), idempotency_key, fresh: false };
        self.engine.start_run(&caller(), start).await
    }

    /// A worker fails everything, so that dead letters are left.
    async fn fail(&self, jobs: usize) -> Vec<JobId> {
        let mut worker = Hand::attach(&self.engine, "w", &["t"], 1).await;
        let mut ids = Vec::new();
        for answer in self.send_many("t", jobs).await {
            let id = answer.expect("let in").job_id;
            let assignment = worker.take().await;
            worker.report(&assignment, Outcome::FailedFatal { error: "no".into() }).await;
            self.until(&id, |job| job.state().is_terminal()).await;
            ids.push(id);
        }
        ids
    }
}

/// How many were let in, and why the first of the others was not.
fn parted(answers: Vec<Result<Submitted, ApiError>>) -> (usize, Option<Limited>) {
    let mut first = None;
    let mut accepted = 0;
    for answer in answers {
        match answer {
            Ok(_) => accepted += 1,
            Err(ApiError::Limited(limited)) => first = first.or(Some(limited)),
            Err(error) => panic!("{error}"),
        }
    }
    (accepted, first)
}

fn urgent(topic: &str) -> NewJob {
    NewJob { priority: Some(Priority::Critical), ..job(topic) }
}

#[tokio::test(start_paused = true)]
async fn a_rate_lets_in_what_it_has_and_says_exactly_when_it_has_more() {
    let stage = Stage::new();
    stage.quotas("defaults: {submit_rate: 10/s, actor_rate: 6/s}\n").await;
    let ann = Caller::new("acme", "ann");
    let (accepted, limited) = parted(stage.send(&ann, vec![job("t"); 9]).await);
    let limited = limited.expect("six a second");
    assert_eq!((accepted, limited.by), (6, LimitedBy::Rate));
    let (accepted, _) = parted(stage.send(&Caller::new("acme", "bob"), vec![job("t"); 9]).await);
    assert_eq!(accepted, 4, "ten for the tenant");
    let (accepted, _) = parted(stage.send(&Caller::new("other", "ann"), vec![job("t"); 9]).await);
    assert_eq!(accepted, 6, "another tenant has its own");
    tokio::time::sleep(limited.retry_after).await;
    let (accepted, _) = parted(stage.send(&ann, vec![job("t")]).await);
    assert_eq!(accepted, 1, "who comes back as told is let in");
    assert!(stage.number("lockgate_admission_refused_total") >= 11.0);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_as_many_jobs_as_its_quota_and_room_comes_with_the_end_of_one() {
    let stage = Stage::new();
    stage.quotas("defaults: {jobs: 3}\ntenants: {big: {jobs: 5}}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let (accepted, limited) = parted(stage.send_many("t", 5).await);
    assert_eq!((accepted, limited.map(|limited| limited.by)), (3, Some(LimitedBy::Quota)));
    let (accepted, _) = parted(stage.send(&Caller::new("big", "b"), vec![job("unserved"); 9]).await);
    assert_eq!(accepted, 5);
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (accepted, _) = parted(stage.send_many("t", 5).await);
    assert_eq!(accepted, 1, "one ended");
}

#[tokio::test(start_paused = true)]
async fn payloads_stored_bytes_and_runs_have_quotas_of_their_own() {
    let stage = Stage::new();
    stage.engine.put_dag(&caller(), "d.yaml", DAG).await.expect("a good definition");
    stage.quotas("defaults: {payload_bytes: 10, stored_bytes: 25, runs: 1}\n").await;
    let with = |text: &str| NewJob { payload: Some(Json::trusted(format!("\"{text}\""))), ..job("t") };
    let mut answers = stage.send(&caller(), vec![with("123456789"), with("12345678"), with("12345678"), with("1234")]).await;
    assert!(matches!(&answers[0], Err(ApiError::Invalid(fields)) if fields[0].field == "payload"), "{answers:?}");
    let (accepted, limited) = parted(answers.split_off(1));
    assert_eq!((accepted, limited.map(|limited| limited.by)), (2, Some(LimitedBy::Quota)), "10 + 10, not 6 more");
    stage.begin_run().await.expect("the first");
    let second = stage.begin_run().await;
    assert!(matches!(&second, Err(ApiError::Limited(limited)) if limited.by == LimitedBy::Quota), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn under_a_ceiling_the_less_urgent_are_sent_away_first_and_come_back_to_room() {
    let stage = Stage::new();
    stage.quotas("ceilings: {jobs: 20}\n").await;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    // The pace is known once something was taken.
    for _ in 0..8 {
        stage.send_many("t", 1).await;
        let assignment = worker.take().await;
        worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // And what has ended is forgotten.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let (accepted, limited) = parted(stage.send_many("unserved", 30).await);
    let limited = limited.expect("18 of 20 for ordinary jobs");
    assert_eq!((accepted, limited.by), (18, LimitedBy::Ceiling));
    assert!(limited.retry_after >= Duration::from_secs(1) && limited.retry_after < Duration::from_secs(60));
    let (accepted, why) = parted(stage.send(&caller(), vec![urgent("unserved"); 9]).await);
    assert_eq!(accepted, 2, "critical ones may fill the rest: {why:?}, {:?}", stage.store.totals().await);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_promised_a_place_that_comes_too_late() {
    let stage = Stage::new();
    stage.pools("topics: {t: slow, u: fast}\npools: {slow: {}, fast: {}}\n").await;
    stage.quotas("ceilings: {wait: 10s}\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("slow", &["t"], 1)).await;
    let mut limited = None;
    // Two jobs come a second and one is done.
    for second in 0..60 {
        let (_, refused) = parted(stage.send_many("t", 2).await);
        limited = refused;
        if limited.is_some() {
            assert!(second > 8, "ten seconds at one a second are ten jobs");
            break;
        }
        let assignment = worker.take().await;
        worker.report(&assignment, Outcome::Succeeded { result: Json::null() }).await;
        worker.beat().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let limited = limited.expect("a queue of more than ten seconds");
    assert_eq!(limited.by, LimitedBy::Ceiling);
    let (accepted, why) = parted(stage.send(&caller(), vec![urgent("t"); 4]).await);
    assert_eq!(accepted, 4, "critical ones do not wait behind them: {why:?}");
    let (accepted, _) = parted(stage.send_many("u", 9).await);
    assert_eq!(accepted, 9, "another pool has its own pace");
}

fn limited_by<T: std::fmt::Debug>(answer: &Result<T, ApiError>) -> Option<LimitedBy> {
    match answer {
        Err(ApiError::Limited(limited)) => Some(limited.by),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_sends_again_gets_its_job_back_however_full_it_is() {
    let stage = Stage::new();
    stage.quotas("defaults: {jobs: 2, submit_rate: 4/h}\n").await;
    let keyed = |key: &str| NewJob { idempotency_key: Some(key.to_owned()), ..job("t") };
    let named = |id: &str| NewJob { job_id: Some(id.to_owned()), ..job("t") };
    let first = stage.send(&caller(), vec![keyed("k"), named("mine")]).await;
    let first: Vec<JobId> = first.into_iter().map(|answer| answer.expect("let in").job_id).collect();
    let other = NewJob { topic: "u".to_owned(), ..keyed("k") };
    let again = |answers: Vec<Result<Submitted, ApiError>>, by: LimitedBy| {
        assert_eq!(limited_by(&answers[0]), Some(by), "a new one");
        assert!(matches!(&answers[1], Err(ApiError::KeyTaken { .. })), "the key is for something else: {answers:?}");
        let found: Vec<JobId> = answers[2..4]
            .iter()
            .map(|answer| answer.as_ref().expect("known"))
            .inspect(|answer| assert!(answer.existing))
            .map(|answer| answer.job_id.clone())
            .collect();
        assert_eq!(found, first);
        assert_eq!(limited_by(&answers[4]), Some(by), "a new key");
    };
    let batch = || vec![job("t"), other.clone(), keyed("k"), named("mine"), keyed("k2")];
    // Two tokens are left, and the quota is full. Then the bucket is empty too.
    let answers = stage.send(&caller(), batch().into_iter().take(2).chain([job("t")]).collect()).await;
    assert!(answers.iter().all(Result::is_err));
    again(stage.send(&caller(), batch()).await, LimitedBy::Rate);
    stage.quotas("defaults: {jobs: 2}\n").await;
    again(stage.send(&caller(), batch()).await, LimitedBy::Quota);
    stage.quotas("ceilings: {jobs: 2}\n").await;
    again(stage.send(&caller(), batch()).await, LimitedBy::Ceiling);
    // Of each batch two were really refused, and of the one before them two.
    assert_eq!(stage.number("lockgate_admission_refused_total"), 8.0);
    let bare = Caller::new("other", "bob");
    assert_eq!(limited_by(&stage.send(&bare, vec![keyed("k")]).await[0]), Some(LimitedBy::Ceiling), "keys have tenants");
}

#[tokio::test(start_paused = true)]
async fn a_run_finds_room_for_its_first_job_and_a_known_key_finds_its_run() {
    let stage = Stage::new();
    stage.engine.put_dag(&caller(), "d.yaml", DAG).await.expect("a good definition");
    let first = stage.begin_keyed(Some("k")).await.expect("unlimited");
    for quotas in ["defaults: {jobs: 1}\n", "defaults: {runs: 1}\n", "ceilings: {jobs: 1}\n"] {
        stage.quotas(quotas).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let refused = stage.begin_run().await;
        assert!(limited_by(&refused).is_some(), "{quotas}: {refused:?}");
        let again = stage.begin_keyed(Some("k")).await.expect("known");
        assert!(again.existing && again.run == first.run, "{quotas}");
        let idempotency_key = Some("k".into());
        let other = StartRun { dag: "d".to_owned(), version: Some(1), params: json!({}), idempotency_key, fresh: false };
        assert!(matches!(stage.engine.start_run(&caller(), other).await, Err(ApiError::KeyTaken { .. })));
    }
    stage.quotas("ceilings: {pools: {default: 1}}\n").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(limited_by(&stage.begin_run().await), Some(LimitedBy::Ceiling), "its job would wait in a full pool");
    stage.quotas("defaults: {jobs: 2}\n").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.begin_run().await.expect("one job of two");
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_to_life_needs_room_as_what_is_new_does() {
    let stage = Stage::new();
    let dead = stage.fail(3).await;
    stage.quotas("defaults: {jobs: 2}\n").await;
    stage.engine.replay_one(&caller(), &dead[0]).await.expect("there is room");
    let again = stage.engine.replay_one(&caller(), &dead[0]).await;
    assert!(matches!(again, Err(ApiError::State(_))), "it lives: {again:?}");
    let all = ReplayRequest {
        filter: DeadLetterQuery { tenant: Some(caller().tenant), ..Default::default() },
        ..Default::default()
    };
    let replayed = stage.engine.replay(&caller(), all.clone()).await.expect("room for one");
    assert_eq!((replayed.matched, replayed.replayed, replayed.no_room), (2, 1, 1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(limited_by(&stage.engine.replay(&caller(), all.clone()).await), Some(LimitedBy::Quota));
    stage.quotas("defaults: {jobs: 3}\n").await;
    assert_eq!(stage.engine.replay(&caller(), all).await.expect("room again").replayed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_begins_again_is_a_run_more() {
    let stage = Stage::new();
    stage.engine.put_dag(&caller(), "d.yaml", DAG).await.expect("a good definition");
    let run = stage.begin_run().await.expect("unlimited").run;
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::FailedFatal { error: "no".into() }).await;
    stage.run_until(&run, |view| view.run.head.state.is_over()).await;
    stage.quotas("defaults: {runs: 0}\n").await;
    let rerun = || RunOrder::Rerun { from: vec!["a".to_owned()], params: serde_json::Map::new(), fresh: false };
    let refused = stage.engine.order_run(&caller(), &run, rerun()).await;
    assert_eq!(limited_by(&refused), Some(LimitedBy::Quota), "{refused:?}");
    stage.quotas("defaults: {runs: 1}\n").await;
    stage.engine.order_run(&caller(), &run, rerun()).await.expect("room");
    let refused = stage.engine.order_run(&caller(), &run, rerun()).await;
    assert!(matches!(refused, Err(ApiError::RunState(_))), "it is not over: {refused:?}");
}

#[tokio::test(start_paused = true)]
async fn an_erased_tenant_leaves_nothing_but_a_trail_that_verifies() {
    let stage = Stage::new();
    let acme = Caller::new("acme", "ann");
    let mut worker = Hand::attach(&stage.engine, "w", &["t"], 1).await;
    let ended: JobId = stage.send(&acme, vec![job("t")]).await.remove(0).expect("accepted").job_id;
    let assignment = worker.take().await;
    worker.report(&assignment, Outcome::Succeeded { result: Json::trusted("\"secret\"") }).await;
    stage.until(&ended, |job| job.state().is_terminal()).await;
    stage.send(&acme, vec![job("unserved"); 3]).await;
    stage.engine.put_dag(&acme, "d.yaml", DAG).await.expect("a good definition");
    let kept = stage.submit(job("unserved")).await;

    let tenant = TenantId::from("acme");
    let refused = stage.engine.erase_tenant(&caller(), &tenant, "acm").await;
    assert!(matches!(&refused, Err(ApiError::Invalid(fields)) if fields[0].field == "confirm"), "{refused:?}");
    let (mut ended_now, mut deleted) = (0, 0);
    for round in 0.. {
        let part = stage.engine.erase_tenant(&caller(), &tenant, "acme").await.expect("a step");
        (ended_now, deleted) = (ended_now + part.ended, deleted + part.erased.jobs);
        if part.erased.done {
            break;
        }
        assert!(round < 10, "{part:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((ended_now, deleted), (3, 4));
    assert!(matches!(stage.engine.job(&acme, &ended).await, Err(ApiError::NotFound(_))));
    let left = stage.store.usage(&[tenant]).await.expect("read");
    assert_eq!(left[0], lockgate_ports::Usage::default());
    assert!(stage.engine.job(&caller(), &kept).await.is_ok(), "others keep theirs");
    let rows = stage.store.audit(0, 1_000).await.expect("read");
    assert!(rows.iter().any(|row| row.entry.action == AuditAction::TenantErased && &*row.entry.subject == "acme"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let verified = stage.engine.verify_audit().await.expect("read");
    assert!(verified.broken.is_none() && verified.rows > 0, "{verified:?}");
}
