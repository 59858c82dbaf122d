//! Pools listed, closed and opened; workers sent away; the files that configure them.

use lockgate_proto::v1;
use lockgate_proto::v1::pools_client::PoolsClient;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{POOLS, ScriptedWorker, Server, hello, succeeded};

async fn grpc(server: &Server) -> PoolsClient<Channel> {
    PoolsClient::new(server.channel().await)
}

/// A worker of one pool.
fn of_pool(session: &str, pool: &str) -> v1::Hello {
    v1::Hello { pool: pool.to_owned(), worker_id: format!("{pool}-worker"), ..hello(session) }
}

async fn post(server: &Server, path: &str) -> Value {
    let reply = server.send(server.request("POST", path), "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json
}

#[tokio::test]
async fn without_a_file_one_pool_takes_every_topic() {
    let server = Server::start().await;
    let _worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let listed = server.get("/v1/pools").await.json;
    let expected = json!({
        "name": "default", "dispatch": "queue", "state": "open", "topics": ["*"], "capabilities": [], "labels": {},
        "workers": 1, "slots": 8, "busy": 0, "waiting": 0,
    });
    assert_eq!(listed, json!({ "pools": [expected], "snapshot": "builtin:default" }));
    assert_eq!(server.get("/v1/config/pools").await.json["snapshot"], "builtin:default");
    let request = v1::GetConfigRequest { kind: v1::ConfigKind::Pools.into(), snapshot: "builtin:default".to_owned() };
    let text = grpc(&server).await.get_config(request).await.expect("what holds without a file").into_inner().text;
    assert_eq!(text, "topics: {'*': default}\npools: {default: {}}\n");
}

#[tokio::test]
async fn both_doors_list_pools_with_what_goes_on_in_them() {
    let server = Server::with_pools().await;
    let mut worker = ScriptedWorker::attach(&server, of_pool("s-1", "echo")).await;
    server.submit(json!({ "topic": "job.echo" })).await;
    worker.assignment().await;
    server.submit(json!({ "topic": "job.one" })).await;

    let echo = server.pool("echo").await;
    let facts = ["description", "topics", "workers", "slots", "busy", "waiting"].map(|field| echo[field].clone());
    assert_eq!(facts, [json!("says it again"), json!(["job.echo"]), json!(1), json!(8), json!(1), json!(0)]);
    assert_eq!(
        (&server.pool("one").await["waiting"], &server.pool("scan").await["dispatch"]),
        (&json!(1), &json!("direct"))
    );

    let listed = grpc(&server).await.list_pools(v1::ListPoolsRequest {}).await.expect("listed").into_inner();
    let names: Vec<&str> = listed.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["echo", "one", "scan", "spare"]);
    let echo = &listed.pools[0];
    assert_eq!((echo.state(), echo.workers, echo.slots, echo.busy), (v1::PoolState::Open, 1, 8, 1));
    assert_eq!(listed.pools[2].capabilities, ["git"]);
    assert_eq!(listed.snapshot, server.get("/v1/pools").await.json["snapshot"]);
}

#[tokio::test]
async fn a_paused_pool_keeps_its_jobs_and_starts_them_when_it_is_resumed() {
    let server = Server::with_pools().await;
    let mut echo = ScriptedWorker::attach(&server, of_pool("s-1", "echo")).await;
    let _spare = ScriptedWorker::attach(&server, of_pool("s-2", "spare")).await;
    let paused = post(&server, "/v1/pools/echo/pause").await;
    assert_eq!((&paused["pool"]["name"], &paused["pool"]["state"]), (&json!("echo"), &json!("paused")));
    let id = server.submit(json!({ "topic": "job.echo" })).await;
    let why = server.why_of(&id, "pool_paused").await;
    assert_eq!((&why["pools"][0]["pool"], &why["pools"][0]["reason"]), (&json!("echo"), &json!("pool_paused")), "{why}");

    assert_eq!(post(&server, "/v1/pools/echo/resume").await["pool"]["state"], "open");
    let assignment = echo.run_one(Some(succeeded("1"))).await;
    assert_eq!(assignment.job_id, id);
}

