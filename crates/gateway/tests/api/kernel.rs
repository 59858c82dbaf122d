//! The kernel as a service: for schedulers elsewhere, for people, for running attempts.

use lockgate_proto::v1::check_request::What;
use lockgate_proto::v1::output_policy_client::OutputPolicyClient;
use lockgate_proto::v1::safety_kernel_client::SafetyKernelClient;
use lockgate_proto::v1::{self, Decision};
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{POLICY, ScriptedWorker, Server, hello, succeeded};

async fn kernel(server: &Server) -> SafetyKernelClient<Channel> {
    SafetyKernelClient::new(server.channel().await)
}

fn subject(id: &str, topic: &str) -> v1::Subject {
    v1::Subject { job_id: id.into(), topic: topic.into(), ..v1::Subject::default() }
}

fn check(what: What) -> v1::CheckRequest {
    v1::CheckRequest { what: Some(what) }
}

fn action(job_id: &str, token: &str, kind: &str, value: &str) -> v1::CheckRequest {
    check(What::Action(v1::Action {
        job_id: job_id.into(),
        token: token.into(),
        kind: kind.into(),
        value: value.into(),
        detail_json: r#"{"method":"GET"}"#.into(),
    }))
}

#[tokio::test]
async fn a_job_is_judged_before_anybody_submits_it() {
    let server = Server::governed().await;
    let mut kernel = kernel(&server).await;
    let verdict = kernel.check(check(What::Subject(subject("j", "job.deploy")))).await.expect("judged").into_inner();
    assert_eq!((verdict.decision(), verdict.rule.as_str()), (Decision::RequireApproval, "deploys"));
    assert_eq!(verdict.approval.and_then(|terms| terms.request_expiry_ms), Some(3_600_000));
    let told = kernel.list_snapshots(v1::ListSnapshotsRequest::default()).await.expect("listed").into_inner();
    assert_eq!((&told.snapshots, told.policy_text.as_str()), (&vec![verdict.snapshot.clone()], POLICY));
    let known = v1::ListSnapshotsRequest { known: verdict.snapshot };
    assert_eq!(kernel.list_snapshots(known).await.expect("listed").into_inner().policy_text, "", "the caller has it");
    assert_eq!(server.stored().await, 0);

    let shell = v1::Subject { capability: "shell".into(), ..subject("j", "job.x") };
    let fenced = kernel.check(check(What::Subject(shell))).await.expect("judged").into_inner();
    let constraints = fenced.constraints.expect("constraints");
    assert_eq!((constraints.network, constraints.exec, constraints.max_runtime_ms), (Some(false), Some(true), Some(1_500)));
}

#[tokio::test]
async fn what_cannot_be_judged_is_refused_with_the_field_named() {
    let server = Server::governed().await;
    let mut kernel = kernel(&server).await;
    for (request, field) in [
        (v1::CheckRequest { what: None }, "subject"),
        (check(What::Subject(subject("", "job.x"))), "job_id"),
        (check(What::Subject(subject("j", "not a topic"))), "topic"),
        (action("j", "t", "dance", "waltz"), "kind"),
    ] {
        let status = kernel.check(request).await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(field), "{status:?}");
    }
}

#[tokio::test]
async fn a_batch_is_judged_in_order_and_a_bad_subject_is_denied_alone() {
    let server = Server::governed().await;
    let subjects =
        vec![subject("a", "job.x"), subject("b", "no topic"), subject("c", "job.forbidden"), subject("d", "job.pay")];
    let request = v1::CheckBatchRequest { subjects };
    let verdicts = kernel(&server).await.check_batch(request).await.expect("judged").into_inner().verdicts;
    let decisions: Vec<(Decision, &str)> = verdicts.iter().map(|v| (v.decision(), v.rule.as_str())).collect();
    let expected = [
        (Decision::Allow, "default"),
        (Decision::Deny, "invalid-subject"),
        (Decision::Deny, "forbidden"),
        (Decision::Allow, "default"),
    ];
    assert_eq!(decisions, expected);
    assert!(verdicts[1].reason.contains("topic"), "{}", verdicts[1].reason);
    let none = kernel(&server).await.check_batch(v1::CheckBatchRequest::default()).await.expect("judged");
    assert!(none.into_inner().verdicts.is_empty());
}

#[tokio::test]
async fn an_explanation_counts_nothing_and_a_check_counts_a_job_once() {
    let server = Server::start().await;
    server
        .apply("version: 1\ndefault: {decision: allow}\nrules:\n  - id: burst\n    match: {topics: [job.x], velocity: {max: 2, window: 1m, key: [tenant]}}\n    decision: throttle\n    reason: slow down\n")
        .await;
    let mut kernel = kernel(&server).await;
    for n in 0..5 {
        let request = v1::ExplainRequest { subject: Some(subject(&format!("e{n}"), "job.x")) };
        let explained = kernel.explain(request).await.expect("explained").into_inner();
        assert_eq!(explained.verdict.expect("a verdict").decision(), Decision::Allow);
        let step = &explained.steps[0];
        assert_eq!((step.rule.as_str(), step.matched, step.scope.as_str()), ("burst", false, "base"));
    }
    for (id, decision) in [("a", Decision::Allow), ("a", Decision::Allow), ("b", Decision::Allow), ("c", Decision::Throttle)]
    {
        let verdict = kernel.check(check(What::Subject(subject(id, "job.x")))).await.expect("judged").into_inner();
        assert_eq!(verdict.decision(), decision, "{id}");
    }
}

