//! Jobs that submit jobs of their own, and wait for them.

use std::time::Duration;

use lockgate_core::ids::{AttemptToken, JobId, JobSeq};
use lockgate_core::job::{Answer, Duty, Illegal, Job, JobState, OnTimeout, Outcome, Reason};
use lockgate_core::limits::CHILDREN_MAX;
use lockgate_core::request::{Json, NewJob};
use lockgate_engine::{ApiError, ApprovalAnswer, Assignment, NewChild, Settings, Submitted};
use lockgate_ports::{JobQuery, JobStore, Leases};
use tokio::time::Instant;

use super::stage::{Hand, Kind, Stage, caller, job, somebody};

const MINUTE: Duration = Duration::from_secs(60);

type Answers = Result<Vec<Result<Submitted, ApiError>>, ApiError>;

fn good(result: &str) -> Outcome {
    Outcome::Succeeded { result: Json::parse(result).expect("JSON") }
}

fn wait(on_timeout: OnTimeout) -> Outcome {
    Outcome::AwaitChildren { timeout: Some(MINUTE), on_timeout }
}

fn child(key: impl Into<String>) -> NewChild {
    NewChild { key: key.into(), job: job("c") }
}

async fn spawn(stage: &Stage, of: &Assignment, children: Vec<NewChild>) -> Answers {
    let (id, token) = (&of.job.request.job_id, of.job.life.attempt.token.clone());
    stage.engine.submit_children(&caller(), id, token, children).await
}

async fn spawned(stage: &Stage, of: &Assignment, children: Vec<NewChild>) -> Vec<JobId> {
    let answers = spawn(stage, of, children).await.expect("taken");
    answers.into_iter().map(|answer| answer.expect("accepted").job_id).collect()
}

/// A parent in the hands of a worker for parents.
async fn parent(stage: &Stage, new: NewJob) -> (JobId, Hand, Assignment) {
    let id = stage.submit(new).await;
    let mut worker = Hand::attach(&stage.engine, &format!("of-{id}"), &["p"], 1).await;
    let assignment = worker.take().await;
    worker.start(&assignment).await;
    (id, worker, assignment)
}

