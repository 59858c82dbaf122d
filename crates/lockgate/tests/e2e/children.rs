//! Jobs that submit jobs, in real processes whose server dies under them.

use std::time::Duration;

use lockgate_proto::v1::{self, JobState};
use lockgate_worker::{Child, JobError, Wait, Worker};

use super::harness::{Server, job, submit, until};

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn the_built_in_fan_out_shows_children_in_the_first_minute() {
    let server = Server::start(&[]).await;
    let payload = r#"{"topic":"job.echo","items":[1,{"two":2},"three"]}"#;
    let done = server.cli(&["submit", "job.fan_out", "--job-id", "fan", "--payload", payload, "--wait"]).await;
    assert!(done.status.success(), "{done:?}");
    let result: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((&result["succeeded"], &result["children"][1]["result"]["two"]), (&3.into(), &2.into()), "{result}");
    let shown = text(&server.cli(&["get", "fan"]).await);
    assert!(shown.contains("3 of 3 ended") && shown.contains("fan~item-2"), "{shown}");
    let listed = text(&server.cli(&["jobs", "--parent", "fan"]).await);
    assert_eq!(listed.lines().filter(|line| line.contains("fan~item-")).count(), 3, "{listed}");

    let slow = r#"{"topic":"job.sleep","items":[{"ms":60000}],"timeout_ms":300,"on_timeout":"review"}"#;
    server.cli(&["--actor", "ann", "submit", "job.fan_out", "--job-id", "slow", "--payload", slow]).await;
    server.wait_for_output(&["why", "slow"], "children:review").await;
    let own = server.cli(&["--actor", "ann", "approvals", "approve", "slow"]).await;
    assert!(!own.status.success(), "{own:?}");
    let approved = server.cli(&["--actor", "bob", "approvals", "approve", "slow"]).await;
    assert!(approved.status.success(), "{approved:?}");
    let mut client = server.client().await;
    let ended = until(&mut client, "slow", |job| job.ended_at_ms.is_some()).await;
    assert_eq!(ended.state(), JobState::Succeeded, "{ended:?}");
    let result = String::from_utf8_lossy(&ended.result_json).into_owned();
    assert!(result.contains(r#""failed":1"#), "{result}");
}

#[tokio::test]
async fn a_parent_whose_server_is_killed_is_called_once_all_children_have_ended() {
    let mut server = Server::start(&["--worker-slots", "4"]).await;
    let worker = Worker::connect(server.api.clone()).worker_id("mine").handle("book", |ctx, payload| async move {
        if ctx.gathered().is_none() {
            let pages: u32 = payload.json()?;
            let page = |n| Child::new(format!("page-{n}"), "job.sleep").payload(&serde_json::json!({ "ms": 50 + n }));
            ctx.submit_children((0..pages).map(page)).await?;
            return Err(JobError::await_children(Wait::up_to(Duration::from_secs(300))));
        }
        let pages = ctx.children().await?;
        Ok(pages.iter().filter(|page| page.succeeded()).count())
    });
    let running = tokio::spawn(worker.run());
    let mut client = server.client().await;
    submit(&mut client, vec![job("b", "book", "60")]).await.expect("submitted");
    let some_ended =
        |job: &v1::Job| job.children.as_ref().is_some_and(|children| children.total == 60 && children.live < 55);
    until(&mut client, "b", some_ended).await;
    server.crash_and_restart().await;
    let mut client = server.client().await;
    let ended = until(&mut client, "b", |job| job.ended_at_ms.is_some()).await;
    assert_eq!((ended.state(), &ended.result_json[..]), (JobState::Succeeded, &b"60"[..]), "{ended:?}");
    assert_eq!(ended.failures, 0, "waiting costs nothing");
    let request = v1::ListJobsRequest { parent_job_id: "b".into(), limit: 1_000, ..Default::default() };
    let children = client.list_jobs(request).await.expect("listed").into_inner().jobs;
    assert!(children.iter().all(|child| child.parent_job_id == "b" && child.state() == JobState::Succeeded));
    assert_eq!(children.len(), 60, "each once");
    running.abort();
}
