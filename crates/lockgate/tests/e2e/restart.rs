//! The server goes and comes back while work is under way.

use lockgate_proto::v1::JobState;

use super::harness::{PATIENCE, Server, all_jobs, binary, get, job, live, submit, until, until_idle, wait_for_jobs};

#[tokio::test]
async fn a_remote_worker_works_on_while_the_server_restarts_and_nothing_runs_twice() {
    let mut server = Server::start(&["--no-worker"]).await;
    let _worker = server.worker("remote", 4, &[]);
    let mut client = server.client().await;
    submit(&mut client, vec![job("long", "job.sleep", r#"{"ms":1500}"#)]).await.expect("submitted");
    until(&mut client, "long", |job| job.state() == JobState::Running).await;

    server.crash_and_restart().await;

    let mut client = server.client().await;
    let job = until(&mut client, "long", |job| job.ended_at_ms.is_some()).await;
    assert_eq!(job.state(), JobState::Succeeded, "{job:?}");
    assert_eq!(job.attempts, 1, "the worker attached again with its inventory: {job:?}");
}

#[tokio::test]
async fn a_load_goes_on_over_kill_9_of_the_server_and_every_job_ends() {
    let mut server = Server::start(&["--worker-slots", "64"]).await;
    let words = ["--server", &server.api, "--json", "load", "--jobs", "3000", "--rate", "1500", "--no-sleep"];
    let load = binary().args(words).spawn().expect("the load starts");
    let mut client = server.client().await;
    wait_for_jobs(&mut client, 500).await;

    server.crash().await;
    server.start_again().await;

    let output = tokio::time::timeout(PATIENCE, load.wait_with_output()).await.expect("it ends in time").expect("output");
    assert!(output.status.success(), "{output:?}");
    let jobs = all_jobs(&mut server.client().await).await;
    assert_eq!(jobs.len(), 3_000, "a batch that was sent again made no job twice");
}

#[tokio::test]
async fn a_rolling_restart_on_sigterm_loses_and_doubles_nothing() {
    let mut server = Server::start(&["--worker-slots", "4"]).await;
    let mut client = server.client().await;
    let jobs = (0..40).map(|n| job(&format!("job-{n}"), "job.sleep", r#"{"ms":700}"#)).collect();
    submit(&mut client, jobs).await.expect("submitted");
    until(&mut client, "job-3", |job| job.attempts == 1).await;

    for _ in 0..2 {
        assert!(live(&mut client).await > 0, "a restart of an idle server proves nothing");
        server.restart().await;
        client = server.client().await;
    }

    until_idle(&mut client).await;
    let jobs = all_jobs(&mut client).await;
    assert_eq!(jobs.len(), 40);
    for listed in jobs {
        let job = get(&mut client, &listed.job_id).await;
        assert_eq!(job.state(), JobState::Succeeded, "{job:?}");
        // A job on its way to a worker that leaves is given back unstarted: another attempt, not another execution.
        let (started, back): (Vec<_>, Vec<_>) = job.history.iter().partition(|attempt| attempt.started_at_ms.is_some());
        assert_eq!(started.len(), 1, "{job:?}");
        assert!(back.iter().all(|attempt| attempt.reason == "interrupted"), "{job:?}");
    }
}

#[tokio::test]
async fn a_server_that_lingers_sends_callers_elsewhere_and_answers_those_that_come() {
    let mut server = Server::start(&["--linger", "2s"]).await;
    server.wait_for_output(&["health"], "ready").await;
    server.tell_to_end().await;
    server.wait_for_output(&["health"], "leaving").await;
    let mut late = server.client().await;
    submit(&mut late, vec![job("late", "job.echo", "1")]).await.expect("answered all the same");
    until(&mut late, "late", |job| job.state() == JobState::Succeeded).await;
    server.wait_for_end().await;
    server.start_again().await;
    assert_eq!(get(&mut server.client().await, "late").await.state(), JobState::Succeeded);
}
