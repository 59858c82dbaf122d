//! Policies, approvals, results held back and the record of it all, at the command line.

use serde_json::{Value, json};

use crate::support::{Files, Server};

const POLICY: &str = "\
version: 1
default: {decision: allow}
rules:
  - id: forbidden
    match: {topics: [job.always_fail]}
    decision: deny
    reason: it never works
    remediations: [{title: Take one that works, replacement_topic: job.noop}]
  - id: second-person
    match: {topics: [job.echo], risk_tags: [outage]}
    decision: require_approval
    reason: outages need a second person
output:
  rules:
    - id: no-addresses
      match: {topics: [job.echo], scan: [pii]}
      decision: quarantine
      hold: true
      reason: addresses are private
";

fn governed(files: &Files) -> Server {
    let server = Server::start();
    let applied = server.run(&["policy", "apply", &files.write("policy.yaml", POLICY), "--json"]).json();
    assert_eq!(applied["version"], 1);
    server
}

#[test]
fn files_are_checked_and_tested_without_a_server() {
    let (files, server) = (Files::new(), Server::start());
    let good = files.write("good.yaml", POLICY);
    assert!(server.run(&["policy", "check", &good]).stdout().contains("ok"));
    let bad = files.write("bad.yaml", "version: 1\nrulez: []\ndefault: {decision: alow}\n");
    let answer = server.run(&["policy", "check", &bad]);
    assert_eq!(answer.code(), Some(1));
    for fault in ["bad.yaml:2: ", "did you mean \"rules\"?", "bad.yaml:3: ", "2 faults"] {
        assert!(answer.stderr().contains(fault), "{fault}: {}", answer.stderr());
    }
    let refused = server.run(&["policy", "apply", &bad]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr().contains("bad.yaml:3: "), "{}", refused.stderr());

    let case = |expected: &str| {
        format!(
            "cases:\n  - name: failing is denied\n    request: {{topic: job.always_fail}}\n    expect: {{decision: {expected}}}\n"
        )
    };
    let passing = server.run(&["policy", "test", &good, "--cases", &files.write("pass.yaml", &case("deny"))]);
    assert_eq!(passing.code(), Some(0), "{}", passing.stderr());
    let failing = server.run(&["policy", "test", &good, "--cases", &files.write("fail.yaml", &case("allow"))]);
    assert_eq!(failing.code(), Some(1));
    assert!(failing.stdout().contains("deny by forbidden"), "{}", failing.stdout());
    assert_eq!(server.run(&["policy", "schema"]).json()["type"], "object");
    let explained = server.run(&["policy", "explain", "--topic", "job.always_fail", "--file", &good, "--json"]).json();
    assert_eq!(explained["verdict"]["rule"], "forbidden");
}

#[test]
fn a_denial_names_its_rule_and_what_would_help() {
    let files = Files::new();
    let server = governed(&files);
    let denied = server.run(&["submit", "job.always_fail", "--json"]).json();
    assert_eq!(denied["state"], "DENIED");
    let id = denied["job_id"].as_str().expect("an id");
    let why = server.run(&["why", id]).stdout();
    assert!(why.contains("it never works") && why.contains("Take one that works (use job.noop)"), "{why}");
    assert!(server.run(&["get", id]).stdout().contains("deny by forbidden"));
    assert_eq!(server.run(&["get", id, "--json"]).json(), server.get(&format!("/v1/jobs/{id}")));
    let explained = server.run(&["policy", "explain", "--job", id]).stdout();
    assert!(explained.contains("forbidden") && explained.contains("matched"), "{explained}");
}

#[test]
fn a_second_person_approves_what_they_were_shown() {
    let files = Files::new();
    let server = governed(&files);
    let words = ["--actor", "ann", "submit", "job.echo", "--risk-tag", "outage", "--capability", "deploy", "--json"];
    let asked = server.run(&words).json();
    assert_eq!(asked["state"], "APPROVAL_REQUIRED");
    let id = asked["job_id"].as_str().expect("an id");
    let listed = server.run(&["approvals", "list", "--json"]).json();
    assert_eq!(listed, server.get("/v1/approvals"));
    assert_eq!(server.run(&["approvals", "show", id, "--json"]).json(), listed["approvals"][0]);

    let own = server.run(&["--actor", "ann", "approvals", "approve", id]);
    assert_eq!(own.code(), Some(5), "{}", own.stderr());
    assert!(own.stderr().contains("cannot approve their own job"), "{}", own.stderr());
    let approved = server.run(&["--actor", "bob", "approvals", "approve", id, "--note", "go"]);
    assert_eq!(approved.code(), Some(0), "{}", approved.stderr());
    assert!(approved.stderr().contains("outages need a second person"), "shown first: {}", approved.stderr());
    assert!(approved.stdout().contains("1 of 1 approved"), "{}", approved.stdout());
    assert_eq!(server.run(&["watch", id]).code(), Some(0));

    let other = server.run(&words).json();
    let other = other["job_id"].as_str().expect("an id");
    let rejected = server.run(&["--actor", "bob", "approvals", "reject", other, "--json"]).json();
    assert_eq!(rejected["state"], "DENIED");
    let plain = server.run(&["submit", "job.noop", "--wait", "--json"]).json();
    assert_eq!(server.run(&["approvals", "show", plain["job_id"].as_str().expect("an id")]).code(), Some(4));
}