#[tokio::test]
async fn jobs_of_a_drained_pool_go_to_the_next_pool_of_their_topic() {
    let server = Server::with_pools().await;
    let mut spare = ScriptedWorker::attach(&server, of_pool("s-1", "spare")).await;
    let mut echo = ScriptedWorker::attach(&server, of_pool("s-2", "echo")).await;
    let first = server.submit(json!({ "topic": "job.echo" })).await;
    let held = echo.assignment().await;
    let mut pools = grpc(&server).await;
    let mut set = async |state: v1::PoolState| {
        let request = v1::SetPoolStateRequest { pool: "echo".into(), state: state.into() };
        pools.set_pool_state(request).await.expect("set").into_inner().pool.expect("a pool of the file")
    };
    let drained = set(v1::PoolState::Draining).await;
    assert_eq!((drained.state(), drained.busy), (v1::PoolState::Draining, 1), "what runs goes on");

    let second = server.submit(json!({ "topic": "job.echo" })).await;
    assert_eq!(spare.run_one(Some(succeeded("1"))).await.job_id, second);
    assert!(!echo.report(&held, Some(succeeded("1"))).await, "the result of what ran counts");
    assert_eq!(server.job(&first).await["state"], "SUCCEEDED");
    assert_eq!(set(v1::PoolState::Open).await.state(), v1::PoolState::Open);
}

#[tokio::test]
async fn a_worker_is_told_to_leave_by_either_door() {
    let server = Server::start().await;
    for door in ["rest", "grpc"] {
        let mut worker = ScriptedWorker::attach(&server, v1::Hello { worker_id: door.into(), ..hello(door) }).await;
        if door == "rest" {
            assert_eq!(post(&server, "/v1/workers/rest/drain").await, json!({ "worker_id": "rest", "sessions": 1 }));
        } else {
            let request = v1::DrainWorkerRequest { worker_id: door.into() };
            assert_eq!(grpc(&server).await.drain_worker(request).await.expect("told").into_inner().sessions, 1);
        }
        worker.until(|message| message.drain.then_some(())).await;
    }
    let audit = server.get("/v1/audit").await.json;
    let drained = audit["rows"].as_array().expect("a list").iter().filter(|row| row["action"] == "worker_drained");
    assert_eq!(drained.map(|row| row["subject"].clone()).collect::<Vec<_>>(), ["rest", "grpc"]);
}

#[tokio::test]
async fn a_pool_or_worker_that_is_not_there_is_named_with_those_that_are() {
    let server = Server::with_pools().await;
    let reply = server.send(server.request("POST", "/v1/pools/ecco/pause"), "").await;
    reply.is_problem(404, "not_found");
    assert!(reply.json["detail"].as_str().is_some_and(|text| text.contains("ecco") && text.contains("echo")), "{reply:?}");
    server.send(server.request("POST", "/v1/workers/nobody/drain"), "").await.is_problem(404, "not_found");
    server.post("/v1/pools/echo/pause", &json!({ "for": "1h" })).await.is_problem(400, "invalid_argument");
    let mut pools = grpc(&server).await;
    for (pool, state, code) in
        [("ecco", v1::PoolState::Paused, Code::NotFound), ("echo", v1::PoolState::Unspecified, Code::InvalidArgument)]
    {
        let request = v1::SetPoolStateRequest { pool: pool.into(), state: state.into() };
        assert_eq!(pools.set_pool_state(request).await.expect_err("refused").code(), code, "{pool}");
    }
    assert_eq!(server.pool("echo").await["state"], "open");
}

#[tokio::test]
async fn faulty_pools_are_refused_with_every_fault_and_change_nothing() {
    let server = Server::with_pools().await;
    let before = server.get("/v1/config/pools").await.json;
    let broken =
        "topics:\n  job.echo: ecco\n  job.scan: scan\npools:\n  echo: {}\n  scan: {dispatsh: direct, max_concurrent: 0}\n";
    let reply = server.put_config("pools", "?file=house.yaml", broken).await;
    reply.is_problem(400, "invalid_argument");
    let errors = reply.json["errors"].as_array().expect("a list");
    let told: Vec<&str> = errors.iter().filter_map(|error| error["message"].as_str()).collect();
    let dispatch = "did you mean \"dispatch\"?";
    for fault in ["house.yaml:2: ", "did you mean \"echo\"?", "house.yaml:6: ", dispatch, "max_concurrent"] {
        assert!(told.iter().any(|text| text.contains(fault)), "{fault} is not in {told:#?}");
    }

    let request = v1::ActivateConfigRequest {
        kind: v1::ConfigKind::Pools.into(),
        text: broken.into(),
        ..v1::ActivateConfigRequest::default()
    };
    let status = grpc(&server).await.activate_config(request).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("pools.yaml:2: "), "{status:?}");
    assert_eq!(server.get("/v1/config/pools").await.json, before);
    let worker = ScriptedWorker::attach(&server, of_pool("s-1", "echo"));
    server.submit(json!({ "topic": "job.echo" })).await;
    worker.await.assignment().await;
}