#[tokio::test]
async fn another_policy_is_tried_without_being_put_in_force() {
    let server = Server::governed().await;
    let mut kernel = kernel(&server).await;
    let request = |text: &str| v1::SimulateRequest {
        policy_text: text.into(),
        subjects: vec![subject("", "job.deploy"), subject("", "job.x")],
        file: "new.yaml".into(),
        job_ids: Vec::new(),
    };
    let stricter = POLICY.replace("topics: [job.forbidden, action.url]", "topics: [job.*]");
    let verdicts = kernel.simulate(request(&stricter)).await.expect("tried").into_inner().verdicts;
    assert_eq!(verdicts.iter().map(v1::Verdict::decision).collect::<Vec<_>>(), [Decision::Deny, Decision::Deny]);
    assert_eq!(server.get("/v1/policy").await.json["version"], 1);
    let status = kernel.simulate(request("version: 2")).await.expect_err("refused");
    assert!(status.message().contains("new.yaml:1"), "{status:?}");
    let bad = v1::SimulateRequest { subjects: vec![subject("", "job.x"), subject("", "")], ..request(POLICY) };
    let status = kernel.simulate(bad).await.expect_err("refused");
    assert!(status.message().starts_with("subjects[1].topic"), "{status:?}");
}

#[tokio::test]
async fn stored_jobs_are_judged_anew_by_their_ids_and_only_the_callers_own() {
    let server = Server::governed().await;
    let mut kernel = kernel(&server).await;
    let id = server.submit_as_ann(json!({ "topic": "job.x" })).await;
    let request = || v1::SimulateRequest {
        policy_text: POLICY.replace("topics: [job.forbidden, action.url]", "topics: [job.*]"),
        job_ids: vec!["never-heard-of".into(), id.clone()],
        ..v1::SimulateRequest::default()
    };
    let jobs = kernel.simulate(request()).await.expect("tried").into_inner().jobs;
    let [job] = jobs.as_slice() else { panic!("one of them is stored: {jobs:?}") };
    let decision = |verdict: &Option<v1::Verdict>| verdict.as_ref().expect("a verdict").decision();
    assert_eq!((job.job_id.as_str(), job.topic.as_str()), (id.as_str(), "job.x"));
    assert_eq!((decision(&job.recorded), decision(&job.verdict)), (Decision::Allow, Decision::Deny));
    let mut stranger = tonic::Request::new(request());
    stranger.metadata_mut().insert("x-lockgate-tenant", "other".parse().expect("metadata"));
    assert!(kernel.simulate(stranger).await.expect("tried").into_inner().jobs.is_empty());
}

#[tokio::test]
async fn a_running_attempt_asks_with_its_own_token_and_nobody_elses() {
    let server = Server::governed().await;
    let mut worker = ScriptedWorker::attach(&server, hello("s-1")).await;
    let id = server.submit_as_ann(json!({ "topic": "job.x" })).await;
    let assignment = worker.assignment().await;
    let mut kernel = kernel(&server).await;
    let tool = kernel.check(action(&id, &assignment.token, "tool", "search")).await.expect("judged").into_inner();
    assert_eq!(tool.decision(), Decision::Allow);
    let url = kernel.check(action(&id, &assignment.token, "url", "https://example.org")).await.expect("judged").into_inner();
    assert_eq!((url.decision(), url.rule.as_str()), (Decision::Deny, "forbidden"));

    let status = kernel.check(action(&id, "guessed", "tool", "search")).await.expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    let mut stranger = tonic::Request::new(action(&id, &assignment.token, "tool", "search"));
    stranger.metadata_mut().insert("x-lockgate-tenant", "other".parse().expect("metadata"));
    assert_eq!(kernel.check(stranger).await.expect_err("refused").code(), Code::NotFound);

    assert!(!worker.report(&assignment, Some(succeeded("1"))).await);
    let late = kernel.check(action(&id, &assignment.token, "tool", "search")).await.expect_err("refused");
    assert_eq!(late.code(), Code::FailedPrecondition, "{late:?}");
    let kinds: Vec<String> = server.events(&id, None).await.all().await.into_iter().map(|(_, kind)| kind).collect();
    let asked: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with("action_")).collect();
    assert_eq!(asked, ["action_allowed", "action_refused"]);
}

#[tokio::test]
async fn a_result_is_checked_on_request() {
    let server = Server::governed().await;
    let mut outputs = OutputPolicyClient::new(server.channel().await);
    let result: Value = json!({ "to": "ann.smith@example.org" });
    let request = v1::CheckOutputRequest { subject: Some(subject("j", "job.mail")), result_json: result.to_string().into() };
    let verdict = outputs.check_output(request.clone()).await.expect("checked").into_inner();
    assert_eq!((verdict.decision.as_str(), verdict.rule.as_str()), ("redact", "no-addresses"));
    let redacted: Value = serde_json::from_slice(&verdict.redacted_json).expect("JSON");
    assert!(redacted["to"].is_string() && !redacted.to_string().contains("ann.smith"), "{redacted}");
    assert_eq!(verdict.findings.len(), 1);

    let other = v1::CheckOutputRequest { subject: Some(subject("j", "job.x")), ..request.clone() };
    assert_eq!(outputs.check_output(other).await.expect("checked").into_inner().decision, "allow");
    let broken = v1::CheckOutputRequest { result_json: "{".into(), ..request };
    let status = outputs.check_output(broken).await.expect_err("refused");
    assert!(status.message().starts_with("result"), "{status:?}");
}