/// What the attempt that runs the parent sees of its children: key, state, result.
async fn seen(stage: &Stage, of: &Assignment) -> Vec<(String, JobState, Option<String>)> {
    let (id, token) = (&of.job.request.job_id, &of.job.life.attempt.token);
    let page = stage.engine.children(&caller(), id, token, JobSeq::default()).await.expect("the attempt counts");
    let told = |child: lockgate_ports::ChildJob| {
        let key = child.job.request.child_of.as_ref().expect("a child").key.to_string();
        (key, child.job.state(), child.result.map(|result| result.as_str().to_owned()))
    };
    page.children.into_iter().map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_called_again_with_what_became_of_its_children() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let children = spawned(&stage, &first, vec![child("a"), child("b")]).await;
    assert_eq!(children, [JobId::from(format!("{id}~a")), JobId::from(format!("{id}~b"))]);
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let waiting = stage.until(&id, |job| job.barrier().is_some()).await;
    assert_eq!((waiting.state(), waiting.holder()), (JobState::Pending, None));
    // Its slot is free for another.
    let other = stage.submit(job("p")).await;
    let taken = parents.take().await;
    assert_eq!(taken.job.request.job_id, other);
    parents.report(&taken, good("null")).await;

    let why = stage.engine.why(&caller(), &id).await.expect("explained");
    assert_eq!(why.reason, "waiting_for_children");
    assert!(why.summary.contains("2 of its 2 children") && why.summary.contains(children[1].as_str()), "{}", why.summary);

    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 1).await;
    for outcome in [good("1"), Outcome::FailedFatal { error: "no".into() }] {
        let assignment = worker.take().await;
        worker.report(&assignment, outcome).await;
    }
    let again = parents.take().await;
    assert_eq!(again.job.request.job_id, id);
    assert_eq!(again.job.life.attempt.no, first.job.life.attempt.no + 1);
    assert_eq!(again.job.life.counters, first.job.life.counters, "nothing is burnt");
    let family = again.job.life.family.clone().expect("a family");
    assert_eq!((family.rounds, family.partial), (1, false));
    let wanted = [("a".to_owned(), JobState::Succeeded, Some("1".to_owned())), ("b".to_owned(), JobState::Failed, None)];
    assert_eq!(seen(&stage, &again).await, wanted);
    parents.report(&again, good("2")).await;
    stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    assert!((stage.number("lockgate_children_submitted_total") - 2.0).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_waits_leaves_the_only_place_to_its_children() {
    let stage = Stage::new();
    stage.pools("topics: {'*': one}\npools: {one: {max_concurrent: 1}}\n").await;
    let mut worker = Hand::attach_as(&stage.engine, "w", &Kind::of("one", &["*"], 1)).await;
    let id = stage.submit(job("p")).await;
    let first = worker.take().await;
    let children = spawned(&stage, &first, vec![child("a"), child("b")]).await;
    worker.report(&first, wait(OnTimeout::Fail)).await;
    for child in children {
        let assignment = worker.take().await;
        assert_eq!(assignment.job.request.job_id, child);
        worker.report(&assignment, good("1")).await;
    }
    let again = worker.take().await;
    assert_eq!(again.job.request.job_id, id);
    worker.report(&again, good("2")).await;
    stage.until(&id, |job| job.state() == JobState::Succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn children_that_ended_before_the_wait_do_not_hold_it_up() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 1).await;
    spawned(&stage, &first, vec![child("a")]).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good("1")).await;
    stage.until(&assignment.job.request.job_id.clone(), |job| job.state() == JobState::Succeeded).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let again = parents.take().await;
    // A wait without anything to wait for is over at once, too.
    parents.report(&again, wait(OnTimeout::Fail)).await;
    let again = parents.take().await;
    assert_eq!((again.job.request.job_id.clone(), again.job.life.family.clone().expect("a family").rounds), (id, 2));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_begins_again_finds_the_children_of_the_one_before() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let before = spawned(&stage, &first, vec![child("a"), child("b")]).await;
    parents.report(&first, Outcome::FailedRetryable { error: "half way".into(), code: None, retry_after: None }).await;
    let second = parents.take().await;
    let answers = spawn(&stage, &second, vec![child("a"), child("b"), child("c")]).await.expect("taken");
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("accepted")).collect();
    assert_eq!(answers.iter().map(|answer| answer.existing).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(answers[..2].iter().map(|answer| answer.job_id.clone()).collect::<Vec<_>>(), before);
    // The same key for something else is a mistake.
    let other = NewChild { key: "a".into(), job: job("d") };
    let refused = spawn(&stage, &second, vec![other]).await.expect("taken").pop().expect("one answer");
    assert!(matches!(refused, Err(ApiError::KeyTaken { .. })), "{refused:?}");
    let listed = stage.store.list(JobQuery { parent: Some(id), limit: 10, ..JobQuery::default() }).await.expect("read");
    assert_eq!(listed.items.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_no_longer_counts_adds_no_child() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    spawned(&stage, &first, vec![child("a")]).await;
    parents.report(&first, Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: None }).await;
    let second = parents.take().await;
    let superseded = |answers: Answers| matches!(answers, Err(ApiError::State(Illegal::Superseded)));
    assert!(superseded(spawn(&stage, &first, vec![child("b")]).await));
    let wrong = stage.engine.submit_children(&caller(), &id, AttemptToken::from("guess"), vec![child("b")]).await;
    assert!(superseded(wrong));
    let stranger = somebody("eve");
    let stranger = lockgate_core::request::Caller { tenant: "other".into(), ..stranger };
    let theirs = stage.engine.submit_children(&stranger, &id, second.job.life.attempt.token.clone(), vec![child("b")]);
    assert!(matches!(theirs.await, Err(ApiError::NotFound(_))));
    parents.report(&second, wait(OnTimeout::Fail)).await;
    stage.until(&id, |job| job.barrier().is_some()).await;
    assert!(superseded(spawn(&stage, &second, vec![child("b")]).await), "nobody holds a parent that waits");
}

#[tokio::test(start_paused = true)]
async fn a_barrier_that_does_not_open_in_time_fails_its_parent_and_stops_the_children() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let children = spawned(&stage, &first, vec![child("a"), child("b")]).await;
    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 1).await;
    let running = worker.take().await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let died = stage.until(&id, |job| job.state() == JobState::Failed).await;
    assert_eq!(died.life.last_error.expect("why").reason, Reason::ChildrenTimeout);
    for id in &children {
        let child = stage.until(id, |job| job.state() == JobState::Cancelled).await;
        assert!(child.life.last_error.expect("why").message.contains("ended as FAILED"));
    }
    assert_eq!(running.job.request.job_id, children[0], "one of them ran");
    stage.until(&id, |job| !job.owes(Duty::Disown)).await;
}