#[test]
fn a_quarantined_result_is_released_by_a_person() {
    let files = Files::new();
    let server = governed(&files);
    let words = ["submit", "job.echo", "--job-id", "mail", "--payload", r#"{"to":"ann.smith@example.org"}"#, "--wait"];
    assert_eq!(server.run(&words).code(), Some(2));
    let held = server.run(&["get", "mail"]).stdout();
    assert!(held.contains("quarantine by no-addresses: addresses are private (1 finding)"), "{held}");
    let why = server.run(&["why", "mail"]).stdout();
    assert!(why.contains("#no-addresses (addresses are private)"), "the rule that holds it back: {why}");
    let released = server.run(&["--actor", "bob", "release", "mail", "--note", "public anyway", "--json"]).json();
    assert_eq!(released, json!({ "job_id": "mail", "state": "SUCCEEDED" }));
    assert_eq!(server.run(&["get", "mail", "--json"]).json()["result"]["to"], "ann.smith@example.org");
    assert_eq!(server.run(&["release", "mail"]).code(), Some(5));
}

#[test]
fn policies_are_listed_shown_compared_and_rolled_back() {
    let files = Files::new();
    let server = governed(&files);
    for topic in ["job.noop", "job.echo"] {
        assert_eq!(server.run(&["submit", topic, "--wait"]).code(), Some(0));
    }
    let stricter = files.write("stricter.yaml", &POLICY.replace("job.always_fail", "job.noop"));
    let simulated = server.run(&["policy", "simulate", "--policy", &stricter, "--since", "1h", "--json"]).json();
    assert_eq!((&simulated["judged"], simulated["changed"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    assert_eq!(simulated["cut"], json!(false));
    let cut = server.run(&["policy", "simulate", "--policy", &stricter, "--limit", "1"]);
    assert!(cut.stderr().contains("of 1 verdicts") && cut.stderr().contains("higher --limit"), "{}", cut.stderr());
    let change = &simulated["changed"][0];
    assert_eq!((&change["old"]["decision"], &change["new"]["decision"]), (&json!("allow"), &json!("deny")));
    let first = server.run(&["policy", "list", "--json"]).json();
    let first = first["policies"][0]["snapshot"].as_str().expect("an id").to_owned();
    let diff = server.run(&["policy", "diff", &first, &stricter]);
    assert!(diff.stdout().contains("job.noop") && diff.stderr().contains("1 of 2 verdicts change"), "{}", diff.stderr());
    assert_eq!(server.run(&["policy", "diff", &stricter, &stricter, "--json"]).json()["changed"], json!([]));

    assert_eq!(server.run(&["policy", "apply", &stricter, "--expect", "7"]).code(), Some(5));
    assert_eq!(server.run(&["policy", "apply", &stricter, "--expect", "1"]).code(), Some(0));
    assert_eq!(server.run(&["policy", "list", "--json"]).json(), server.get("/v1/policy/snapshots"));
    assert_eq!(server.run(&["policy", "show", "--json"]).json(), server.get("/v1/policy"));
    let shown = server.run(&["policy", "show", &first]);
    assert_eq!(shown.stdout(), POLICY, "the text alone, to be saved and edited");
    let back = server.run(&["policy", "rollback", &first, "--json"]).json();
    assert_eq!((&back["version"], &back["snapshot"]), (&json!(3), &json!(first)));
}

#[test]
fn the_trail_is_listed_exported_and_verified() {
    let files = Files::new();
    let server = governed(&files);
    server.run(&["submit", "job.always_fail", "--json"]).json();
    let listed = server.run(&["audit", "list", "--json"]).json();
    assert_eq!(listed, server.get("/v1/audit"));
    let export = files.write("trail.jsonl", "");
    let exported = server.run(&["audit", "export", "--out", &export]);
    assert_eq!(exported.code(), Some(0), "{}", exported.stderr());
    let lines = std::fs::read_to_string(&export).expect("written");
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(Value::Array(rows), listed["rows"]);
    assert!(server.run(&["audit", "list"]).stdout().contains("job_denied"));
    server.wait_for_output(&["audit", "verify"], "intact  2 rows");
    assert_eq!(server.run(&["breaker", "--json"]).json(), server.get("/v1/breakers"));
}

#[test]
fn policy_may_ask_what_kind_of_actor_it_is() {
    let files = Files::new();
    let server = governed(&files);
    let text = "version: 1\ndefault: {decision: allow}\nrules:\n  - {id: robots, match: {actor_types: [agent]}, decision: deny, reason: people only}\n";
    assert_eq!(server.run(&["policy", "apply", &files.write("robots.yaml", text)]).code(), Some(0));
    assert_eq!(server.run(&["submit", "job.noop", "--json"]).json()["state"], "SCHEDULED");
    let robot = server.run(&["--actor-type", "agent", "submit", "job.noop", "--json"]).json();
    assert_eq!(robot["state"], "DENIED");
}