#[tokio::test]
async fn pools_are_applied_listed_shown_and_rolled_back() {
    let server = Server::start().await;
    let first = server.configure("pools", POOLS).await;
    assert_eq!((&first["version"], &first["unchanged"], first.get("recalled")), (&json!(1), &json!(false), None));
    assert_eq!(server.configure("pools", POOLS).await["unchanged"], true);
    let second = server.configure("pools", "topics: {job.echo: only}\npools: {only: {}}\n").await;
    server.put_config("pools", "?expected_version=1", POOLS).await.is_problem(409, "outdated");

    let listed = server.get("/v1/config/pools/snapshots").await.json;
    let snapshots: Vec<&Value> = listed["configs"].as_array().expect("a list").iter().map(|c| &c["snapshot"]).collect();
    assert_eq!(snapshots, [&second["snapshot"], &first["snapshot"]]);
    let old = first["snapshot"].as_str().expect("an id");
    let earlier = server.get(&format!("/v1/config/pools/snapshots/{old}")).await.json;
    assert_eq!((&earlier["text"], &earlier["in_force"]), (&json!(POOLS), &json!(false)));
    server.get("/v1/config/pools/snapshots/pools:00").await.is_problem(404, "not_found");

    let mut pools = grpc(&server).await;
    let kind = v1::ConfigKind::Pools.into();
    let back = v1::RollBackConfigRequest { kind, snapshot: old.to_owned(), expected_version: Some(2) };
    assert_eq!(pools.roll_back_config(back).await.expect("in force").into_inner().version, 3);
    let shown = pools.get_config(v1::GetConfigRequest { kind, snapshot: String::new() }).await.expect("found").into_inner();
    assert_eq!((shown.text.as_str(), shown.version, shown.in_force), (POOLS, 3, true));
    let listed = pools.list_configs(v1::ListConfigsRequest { kind }).await.expect("listed").into_inner().configs;
    assert_eq!(listed.iter().map(|config| config.in_force).collect::<Vec<_>>(), [true, false]);
    let again = json!({ "snapshot": second["snapshot"] });
    assert_eq!(server.post("/v1/config/pools/rollback", &again).await.json["version"], 4);
}

#[tokio::test]
async fn timeouts_go_the_same_way_and_bound_the_next_attempt() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/config/timeouts").await.json["snapshot"], "builtin:timeouts");
    let text = "defaults: {running: 7s}\ntopics: {job.slow: {running: 9s}}\n";
    assert_eq!(server.configure("timeouts", text).await["version"], 1);
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    for (topic, timeout_ms) in [("job.slow", 9_000), ("job.other", 7_000)] {
        server.submit(json!({ "topic": topic })).await;
        assert_eq!(worker.run_one(Some(succeeded("1"))).await.timeout_ms, timeout_ms, "{topic}");
    }
    let reply = server.put_config("timeouts", "", "defaults: {running: soon}\nwhatever: 1\n").await;
    reply.is_problem(400, "invalid_argument");
    assert_eq!(reply.fields(), ["timeouts", "timeouts"], "{reply:?}");
}

#[tokio::test]
async fn what_is_not_a_file_of_pools_or_timeouts_is_not_found() {
    let server = Server::start().await;
    for path in ["/v1/config/policy", "/v1/config/pool_states", "/v1/config/nothing/snapshots"] {
        server.get(path).await.is_problem(404, "not_found");
    }
    let request = v1::GetConfigRequest::default();
    assert_eq!(grpc(&server).await.get_config(request).await.expect_err("refused").code(), Code::InvalidArgument);
}