fn answer(job: &Job, answer: Answer) -> ApprovalAnswer {
    let asked = job.life.approval.as_ref().expect("a question");
    ApprovalAnswer {
        job_id: job.request.job_id.clone(),
        answer,
        note: None,
        request_hash: job.hash,
        rule_hash: asked.rule_hash.clone(),
        acknowledge_hidden: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_lets_a_parent_go_on_with_what_there_is() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let children = spawned(&stage, &first, vec![child("a"), child("b")]).await;
    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 1).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good("1")).await;
    let _unfinished = worker.take().await;
    parents.report(&first, wait(OnTimeout::Review)).await;
    let asked = stage.until(&id, |job| job.state() == JobState::ApprovalRequired).await;
    let (open, _) = stage.engine.approvals(&caller(), None, 10).await.expect("listed");
    assert!(open.len() == 1 && open[0].request.job_id == id, "{open:?}");
    let own = stage.engine.answer(&caller(), answer(&asked, Answer::Approve)).await;
    assert!(matches!(own, Err(ApiError::State(Illegal::SelfApproval))), "{own:?}");
    let answered = stage.engine.answer(&somebody("bob"), answer(&asked, Answer::Approve)).await.expect("taken");
    let question = answered.life.approval.as_ref().expect("the question that was answered");
    assert_eq!((question.votes.len(), question.terms.approvers), (1, 1), "one of one, though the job goes on without it");
    // The worker of the first attempt has been silent for a minute.
    let mut parents = Hand::attach(&stage.engine, "parents-2", &["p"], 1).await;
    let again = parents.take().await;
    assert!(again.job.life.family.as_ref().is_some_and(|family| family.partial));
    let states: Vec<_> = seen(&stage, &again).await.into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states[0], JobState::Succeeded);
    assert!(!states[1].is_terminal(), "it goes on beside its parent: {states:?}");
    parents.report(&again, good("1")).await;
    stage.until(&id, |job| job.state() == JobState::Succeeded).await;
    assert!(!stage.job(&children[1]).await.state().is_terminal(), "a parent that succeeds leaves its children alone");
}

#[tokio::test(start_paused = true)]
async fn a_review_that_is_rejected_ends_the_parent_and_its_children() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let children = spawned(&stage, &first, vec![child("a")]).await;
    parents.report(&first, wait(OnTimeout::Review)).await;
    let asked = stage.until(&id, |job| job.state() == JobState::ApprovalRequired).await;
    stage.engine.answer(&somebody("bob"), answer(&asked, Answer::Reject)).await.expect("taken");
    stage.until(&id, |job| job.state() == JobState::Denied).await;
    stage.until(&children[0], |job| job.state() == JobState::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_gets_no_new_life_before_the_children_of_the_last_one_are_stopped() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let children = spawned(&stage, &first, vec![child("a")]).await;
    parents.report(&first, wait(OnTimeout::Review)).await;
    let asked = stage.until(&id, |job| job.state() == JobState::ApprovalRequired).await;
    // It dies, and nobody is there to stop its child.
    stage.kill();
    stage.engine.answer(&somebody("bob"), answer(&asked, Answer::Reject)).await.expect("taken");
    let dead = stage.job(&id).await;
    assert!(dead.state() == JobState::Denied && dead.owes(Duty::Disown), "{dead:?}");
    let refused = stage.engine.replay_one(&caller(), &id).await.expect_err("a new life would forget them");
    assert_eq!(refused.code(), "children_stopping", "{refused}");
    assert!(!stage.job(&children[0]).await.state().is_terminal());
    let stage = stage.crash(Duration::from_secs(5)).await;
    stage.until(&id, |job| !job.owes(Duty::Disown)).await;
    assert_eq!(stage.job(&children[0]).await.state(), JobState::Cancelled);
    let again = stage.engine.replay_one(&caller(), &id).await.expect("a new life");
    assert_eq!((again.life.no, again.life.family), (dead.life.no + 1, None));
}

