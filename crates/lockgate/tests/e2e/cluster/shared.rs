//! The work of one installation, split over processes.

use lockgate_proto::v1;

use super::super::harness::{PATIENCE, get, job, submit, until, until_idle};
use super::stage::{Ground, client, worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_submitted_at_one_gateway_runs_at_a_worker_of_another_and_is_seen_by_both() {
    let ground = Ground::start();
    let one = ground.process("gateway,scheduler", &[]).await;
    let other = ground.process("gateway", &[]).await;
    let _worker = worker("w", 4, &[&other]);
    let (mut here, mut there) = (client(&one).await, client(&other).await);
    submit(&mut here, vec![job("a", "job.echo", r#"{"n":1}"#)]).await.expect("taken");
    let done = until(&mut there, "a", |job| job.state() == v1::JobState::Succeeded).await;
    assert_eq!(done.attempts, 1);
    assert_eq!(get(&mut here, "a").await.state(), v1::JobState::Succeeded);
    let again = here.submit_jobs(v1::SubmitJobsRequest { jobs: vec![job("a", "job.echo", r#"{"n":1}"#)] }).await;
    assert!(again.is_ok(), "the same submit is the same job");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_at_one_gateway_follows_a_job_of_another_and_a_cancel_reaches_its_worker() {
    let ground = Ground::start();
    let one = ground.process("gateway,scheduler", &[]).await;
    let other = ground.process("gateway", &[]).await;
    let _worker = worker("w", 1, &[&other]);
    let mut here = client(&one).await;
    submit(&mut here, vec![job("long", "job.sleep", r#"{"ms":600000}"#)]).await.expect("taken");
    until(&mut here, "long", |job| job.state() == v1::JobState::Running).await;
    let watch = v1::WatchJobRequest { job_id: "long".to_owned(), after: 0 };
    let mut stream = here.watch_job(watch).await.expect("watched").into_inner();
    let cancel = v1::CancelJobRequest { job_id: "long".to_owned(), ..v1::CancelJobRequest::default() };
    client(&one).await.cancel_job(cancel).await.expect("cancelled");
    let followed = async {
        let mut last = String::new();
        while let Some(item) = stream.message().await.expect("events") {
            if let Some(v1::watch_job_response::Item::Event(event)) = item.item {
                last = event.kind;
            }
        }
        last
    };
    assert_eq!(tokio::time::timeout(PATIENCE, followed).await.expect("in time"), "cancelled");
    // The one slot of the worker is free again.
    submit(&mut here, vec![job("next", "job.noop", "null")]).await.expect("taken");
    until(&mut here, "next", |job| job.state() == v1::JobState::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_starts_knows_what_workers_of_others_do_and_can_send_them_away() {
    let ground = Ground::start();
    let one = ground.process("gateway,scheduler", &[]).await;
    let _worker = worker("w", 3, &[&one]);
    let mut here = client(&one).await;
    submit(&mut here, vec![job("long", "job.sleep", r#"{"ms":8000}"#)]).await.expect("taken");
    until(&mut here, "long", |job| job.state() == v1::JobState::Running).await;
    let other = ground.process("gateway", &[]).await;
    other.wait_for_output(&["--json", "workers"], "\"busy\": 1").await;
    other.wait_for_output(&["workers"], "elsewhere").await;
    let drained = other.cli(&["workers", "drain", "w"]).await;
    assert!(drained.status.success(), "{drained:?}");
    other.wait_for_output(&["workers"], "draining").await;
    until(&mut here, "long", |job| job.state() == v1::JobState::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_every_process_loses_and_doubles_nothing() {
    let ground = Ground::start();
    let mut processes = Vec::new();
    for roles in ["gateway", "gateway", "scheduler", "scheduler"] {
        processes.push(ground.process(roles, &[]).await);
    }
    let gateways = [&processes[0], &processes[1]];
    let _workers = [worker("a", 16, &gateways), worker("b", 16, &[gateways[1], gateways[0]])];
    let load = super::faults::Load::start(&processes[..2]);
    for process in &mut processes {
        load.go_on(200).await;
        process.restart().await;
    }
    let acknowledged = load.stop().await;
    let mut client = client(&processes[0]).await;
    until_idle(&mut client).await;
    super::faults::check_exact(&mut client, &acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_was_away_for_too_long_changes_nothing_when_it_comes_back() {
    let ground = Ground::start();
    let paused = ground.process("gateway", &[]).await;
    let other = ground.process("gateway,scheduler", &[]).await;
    let _worker = worker("w", 2, &[&paused, &other]);
    let mut client = client(&other).await;
    submit(&mut client, vec![job("long", "job.sleep", r#"{"ms":25000}"#)]).await.expect("taken");
    until(&mut client, "long", |job| job.state() == v1::JobState::Running).await;
    paused.pause().await;
    // The worker finds the other one by itself, and goes on with what it holds.
    other.wait_for_output(&["workers"], "attached").await;
    submit(&mut client, vec![job("meanwhile", "job.noop", "null")]).await.expect("taken");
    until(&mut client, "meanwhile", |job| job.state() == v1::JobState::Succeeded).await;
    until_closed(&ground).await;
    paused.resume().await;
    // It works again, under another name.
    let mut there = super::stage::client(&paused).await;
    submit(&mut there, vec![job("after", "job.noop", "null")]).await.expect("taken");
    until(&mut there, "after", |job| job.state() == v1::JobState::Succeeded).await;
    let done = until(&mut client, "long", |job| job.state() == v1::JobState::Succeeded).await;
    assert_eq!(done.attempts, 1, "nobody took it away: {done:?}");
}

/// Waits until a scheduler gave up on a process.
async fn until_closed(ground: &Ground) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(100));
    while ground.sql("SELECT count(*) FROM edges WHERE closed_at IS NOT NULL").await != "1" {
        assert!(tokio::time::Instant::now() < deadline, "the edge stays open");
        pause.tick().await;
    }
}
