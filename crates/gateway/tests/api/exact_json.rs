//! What is judged is what runs: JSON that two readers could understand differently is refused at every door, and a worker
//! gets the very bytes that were hashed and judged.

use std::sync::Arc;

use lockgate_core::request::{Caller, Json, NewJob};
use lockgate_gateway::{Gateway, GatewaySettings};
use lockgate_model::SeededEntropy;
use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::safety_kernel_client::SafetyKernelClient;
use lockgate_proto::v1::schedules_client::SchedulesClient;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use lockgate_proto::v1::worker_client::WorkerClient;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{ScriptedWorker, Server, hello, succeeded};

const NO_EVIL: &str = "\
version: 1
default: {decision: allow}
rules:
  - id: evil
    match: {when: payload.to == 'evil'}
    decision: deny
    reason: nothing goes there
";

/// Passes a policy that looks at the last `to`, and does evil with a parser that takes the first one.
const TWO_FACED: &str = r#"{"to":"evil","to":"ok"}"#;

fn new_job(payload: &str) -> v1::NewJob {
    v1::NewJob { topic: "job.send".into(), payload_json: payload.to_owned().into(), ..v1::NewJob::default() }
}

/// The message of the one job that was refused.
fn refusal(items: Vec<v1::submit_jobs_response::Item>) -> String {
    match items.into_iter().next().and_then(|item| item.item) {
        Some(Item::Error(error)) => error.message,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_payload_with_two_faces_is_refused_over_rest_grpc_and_nats() {
    let server = Server::start().await;
    server.apply(NO_EVIL).await;
    let reply = server.post_text("/v1/jobs", format!(r#"{{"topic":"job.send","payload":{TWO_FACED}}}"#)).await;
    reply.is_problem(400, "invalid_argument");
    assert_eq!(reply.fields(), ["payload.to"], "{reply:?}");
    let batch = format!(r#"{{"jobs":[{{"topic":"job.send","payload":{TWO_FACED}}}]}}"#);
    let reply = server.post_text("/v1/jobs:batch", batch).await;
    assert_eq!(reply.json["jobs"][0]["error"]["errors"][0]["field"], "payload.to", "{reply:?}");

    let mut grpc = server.grpc().await;
    let one = v1::SubmitJobRequest { job: Some(new_job(TWO_FACED)) };
    let status = grpc.submit_job(one).await.expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert!(status.message().contains("payload.to: is given twice"), "{status:?}");
    let many = v1::SubmitJobsRequest { jobs: vec![new_job(TWO_FACED)] };
    let told = refusal(grpc.submit_jobs(many).await.expect("an answer").into_inner().jobs);
    assert!(told.contains("payload.to: is given twice"), "{told}");

    // What the adapter for NATS hands over.
    let gateway = Gateway {
        engine: server.engine.clone(),
        clock: Arc::clone(&server.clock) as _,
        settings: GatewaySettings::default(),
    };
    let bus_submits = gateway.bus_submits(None).expect("open");
    let answer =
        bus_submits.submit(&Caller::new("default", "ann"), None, vec![new_job(TWO_FACED)]).await.expect("an answer");
    assert!(refusal(answer.jobs).contains("payload.to: is given twice"));
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn labels_environment_compensation_and_parameters_have_each_name_once() {
    let server = Server::start().await;
    for (field, sent) in [
        ("labels.a", r#"{"topic":"job.x","labels":{"a":"1","b":"2","a":"3"}}"#),
        ("env.A", r#"{"topic":"job.x","env":{"A":"1","\u0041":"3"}}"#),
        ("payload[1].a.b", r#"{"topic":"job.x","payload":[0,{"a":{"b":1,"c":2,"\u0062":3}}]}"#),
        (
            "compensation.payload.x",
            r#"{"topic":"job.x","workflow_id":"w","compensation":{"topic":"u","payload":{"x":1,"x":2}}}"#,
        ),
        (
            "compensation.labels.l",
            r#"{"topic":"job.x","workflow_id":"w","compensation":{"topic":"u","labels":{"l":"1","l":"2"}}}"#,
        ),
    ] {
        let reply = server.post_text("/v1/jobs", sent).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), [field], "{reply:?}");
    }
    let reply = server.post_text("/v1/jobs", r#"{"topic":"job.x","payload":1,"topic":"job.y"}"#).await;
    assert!(reply.status == 400 && reply.text.contains("duplicate field `topic`"), "{reply:?}");
    assert_eq!(server.stored().await, 0);

    let dag = "version: 1\ndag: d\nparams: {p: any}\nnodes: {a: {topic: job.x, payload: {v: '${params.p}'}}}\n";
    let stored = server.send(server.request("POST", "/v1/dags").header("content-type", "application/yaml"), dag).await;
    assert_eq!(stored.status, 200, "{stored:?}");
    let reply = server.post_text("/v1/runs", r#"{"dag":"d","params":{"p":{"a":1,"a":2}}}"#).await;
    reply.is_problem(400, "invalid_argument");
    assert_eq!(reply.fields(), ["params.p.a"], "{reply:?}");
    let mut grpc = OrchestratorClient::new(server.channel().await);
    let start =
        |params: &str| v1::StartDagRequest { dag: "d".into(), params_json: params.to_owned().into(), ..Default::default() };
    let status = grpc.start_dag(start(r#"{"p":1,"p":2}"#)).await.expect_err("refused");
    assert!(status.message().contains("params.p: is given twice"), "{status:?}");
    let status = grpc.start_dag(start(r#"{"p":[1,9007199254740993]}"#)).await.expect_err("refused");
    assert!(status.message().contains("params.p[1]: "), "{status:?}");
    let run = grpc.start_dag(start("{}")).await.expect_err("p must be given");
    assert_eq!(run.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_number_that_would_change_is_refused_with_its_path() {
    let server = Server::start().await;
    for number in [
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551615",
        "123456789012345678901234567890",
        "1e400",
        "1e-400",
        "3.14159265358979323846",
    ] {
        let reply = server.post_text("/v1/jobs", format!(r#"{{"topic":"job.x","payload":{{"a":[0,{number}]}}}}"#)).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), ["payload.a[1]"], "{number}: {reply:?}");
    }
    let limits = r#"{"a":[9007199254740991,-9007199254740991,0.1,5e-324,1.7976931348623157e308]}"#;
    server.submit(json!({ "topic": "job.x", "payload": serde_json::from_str::<Value>(limits).expect("JSON") })).await;
}

#[tokio::test]
async fn the_worker_gets_the_bytes_that_were_judged() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let sent = "{\"topic\":\"job.x\",\"payload\": {\"z\": 0.9009004917506227,\n \"a\": \"\\u00e9\\/\", \"n\": 1E2}}";
    let reply = server.post_text("/v1/jobs", sent).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let assignment = worker.assignment().await;
    let canonical = r#"{"a":"é/","n":100.0,"z":0.9009004917506227}"#;
    assert_eq!(assignment.payload_json, canonical.as_bytes());
    assert!(!worker.report(&assignment, Some(succeeded("{\"b\":1, \"a\":0.30000000000000004}"))).await);
    let shown = server.get(&format!("/v1/jobs/{}", assignment.job_id)).await;
    assert!(shown.text.contains(canonical), "{shown:?}");
    assert!(shown.text.contains(r#"{"a":0.30000000000000004,"b":1}"#), "{shown:?}");
}

#[tokio::test]
async fn a_result_with_two_faces_fails_the_job_and_says_where() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    for (result, told) in [
        (r#"{"rows":[{"id":1,"id":2}]}"#, "result.rows[0].id: is given twice"),
        (r#"{"id":9007199254740993}"#, "result.id: "),
    ] {
        let id = server.submit(json!({ "topic": "job.x" })).await;
        worker.run_one(Some(succeeded(result))).await;
        let job = server.job(&id).await;
        assert_eq!(job["state"], "FAILED", "{job}");
        assert!(job["last_error"]["message"].as_str().is_some_and(|text| text.contains(told)), "{job}");
    }
}

#[tokio::test]
async fn a_child_with_two_faces_is_refused() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    server.submit(json!({ "topic": "job.parent" })).await;
    let parent = worker.assignment().await;
    let child = v1::NewChild { key: "a".into(), job: Some(new_job(TWO_FACED)) };
    let sent = v1::SubmitChildrenRequest { job_id: parent.job_id, token: parent.token, children: vec![child] };
    let answer = WorkerClient::new(server.channel().await).submit_children(sent).await.expect("an answer").into_inner();
    assert!(refusal(answer.jobs).contains("payload.to: is given twice"));
}

#[tokio::test]
async fn parameters_of_a_rerun_follow_the_rule() {
    let server = Server::start().await;
    put_dag(&server, "version: 1\ndag: d\nparams: {p: any}\nnodes: {a: {topic: job.x, payload: '${params.p}'}}\n").await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let run = server.post_text("/v1/runs", r#"{"dag":"d","params":{"p":1}}"#).await.json["run_id"].clone();
    let run = run.as_str().expect("an id");
    worker.run_one(Some(succeeded("1"))).await;
    for (field, params) in [("params.p.a", r#"{"p":{"a":1,"a":2}}"#), ("params.p", r#"{"p":9007199254740993}"#)] {
        let body = format!(r#"{{"from":["a"],"params":{params}}}"#);
        let reply = server.post_text(&format!("/v1/runs/{run}/rerun"), body).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), [field], "{reply:?}");
        let request = v1::RerunDagRequest {
            run_id: run.to_owned(),
            from: vec!["a".to_owned()],
            params_json: params.to_owned().into(),
            fresh: false,
        };
        let status = OrchestratorClient::new(server.channel().await).rerun_dag(request).await.expect_err("refused");
        assert!(status.message().contains(&format!("{field}: ")), "{status:?}");
    }
}

#[tokio::test]
async fn what_asks_policy_about_a_job_or_an_action_follows_the_rule() {
    let server = Server::start().await;
    server.apply(NO_EVIL).await;
    let reply = server.post_text("/v1/policy/explain", format!(r#"{{"topic":"job.send","payload":{TWO_FACED}}}"#)).await;
    reply.is_problem(400, "invalid_argument");
    assert_eq!(reply.fields(), ["payload.to"], "{reply:?}");
    let mut kernel = SafetyKernelClient::new(server.channel().await);
    let subject = || v1::Subject { topic: "job.send".into(), payload_json: TWO_FACED.into(), ..v1::Subject::default() };
    let asked = v1::ExplainRequest { subject: Some(subject()) };
    let status = kernel.explain(asked).await.expect_err("refused");
    assert!(status.message().contains("payload.to: is given twice"), "{status:?}");
    let asked = v1::SimulateRequest { policy_text: NO_EVIL.to_owned(), subjects: vec![subject()], ..Default::default() };
    let status = kernel.simulate(asked).await.expect_err("refused");
    assert!(status.message().contains("subjects[0].payload.to: is given twice"), "{status:?}");

    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    server.submit(json!({ "topic": "job.send", "payload": {"to": "ok"} })).await;
    let running = worker.assignment().await;
    let action = v1::Action {
        job_id: running.job_id,
        token: running.token,
        kind: "url".to_owned(),
        value: "https://a.example".to_owned(),
        detail_json: TWO_FACED.into(),
    };
    let asked = v1::CheckRequest { what: Some(v1::check_request::What::Action(action)) };
    let status = kernel.check(asked).await.expect_err("refused");
    assert!(status.message().contains("detail.to: is given twice"), "{status:?}");
}

#[tokio::test]
async fn files_of_dags_schedules_and_policies_are_refused_with_the_line() {
    let server = Server::start().await;
    let yaml = |path: &str| server.request("POST", path).header("content-type", "application/yaml");
    let dag = |payload: &str| format!("version: 1\ndag: d\nnodes:\n  a:\n    topic: job.x\n    payload: {payload}\n");
    let schedule = |payload: &str| {
        format!("version: 1\nschedules:\n  s:\n    every: 1m\n    job:\n      topic: job.x\n      payload: {payload}\n")
    };
    for (payload, told) in [
        ("{to: evil, to: ok}", "key \"to\" is given twice"),
        (r#"{"to": "evil", "\u0074o": "ok"}"#, "key \"to\" is given twice"),
        ("{a: [1, 9007199254740993]}", "9007199254740993 in payload is a whole number beyond"),
        ("{a: 1e400}", "1e400 in payload is too large"),
    ] {
        for (path, text, line) in [("/v1/dags", dag(payload), 6), ("/v1/schedules", schedule(payload), 7)] {
            let reply = server.send(yaml(path), text.clone()).await;
            assert_eq!(reply.status, 400, "{reply:?}");
            let place = format!(":{line}: {}", told.replace('"', "\\\""));
            assert!(reply.text.contains(&place), "{path} {payload}: {reply:?} has no {place}");
        }
        let sent = v1::PutSchedulesRequest { text: schedule(payload), ..Default::default() };
        let status = SchedulesClient::new(server.channel().await).put_schedules(sent).await.expect_err("refused");
        assert!(status.message().contains(told), "{status:?}");
        let sent = v1::PutDagRequest { text: dag(payload), ..Default::default() };
        let status = OrchestratorClient::new(server.channel().await).put_dag(sent).await.expect_err("refused");
        assert!(status.message().contains(told), "{status:?}");
    }
    let policy = NO_EVIL.replace("    decision: deny\n", "    decision: deny\n    decision: allow\n");
    let reply = server.put_policy("", &policy).await;
    assert!(reply.status == 400 && reply.text.contains(":7: key \\\"decision\\\" is given twice"), "{reply:?}");
}

/// As a row of an earlier version comes back: the engine takes what its doors do not let in any more.
#[tokio::test]
async fn what_an_earlier_version_took_runs_as_it_is_stored_or_is_denied_with_the_reason() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let stored = r#"{ "to":"evil", "to":"ok", "id":18446744073709551615 }"#;
    let old = |id: &str| NewJob {
        job_id: Some(id.to_owned()),
        topic: "job.send".to_owned(),
        payload: Some(Json::trusted(stored)),
        ..NewJob::default()
    };
    let caller = Caller::new("default", "ann");
    server.engine.submit(&caller, vec![old("before")]).await.expect("answered").pop().expect("one").expect("taken");
    let assignment = worker.run_one(Some(succeeded("1"))).await;
    assert_eq!(assignment.payload_json, stored.as_bytes());
    let shown = server.get("/v1/jobs/before").await;
    assert!(shown.status == 200 && shown.text.contains(stored), "{shown:?}");
    assert_eq!(shown.json["state"], "SUCCEEDED", "{shown:?}");

    server.apply(NO_EVIL).await;
    server.engine.submit(&caller, vec![old("after")]).await.expect("answered").pop().expect("one").expect("taken");
    let denied = server.job("after").await;
    assert_eq!(denied["state"], "DENIED", "{denied}");
    assert!(denied.to_string().contains("a name stands twice in an object"), "{denied}");
}

async fn put_dag(server: &Server, text: &str) {
    let request = server.request("POST", "/v1/dags").header("content-type", "application/yaml");
    let stored = server.send(request, text.to_owned()).await;
    assert_eq!(stored.status, 200, "{stored:?}");
}

/// Some of every size and sign, and some between 0 and 1, which have the most digits.
fn doubles(count: usize, seed: u64) -> Vec<f64> {
    let entropy = SeededEntropy::new(seed);
    let of = |(at, bits): (usize, u64)| match at % 2 {
        0 => f64::from_bits(bits),
        _ => (bits >> 11) as f64 / (1_u64 << 53) as f64,
    };
    std::iter::from_fn(|| Some(entropy.next())).enumerate().map(of).filter(|double| double.is_finite()).take(count).collect()
}

/// What a list of numbers says to a reader that is not ours.
fn bits(list: &str) -> Vec<u64> {
    let inside = list.trim_start_matches('[').trim_end_matches(']');
    inside.split(',').map(|literal| literal.trim().parse::<f64>().expect("a number").to_bits()).collect()
}

/// The list that is the value of `v`.
fn list_of(payload: &[u8]) -> String {
    let text = std::str::from_utf8(payload).expect("UTF-8");
    let (_, rest) = text.split_once(r#""v":"#).expect("v");
    rest[..=rest.find(']').expect("a list")].to_owned()
}

#[tokio::test]
async fn random_doubles_keep_their_bits_from_the_parameters_of_a_run_to_the_payload_of_a_child() {
    let server = Server::start().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let mut workers = WorkerClient::new(server.channel().await);
    for round in 0..8 {
        let sent: Vec<f64> = std::iter::once(0.900_900_491_750_622_7).chain(doubles(79, round)).collect();
        let expected: Vec<u64> = sent.iter().map(|double| double.to_bits()).collect();
        let literals: Vec<String> = sent.iter().map(|double| format!("{double:?}")).collect();
        let list = format!("[{}]", literals.join(","));

        // Denies whatever differs from the same literal, by scalars and by the whole list.
        let differs = |(at, literal): (usize, &String)| {
            format!("  - {{id: r{at}, match: {{when: 'payload.v[{at}] != {literal}'}}, decision: deny, reason: r}}\n")
        };
        let rules: String = literals.iter().enumerate().map(differs).collect();
        let whole = format!("  - {{id: all, match: {{when: '!(payload.v == {list})'}}, decision: deny, reason: r}}\n");
        server.apply(&format!("version: 1\ndefault: {{decision: allow}}\nrules:\n{rules}{whole}")).await;

        // `c` has the numbers from the file of the DAG itself.
        put_dag(
            &server,
            &format!(
                "\
version: 1
dag: numbers
params: {{p: any}}
output: '${{nodes.b.output.v}}'
nodes:
  a: {{topic: job.a, payload: {{v: '${{params.p}}'}}}}
  b: {{needs: a, topic: job.b, payload: {{v: '${{nodes.a.output.v}}'}}}}
  c: {{needs: b, topic: job.c, payload: {{v: {list}}}}}
"
            ),
        )
        .await;
        let started = server.post_text("/v1/runs", format!(r#"{{"dag":"numbers","params":{{"p":{list}}}}}"#)).await;
        assert_eq!(started.status, 201, "{started:?}");
        for node in ["a", "b", "c"] {
            let assignment = worker.assignment().await;
            assert_eq!(bits(&list_of(&assignment.payload_json)), expected, "{node} in round {round}");
            if node == "b" {
                let payload_json = assignment.payload_json.clone();
                let job = v1::NewJob { topic: "job.child".into(), payload_json, ..v1::NewJob::default() };
                let child = v1::NewChild { key: "k".into(), job: Some(job) };
                let (job_id, token) = (assignment.job_id.clone(), assignment.token.clone());
                let sent = v1::SubmitChildrenRequest { job_id, token, children: vec![child] };
                let answer = workers.submit_children(sent).await.expect("an answer").into_inner();
                assert!(matches!(answer.jobs[0].item, Some(Item::Job(_))), "{answer:?}");
                let child = worker.assignment().await;
                assert_eq!(bits(&list_of(&child.payload_json)), expected, "child in round {round}");
                worker.report(&child, Some(succeeded("1"))).await;
            }
            // As another writer would write the same numbers.
            let long: Vec<String> = sent.iter().map(|double| format!("{double:.16e}")).collect();
            worker.report(&assignment, Some(succeeded(&format!("{{ \"v\" : [{}] }}", long.join(" ,"))))).await;
        }
        let run = started.json["run_id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/runs/{run}");
        server.wait_for("the end of the run", async || server.get(&path).await.json["state"] == "SUCCEEDED").await;
        let text = server.get(&path).await.text;
        let (_, output) = text.split_once(r#""output":"#).expect("an output");
        assert_eq!(bits(&output[..=output.find(']').expect("a list")]), expected, "output in round {round}");
    }
}

#[tokio::test]
async fn a_number_that_an_expression_makes_too_large_fails_the_node_with_its_path() {
    let server = Server::start().await;
    put_dag(
        &server,
        "version: 1\ndag: d\nparams: {p: any}\nnodes: {a: {topic: job.x, payload: {n: ['${params.p + params.p}']}}}\n",
    )
    .await;
    let started = server.post_text("/v1/runs", r#"{"dag":"d","params":{"p":9007199254740991}}"#).await;
    let path = format!("/v1/runs/{}", started.json["run_id"].as_str().expect("an id"));
    server.wait_for("the end of the run", async || server.get(&path).await.json["state"] == "FAILED").await;
    let run = server.get(&path).await;
    assert!(run.text.contains("payload.n[0]: is a whole number beyond"), "{run:?}");
}