#[tokio::test(start_paused = true)]
async fn cancel_and_deadline_of_a_parent_that_waits_reach_its_grandchildren() {
    let stage = Stage::new();
    for deadline_ms in [None, Some(30_000)] {
        let (id, mut parents, first) = parent(&stage, NewJob { deadline_ms, ..job("p") }).await;
        let children = spawned(&stage, &first, vec![child("a")]).await;
        parents.report(&first, Outcome::AwaitChildren { timeout: None, on_timeout: OnTimeout::Fail }).await;
        let mut worker = Hand::attach(&stage.engine, &format!("below-{id}"), &["c"], 1).await;
        let middle = worker.take().await;
        let grandchildren = spawned(&stage, &middle, vec![NewChild { key: "x".into(), job: job("unserved") }]).await;
        worker.report(&middle, wait(OnTimeout::Fail)).await;
        stage.until(&children[0], |job| job.barrier().is_some()).await;
        if deadline_ms.is_none() {
            stage.engine.cancel(&caller(), &id, None).await.expect("cancelled");
        }
        let end = if deadline_ms.is_some() { JobState::Timeout } else { JobState::Cancelled };
        stage.until(&id, |job| job.state() == end).await;
        stage.until(&grandchildren[0], |job| job.state() == JobState::Cancelled).await;
        assert_eq!(stage.job(&children[0]).await.state(), JobState::Cancelled);
        worker.drain().await;
        parents.drain().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_the_last_child_ended_loses_nothing() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let children = spawned(&stage, &first, vec![child("a"), child("b")]).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    stage.until(&id, |job| job.barrier().is_some()).await;
    stage.engine.cancel(&caller(), &children[0], None).await.expect("cancelled");
    stage.kill();
    // The last of them ends, and nobody is there to open the barrier.
    stage.engine.cancel(&caller(), &children[1], None).await.expect("cancelled");
    assert!(stage.job(&id).await.barrier().is_some());
    let stage = stage.crash(Duration::from_secs(5)).await;
    stage.until(&id, |job| job.state() == JobState::Scheduled).await;

    // And so with children that are to be stopped.
    let mut parents = Hand::attach(&stage.engine, "parents-2", &["p"], 1).await;
    let again = parents.take().await;
    let children = spawned(&stage, &again, vec![child("c")]).await;
    stage.kill();
    stage.engine.cancel(&caller(), &id, None).await.expect("cancelled");
    assert!(!stage.job(&children[0]).await.state().is_terminal());
    let stage = stage.crash(Duration::from_secs(5)).await;
    stage.until(&children[0], |job| job.state() == JobState::Cancelled).await;
    stage.until(&id, |job| !job.owes(Duty::Disown)).await;
}

#[tokio::test(start_paused = true)]
async fn children_that_ended_in_time_open_the_barrier_however_late_somebody_looks() {
    // First after the crash comes who ends what is late, or who judges what is due; not who opens barriers.
    for other in ["lockgate:replayer:pending", "lockgate:reconciler:default"] {
        let stage = Stage::new();
        let (id, mut parents, first) = parent(&stage, job("p")).await;
        let children = spawned(&stage, &first, vec![child("a")]).await;
        parents.report(&first, wait(OnTimeout::Fail)).await;
        stage.until(&id, |job| job.barrier().is_some()).await;
        stage.kill();
        stage.engine.cancel(&caller(), &children[0], None).await.expect("cancelled");
        assert!(stage.job(&id).await.barrier().is_some());
        for lead in ["lockgate:families", other] {
            stage.store.acquire(lead, "another", 10 * MINUTE).await.expect("written").expect("free");
        }
        let stage = stage.crash_into(2 * MINUTE, Settings { exclusive_store: false, ..Settings::default() }).await;
        let open = stage.until(&id, |job| job.barrier().is_none()).await;
        assert_eq!(open.state(), JobState::Scheduled, "{:?}", open.life.last_error);
    }
}

#[tokio::test(start_paused = true)]
async fn a_family_that_cannot_be_looked_at_does_not_hide_the_others() {
    let stage = Stage::new();
    let (waits, mut parents, first) = parent(&stage, job("p")).await;
    let of_waits = spawned(&stage, &first, vec![child("a")]).await;
    parents.report(&first, Outcome::AwaitChildren { timeout: None, on_timeout: OnTimeout::Fail }).await;
    stage.until(&waits, |job| job.barrier().is_some()).await;
    let dies = stage.submit(job("p")).await;
    let second = parents.take().await;
    let of_dies = spawned(&stage, &second, vec![child("b")]).await;
    stage.kill();
    stage.engine.cancel(&caller(), &dies, None).await.expect("cancelled");
    stage.store.hide_families([waits.clone()]);
    let stage = stage.crash(Duration::from_secs(5)).await;
    stage.until(&of_dies[0], |job| job.state() == JobState::Cancelled).await;
    // Those who end here are called for, and their parent is not forgotten.
    stage.engine.cancel(&caller(), &of_waits[0], None).await.expect("cancelled");
    stage.until(&dies, |job| !job.owes(Duty::Disown)).await;
    assert!(stage.job(&waits).await.barrier().is_some());
    stage.store.hide_families([]);
    stage.until(&waits, |job| job.state() == JobState::Scheduled).await;
}

#[tokio::test(start_paused = true)]
async fn a_family_that_cannot_be_looked_at_keeps_nobody_from_being_lost() {
    let stage = Stage::new();
    let (waits, mut parents, first) = parent(&stage, job("p")).await;
    spawned(&stage, &first, vec![child("a")]).await;
    parents.report(&first, Outcome::AwaitChildren { timeout: None, on_timeout: OnTimeout::Fail }).await;
    stage.until(&waits, |job| job.barrier().is_some()).await;
    // From now on one statement of every sweep fails.
    stage.store.hide_families([waits]);
    let mut doomed = Hand::attach(&stage.engine, "doomed", &["t"], 1).await;
    let id = stage.submit(job("t")).await;
    doomed.take().await;
    let silent_since = Instant::now();
    let lost = stage.until(&id, |job| job.life.attempt.no == 2).await;
    assert_eq!(lost.life.last_error.expect("a reason").reason, Reason::AgentLost);
    assert!(silent_since.elapsed() <= Duration::from_secs(15), "{:?}", silent_since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_last_child_may_end_in_another_process() {
    let one = Stage::shared();
    let (id, mut parents, first) = parent(&one, job("p")).await;
    let children = spawned(&one, &first, vec![child("a"), child("b")]).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    one.until(&id, |job| job.barrier().is_some()).await;
    let two = one.beside_unheard();
    for (stage, child) in [(&one, &children[1]), (&two, &children[0])] {
        stage.engine.cancel(&caller(), child, None).await.expect("cancelled");
    }
    let again = parents.take().await;
    assert_eq!(again.job.request.job_id, id);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_children_are_one_step_of_their_parent() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    spawned(&stage, &first, (0..1_000).map(|n| child(format!("c-{n}"))).collect()).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let waiting = stage.until(&id, |job| job.barrier().is_some()).await;
    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 1_000).await;
    for assignment in worker.take_many(1_000).await {
        worker.report(&assignment, good("1")).await;
    }
    let again = parents.take().await;
    // Opened, then dispatched: no child wrote to its parent's row.
    assert_eq!(again.job.version, waiting.version + 2);
    let (token, mut after, mut count) = (again.job.life.attempt.token.clone(), JobSeq::default(), 0);
    loop {
        let page = stage.engine.children(&caller(), &id, &token, after).await.expect("the attempt counts");
        count += page.children.iter().filter(|child| child.job.state() == JobState::Succeeded).count();
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(count, 1_000);
}

#[tokio::test(start_paused = true)]
async fn what_failing_children_say_fits_into_answers() {
    let stage = Stage::new();
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    spawned(&stage, &first, (0..300).map(|n| child(format!("c-{n}"))).collect()).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 300).await;
    for assignment in worker.take_many(300).await {
        worker.report(&assignment, Outcome::FailedFatal { error: "x".repeat(8_000).into() }).await;
    }
    let again = parents.take().await;
    let (token, mut after, mut count) = (again.job.life.attempt.token.clone(), JobSeq::default(), 0);
    loop {
        let page = stage.engine.children(&caller(), &id, &token, after).await.expect("the attempt counts");
        let bytes: usize = page.children.iter().map(lockgate_ports::ChildJob::bytes).sum();
        assert!(bytes <= 2 * 1024 * 1024, "{bytes} bytes in one answer");
        count += page.children.len();
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(count, 300);
}

#[tokio::test(start_paused = true)]
async fn a_job_has_only_so_many_children() {
    let stage = Stage::new();
    let (_, _parents, first) = parent(&stage, job("p")).await;
    let most = usize::try_from(CHILDREN_MAX).expect("a small number");
    spawned(&stage, &first, (0..most - 1).map(|n| child(format!("c-{n}"))).collect()).await;
    let refused = spawn(&stage, &first, vec![child("x"), child("y")]).await.expect_err("too many");
    assert!(matches!(&refused, ApiError::Invalid(_)) && refused.to_string().contains("a job may have 10000"), "{refused}");
    spawned(&stage, &first, vec![child("x")]).await;
    let again = spawn(&stage, &first, vec![child("x")]).await.expect("taken");
    assert!(again[0].as_ref().is_ok_and(|answer| answer.existing), "one that is there needs no room");
    assert!(spawn(&stage, &first, vec![child("y")]).await.is_err());
    assert!(matches!(spawn(&stage, &first, Vec::new()).await, Err(ApiError::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn children_pass_policy_and_quotas_as_all_jobs_do() {
    let stage = Stage::new();
    let rules = "version: 1\ndefault: {decision: allow, reason: fine}\nrules:\n  - {id: no, match: {topics: [bad]}, decision: deny, reason: never}\n";
    stage.apply(rules).await;
    let (id, mut parents, first) = parent(&stage, job("p")).await;
    let bad = NewChild { key: "bad".into(), job: job("bad") };
    let nameless = NewChild { key: "no/good".into(), job: job("c") };
    let answers = spawn(&stage, &first, vec![bad, nameless]).await.expect("taken");
    assert!(answers[0].as_ref().is_ok_and(|answer| answer.state == JobState::Denied), "{answers:?}");
    assert!(matches!(&answers[1], Err(ApiError::Invalid(errors)) if errors[0].field == "key"), "{answers:?}");
    stage.quotas("tenants: {default: {jobs: 2}}\n").await;
    let answers = spawn(&stage, &first, vec![child("a"), child("b"), child("c")]).await.expect("taken");
    let refused = answers.iter().filter(|answer| matches!(answer, Err(ApiError::Limited(_)))).count();
    assert!(refused > 0 && refused < 3, "{answers:?}");
    let accepted: Vec<_> = answers.into_iter().flatten().map(|answer| answer.job_id).collect();
    assert_eq!(stage.job(&accepted[0]).await.request.actor, caller().actor);
    // A denied child is an ended one.
    for id in &accepted {
        stage.engine.cancel(&caller(), id, None).await.expect("cancelled");
    }
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let again = parents.take().await;
    assert_eq!((again.job.request.job_id.clone(), seen(&stage, &again).await[0].1), (id, JobState::Denied));
}

#[tokio::test(start_paused = true)]
async fn what_policy_holds_back_of_a_child_does_not_reach_its_parent() {
    let stage = Stage::new();
    let rules = "version: 1\ndefault: {decision: allow, reason: fine}\noutput:\n  fail_mode: closed\n  rules:\n    - {id: cards, match: {topics: [c], scan: [credit_card]}, decision: quarantine, reason: a card, hold: true}\n";
    stage.apply(rules).await;
    let (_, mut parents, first) = parent(&stage, job("p")).await;
    spawned(&stage, &first, vec![child("a")]).await;
    let mut worker = Hand::attach(&stage.engine, "children", &["c"], 1).await;
    let assignment = worker.take().await;
    worker.report(&assignment, good(r#""4111 1111 1111 1111""#)).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    let again = parents.take().await;
    assert_eq!(seen(&stage, &again).await, [("a".to_owned(), JobState::OutputQuarantined, None)]);
}

/// For those who count.
pub(crate) async fn a_parent_that_waits(stage: &Stage) {
    let (id, mut parents, first) = parent(stage, job("p")).await;
    let children = spawned(stage, &first, vec![child("a")]).await;
    parents.report(&first, wait(OnTimeout::Fail)).await;
    stage.engine.cancel(&caller(), &children[0], None).await.expect("cancelled");
    stage.until(&id, |job| job.barrier().is_none()).await;
    let again = parents.take().await;
    parents.report(&again, good("1")).await;
}
