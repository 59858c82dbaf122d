//! The README's tour, as a newcomer types it.

use super::harness::Server;

#[tokio::test]
async fn the_first_job_prints_its_result() {
    let server = Server::start(&[]).await;
    let output = server.cli(&["submit", "job.echo", "--payload", r#"{"hello":"world"}"#, "--wait"]).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), r#"{"hello":"world"}"#);
}

#[tokio::test]
async fn a_job_that_ends_badly_is_told_by_the_exit_code_and_can_be_replayed() {
    let server = Server::start(&[]).await;
    let failed = server.cli(&["submit", "job.always_fail", "--job-id", "bad", "--max-attempts", "1", "--wait"]).await;
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    let listed = server.cli(&["--json", "dlq", "list"]).await;
    assert!(String::from_utf8_lossy(&listed.stdout).contains("bad"), "{listed:?}");
    let replayed = server.cli(&["dlq", "replay", "bad"]).await;
    assert!(replayed.status.success(), "{replayed:?}");
    let again = server.cli(&["dlq", "replay", "nobody"]).await;
    assert_eq!(again.status.code(), Some(4), "{again:?}");
}

#[tokio::test]
async fn why_names_what_is_missing() {
    let server = Server::start(&["--no-worker"]).await;
    server.cli(&["submit", "job.echo", "--job-id", "waiting"]).await;
    let why = server.cli(&["--json", "why", "waiting"]).await;
    let text = String::from_utf8_lossy(&why.stdout);
    assert!(text.contains("no_workers"), "{text}");
}

#[tokio::test]
async fn a_job_no_worker_fits_says_so() {
    let server = Server::start(&[]).await;
    server.cli(&["submit", "job.echo", "--job-id", "gpu", "--require", "gpu"]).await;
    server.wait_for_output(&["--json", "why", "gpu"], "missing_capability:gpu").await;
}

#[tokio::test]
async fn the_doctor_says_what_is_not_as_it_should_be() {
    let server = Server::start(&[]).await;
    server.wait_for_output(&["doctor"], "somebody takes jobs").await;
    let told = server.cli(&["doctor"]).await;
    let text = String::from_utf8_lossy(&told.stdout);
    for word in ["builtin:allow", "`serve --auth` asks", "the trail was not touched"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(told.status.code(), Some(0));

    let idle = Server::start(&["--no-worker"]).await;
    let told = idle.cli(&["doctor"]).await;
    assert!(String::from_utf8_lossy(&told.stdout).contains("no job starts"), "{told:?}");
    assert_eq!(told.status.code(), Some(5), "nobody works here");
}
