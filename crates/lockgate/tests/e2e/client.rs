//! The client library against the binary.

use std::time::Duration;

use lockgate_client::{
    ApprovalVote, Client, ClientError, DeadLetterFilter, JobState, JobUpdate, NewJob, NewRun, Priority, RunState, TestServer,
};
use serde_json::{Value, json};

use super::harness::{PATIENCE, Server};

const POLICY: &str = "
version: 1
default: {decision: allow, reason: nothing forbids it}
rules:
  - {id: no-rockets, match: {labels: {kind: rocket}}, decision: deny, reason: not from here}
  - {id: money, match: {labels: {kind: payment}}, decision: require_approval, reason: money moves}
";

/// A server as users of the library start it in their tests, and a client that calls itself ann.
fn started(policy: Option<&str>) -> (TestServer, Client) {
    let builder = TestServer::builder().binary(env!("CARGO_BIN_EXE_lockgate"));
    let builder = policy.into_iter().fold(builder, |builder, policy| builder.policy(policy));
    let server = builder.start().expect("the server starts");
    let client = client_of(server.url(), "ann");
    (server, client)
}

fn client_of(url: &str, actor: &str) -> Client {
    Client::connect(url).actor(actor).open().expect("a client")
}

#[tokio::test]
async fn a_job_is_submitted_watched_and_read() {
    let (_server, client) = started(None);
    let job = NewJob::new("job.echo").payload(&json!({"a": "ü"})).label("team", "x").priority(Priority::High);
    let job = client.submit(job.idempotency_key("first").timeout(PATIENCE)).await.expect("submitted");
    let result: Value = job.result_within(PATIENCE).await.expect("a result");
    assert_eq!((result, job.existed()), (json!({"a": "ü"}), false));

    let mut updates = job.watch();
    let mut numbers = Vec::new();
    while let Some(update) = updates.next().await.expect("a watch") {
        if let JobUpdate::Event(event) = update {
            numbers.push(event.n);
        }
    }
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());

    let record = job.get().await.expect("found");
    assert_eq!((record.state, record.priority.as_str(), record.actor.as_str()), (JobState::Succeeded, "high", "ann"));
    assert_eq!((record.labels["team"].as_str(), record.history.len()), ("x", 1));
    let wrong = job.result::<u32>().await.expect_err("no number");
    assert!(matches!(wrong, ClientError::Result { .. }), "{wrong}");

    let again = NewJob::new("job.echo").payload(&json!({"a": "ü"})).label("team", "x").priority(Priority::High);
    let again = client.submit(again.idempotency_key("first").timeout(PATIENCE)).await.expect("the first job");
    assert_eq!((again.id(), again.existed()), (job.id(), true));
    let other = client.submit(NewJob::new("job.echo").idempotency_key("first")).await.expect_err("another request");
    assert_eq!((other.kind(), other.code()), ("conflict", "idempotency_conflict"));
}

#[tokio::test]
async fn a_batch_is_answered_job_by_job_and_lists_page() {
    let (_server, client) = started(None);
    let jobs = (0..5).map(|n| NewJob::new("job.echo").payload(&n).label("batch", "a"));
    let answers = client.submit_many(jobs.chain([NewJob::new("no topic")])).await.expect("answered");
    let (good, bad) = answers.split_at(5);
    assert!(matches!(&bad[0], Err(ClientError::Invalid { .. })), "{bad:?}");
    for (n, job) in good.iter().enumerate() {
        let job = job.as_ref().expect("accepted");
        assert_eq!(job.result_within::<usize>(PATIENCE).await.expect("a result"), n);
    }
    let labels = || [("batch".to_owned(), "a".to_owned())].into();
    let (first, next) = client.list("job.echo", labels(), 3, "").await.expect("a page");
    let (rest, none) = client.list("job.echo", labels(), 3, &next.expect("more")).await.expect("a page");
    assert_eq!((first.len(), rest.len(), none), (3, 2, None));
}

#[tokio::test]
async fn errors_say_what_the_caller_can_do() {
    let (server, client) = started(None);
    let missing = client.get("no-such-job").await.expect_err("not there");
    assert!(missing.next_step().contains("lockgate jobs"), "{}", missing.next_step());
    let ClientError::Invalid { fields, .. } = client.submit(NewJob::new("no topic").max_attempts(0)).await.expect_err("bad")
    else {
        panic!("the fields are wrong")
    };
    assert!(fields.iter().any(|fault| fault.field == "topic"), "{fields:?}");
    let slow = client.submit(NewJob::new("job.sleep").payload(&json!({"ms": 60_000}))).await.expect("submitted");
    let late = slow.result_within::<Value>(Duration::from_millis(1)).await.expect_err("not yet");
    assert!(late.is_retryable() && matches!(late, ClientError::TimedOut { .. }), "{late}");
    assert_eq!(slow.cancel("enough").await.expect("cancelled"), JobState::Cancelled);
    let failed = slow.result::<Value>().await.expect_err("cancelled");
    assert!(failed.to_string().contains("ended as CANCELLED"), "{failed}");
    drop(server);
    let gone = client.get("x").await.expect_err("the server is gone");
    assert!(gone.is_retryable() && gone.next_step().contains("lockgate serve"), "{gone}");
}

