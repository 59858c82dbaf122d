//! Schedules through both doors.

use std::time::Duration;

use lockgate_proto::v1;
use lockgate_proto::v1::schedules_client::SchedulesClient;
use serde_json::json;

use crate::support::Server;

const FILE: &str = "version: 1
schedules:
  tick:
    every: 1m
    job: { topic: job.echo, payload: { at: \"${nominal}\" } }
  tock:
    cron: \"0 2 * * *\"
    time_zone: Europe/Berlin
    dag: { name: etl }
";

async fn applied() -> Server {
    let server = Server::start().await;
    let request = server.request("POST", "/v1/schedules").header("content-type", "application/yaml");
    let reply = server.send(request, FILE).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    server
}

#[tokio::test]
async fn a_file_is_applied_and_a_second_time_changes_nothing() {
    let server = applied().await;
    let again = server.post("/v1/schedules", &json!({ "text": FILE })).await;
    let changes: Vec<&str> =
        again.json["schedules"].as_array().expect("a list").iter().filter_map(|one| one["change"].as_str()).collect();
    assert_eq!(changes, ["unchanged", "unchanged"], "{again:?}");
    let listed = server.get("/v1/schedules").await;
    let names: Vec<&str> =
        listed.json["schedules"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["tick", "tock"]);
    assert_eq!(server.get("/v1/schedules?limit=1").await.json["next_after"], "tick");
    assert_eq!(server.get("/v1/schedules?after=tick").await.json["schedules"][0]["name"], "tock");
}

#[tokio::test]
async fn both_doors_show_the_same_schedule() {
    let server = applied().await;
    let rest = server.get("/v1/schedules/tock").await.json;
    assert_eq!((&rest["rhythm"], &rest["dag"]), (&json!("0 2 * * *"), &json!("etl")), "{rest}");
    let mut client = SchedulesClient::new(server.channel().await);
    let wire = client.get_schedule(v1::GetScheduleRequest { name: "tock".into() }).await.expect("found").into_inner();
    assert_eq!((wire.rhythm.as_str(), wire.dag.as_str(), wire.time_zone.as_str()), ("0 2 * * *", "etl", "Europe/Berlin"));
    assert_eq!((wire.upcoming_ms.len(), rest["upcoming"].as_array().map(Vec::len)), (5, Some(5)));
    server.get("/v1/schedules/none").await.is_problem(404, "not_found");
}

#[tokio::test]
async fn a_file_with_faults_is_refused_with_all_of_them() {
    let server = Server::start().await;
    let text = "version: 1\nschedules:\n  a:\n    cron: nonsense\n    jop: {}\n";
    let reply = server.post("/v1/schedules", &json!({ "text": text, "file": "mine.yaml" })).await;
    reply.is_problem(400, "invalid_argument");
    assert!(reply.text.contains("mine.yaml") && reply.fields().len() >= 2, "{reply:?}");
    assert_eq!(server.get("/v1/schedules").await.json["schedules"], json!([]));
}

#[tokio::test]
async fn a_trigger_starts_once_and_leaves_a_slot() {
    let server = applied().await;
    let slot = server.post("/v1/schedules/tick/trigger", &json!({})).await;
    assert_eq!((slot.status, &slot.json["series"]), (200, &json!("manual")), "{slot:?}");
    let id = slot.json["job_id"].as_str().expect("a job").to_owned();
    let path = format!("/v1/jobs/{id}");
    server.wait_for("the job is there", async || server.get(&path).await.status == 200).await;
    let listed = async || server.get("/v1/schedules/tick/slots").await.json["slots"][0]["outcome"] == "STARTED";
    server.wait_for("the slot says so", listed).await;
}

#[tokio::test]
async fn pause_resume_backfill_and_remove_do_what_they_say() {
    let server = applied().await;
    assert_eq!(server.post("/v1/schedules/tick/pause", &json!({})).await.json["paused"], true);
    assert_eq!(server.post("/v1/schedules/tick/resume", &json!({})).await.json["paused"], false);
    server.clock.advance(Duration::from_secs(3_600));
    // Its jobs never end, so it is under way as long as nobody cancels it.
    let span = json!({ "from": "1970-01-01T00:01:00Z", "to": "1970-01-01T00:20:00Z", "concurrency": 2 });
    let refused = server.post("/v1/schedules/tick/backfills", &span).await;
    refused.is_problem(400, "invalid_argument");
    assert!(refused.text.contains("overlap skip"), "{refused:?}");
    let span = json!({ "from": "1970-01-01T00:01:00Z", "to": "1970-01-01T00:20:00Z" });
    let begun = server.post("/v1/schedules/tick/backfills", &span).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let id = begun.json["id"].as_str().expect("an id");
    let cancelled = server.post(&format!("/v1/schedules/tick/backfills/{id}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, 204, "{cancelled:?}");
    let again = server.post(&format!("/v1/schedules/tick/backfills/{id}/cancel"), &json!({})).await;
    again.is_problem(404, "not_found");
    let backwards = json!({ "from": "1970-01-01T00:03:00Z", "to": "1970-01-01T00:01:00Z" });
    server.post("/v1/schedules/tick/backfills", &backwards).await.is_problem(400, "invalid_argument");
    let gone = async || server.post("/v1/schedules/tick/remove", &json!({})).await.status == 204;
    server.wait_for("it is removed", gone).await;
    server.get("/v1/schedules/tick").await.is_problem(404, "not_found");
    server.get("/v1/schedules/tack/slots").await.is_problem(404, "not_found");
}