#[tokio::test]
async fn policy_denies_and_people_approve() {
    let (server, client) = started(Some(POLICY));
    let denied = client.submit(NewJob::new("job.echo").label("kind", "rocket")).await.expect("stored");
    let error = denied.result_within::<Value>(PATIENCE).await.expect_err("denied");
    assert!(error.to_string().contains("not from here"), "{error}");
    let (letters, _) = client.dead_letters(DeadLetterFilter::default(), 10, "").await.expect("listed");
    assert_eq!(letters.iter().map(|letter| letter.job_id.as_str()).collect::<Vec<_>>(), [denied.id()]);
    let counts = client.replay_all(DeadLetterFilter::default(), true).await.expect("counted");
    assert_eq!((counts.matched, counts.replayed), (1, 0));
    assert_eq!(client.replay(denied.id()).await.expect("replayed").replayed, 1);

    let payment = client.submit(NewJob::new("job.echo").payload(&120).label("kind", "payment")).await.expect("stored");
    assert_eq!(payment.why().await.expect("explained").state, JobState::ApprovalRequired);
    let boss = client_of(server.url(), "bob");
    let (waiting, _) = boss.pending_approvals(10, "").await.expect("listed");
    assert_eq!((waiting.len(), waiting[0].submitter.as_str()), (1, "ann"));
    let own = client.approve(ApprovalVote::from(&waiting[0])).await.expect_err("one's own job");
    assert_eq!(own.code(), "self_approval");
    let vote = ApprovalVote { note: "fine".to_owned(), ..boss.vote_on(payment.id()).await.expect("read") };
    assert_eq!(boss.approve(vote).await.expect("approved").approved_by, ["bob"]);
    assert_eq!(payment.result_within::<u32>(PATIENCE).await.expect("a result"), 120);
    let other = client.submit(NewJob::new("job.echo").label("kind", "payment")).await.expect("stored");
    let answered = boss.reject(boss.vote_on(other.id()).await.expect("read")).await.expect("rejected");
    assert_eq!(answered.state, JobState::Denied);
}

#[tokio::test]
async fn a_workflow_is_stored_started_and_waited_for() {
    let (_server, client) = started(None);
    let yaml = "{version: 1, dag: two, params: {n: {type: number}}, output: {n: '${nodes.b.output}'},
        nodes: {a: {topic: job.echo, payload: '${params.n}'}, b: {needs: [a], topic: job.echo, payload: '${nodes.a.output}'}}}";
    assert_eq!(client.put_dag(yaml).await.expect("stored"), ("two".to_owned(), 1));
    let run = client.start_dag(NewRun::new("two").params(&json!({"n": 7})).idempotency_key("k")).await.expect("started");
    let ended = tokio::time::timeout(PATIENCE, run.wait()).await.expect("in time").expect("ended");
    assert_eq!((ended.state, ended.nodes.len()), (RunState::Succeeded, 2));
    assert_eq!(ended.output.map(|output| output.get().to_owned()).as_deref(), Some(r#"{"n":7}"#));
    let again = client.start_dag(NewRun::new("two").params(&json!({"n": 7})).idempotency_key("k")).await.expect("known");
    assert_eq!((again.id(), again.existed()), (run.id(), true));
}

#[tokio::test]
async fn a_watch_and_a_wait_go_on_over_a_restart_of_the_server() {
    let mut server = Server::start(&[]).await;
    let client = client_of(&server.api, "ann");
    let job = client.submit(NewJob::new("job.sleep").payload(&json!({"ms": 2_000}))).await.expect("submitted");
    let (waited, watched) = (job.clone(), job.clone());
    let waiting = tokio::spawn(async move { waited.wait().await });
    let watching = tokio::spawn(async move {
        let (mut updates, mut numbers) = (watched.watch(), Vec::new());
        while let Some(update) = updates.next().await? {
            if let JobUpdate::Event(event) = update {
                numbers.push(event.n);
            }
        }
        Ok::<_, ClientError>(numbers)
    });
    server.crash_and_restart().await;
    let ended = tokio::time::timeout(PATIENCE, waiting).await.expect("in time").expect("no panic").expect("the job");
    assert_eq!(ended.state, JobState::Succeeded);
    let numbers = tokio::time::timeout(PATIENCE, watching).await.expect("in time").expect("no panic").expect("the events");
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "each once, without gaps");
}
