//! The command line against a real server.

#[path = "cli/defaults.rs"]
mod defaults;
#[path = "cli/governance.rs"]
mod governance;
#[path = "cli/pools.rs"]
mod pools;
#[path = "cli/silent.rs"]
mod silent;
mod support;

use serde_json::{Value, json};
use support::{Files, Server};

fn id_of(submitted: &Value) -> &str {
    submitted["job_id"].as_str().expect("an id")
}

#[test]
fn a_submitted_job_is_waited_for_and_its_result_printed() {
    let server = Server::start();
    let answer = server.run(&["submit", "job.echo", "--payload", r#"{"hello":"world"}"#, "--wait"]);
    assert_eq!((answer.code(), answer.stdout().trim()), (Some(0), r#"{"hello":"world"}"#), "{}", answer.stderr());
}

#[test]
fn json_is_that_of_the_rest_contract() {
    let server = Server::start();
    let words = ["submit", "job.echo", "--payload", "[1, 2]", "--label", "a=b", "--key", "k", "--wait", "--json"];
    let waited = server.run(&words).json();
    let id = id_of(&waited);
    let got = server.run(&["get", id, "--json"]).json();
    assert_eq!(waited, got);
    assert_eq!(got, server.get(&format!("/v1/jobs/{id}")));
    assert_eq!(server.run(&["jobs", "--json"]).json(), server.get("/v1/jobs"));
    assert_eq!(server.run(&["why", id, "--json"]).json(), server.get(&format!("/v1/jobs/{id}/why")));
    assert_eq!(server.run(&["logs", id, "--json"]).json(), server.get(&format!("/v1/jobs/{id}/logs")));
    assert_eq!(server.run(&["queues", "--json"]).json(), server.get("/v1/queues"));
    let without_beat = |mut workers: Value| {
        for worker in workers["workers"].as_array_mut().expect("a list") {
            assert!(worker["last_beat_at"].take().is_string());
            for measured in ["cpu_load", "memory_load"] {
                worker.as_object_mut().expect("a worker").remove(measured);
            }
        }
        workers
    };
    assert_eq!(without_beat(server.run(&["workers", "--json"]).json()), without_beat(server.get("/v1/workers")));
}

#[test]
fn a_job_that_ends_badly_exits_with_2_and_can_be_replayed() {
    let server = Server::start();
    let words = ["submit", "job.always_fail", "--job-id", "bad", "--max-attempts", "1", "--wait"];
    let answer = server.run(&words);
    assert_eq!(answer.code(), Some(2), "{}", answer.stderr());
    assert!(answer.stderr().contains("bad FAILED: failed:"), "{}", answer.stderr());
    assert_eq!(server.run(&["watch", "bad"]).code(), Some(2));

    let listed = server.run(&["dlq", "list", "--json"]).json();
    assert_eq!(listed, server.get("/v1/dead-letters"));
    assert_eq!(listed["dead_letters"][0]["job_id"], "bad");
    assert_eq!(server.run(&["dlq", "show", "bad", "--json"]).json(), listed["dead_letters"][0]);
    assert!(server.run(&["dlq", "list"]).stdout().contains("job.always_fail"));

    let dry = server.run(&["dlq", "replay", "--topic", "job.always_fail", "--dry-run", "--json"]).json();
    assert_eq!((&dry["matched"], &dry["replayed"]), (&json!(1), &json!(0)));
    let replayed = server.run(&["dlq", "replay", "bad", "--json"]).json();
    assert_eq!(replayed, json!({"matched": 1, "replayed": 1, "no_room": 0, "left_out": 0, "job_ids": ["bad"]}));
    assert_eq!(server.run(&["watch", "bad"]).code(), Some(2), "the second life ends like the first");
    assert_eq!(server.run(&["get", "bad", "--json"]).json()["life"], 2);
}

#[test]
fn a_discarded_dead_letter_leaves_the_list_and_is_not_replayed() {
    let server = Server::start();
    for id in ["one", "two"] {
        assert_eq!(
            server.run(&["submit", "job.always_fail", "--job-id", id, "--max-attempts", "1", "--wait"]).code(),
            Some(2)
        );
    }
    assert_eq!(server.run(&["dlq", "discard", "one"]).code(), Some(1), "why must be said");
    let discarded = server.run(&["dlq", "discard", "one", "--reason", "paid by hand", "--json"]).json();
    assert_eq!(discarded, json!([{ "job_id": "one", "state": "FAILED" }]));
    let ids = |words: &[&str]| {
        let listed = server.run(words).json();
        let letters = listed["dead_letters"].as_array().expect("a list").iter();
        letters.map(|letter| letter["job_id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&["dlq", "list", "--json"]), ["two"]);
    assert_eq!(ids(&["dlq", "list", "--discarded", "--json"]), ["one"]);
    assert!(server.run(&["dlq", "list", "--discarded"]).stdout().contains("paid by hand"));
    assert!(server.run(&["get", "one"]).stdout().contains("paid by hand"));
    let refused = server.run(&["dlq", "replay", "one"]);
    assert_eq!(refused.code(), Some(5));
    assert!(refused.stderr().contains("was discarded by"), "{}", refused.stderr());
    let some = server.run(&["dlq", "discard", "two", "nobody", "--reason", "no longer wanted"]);
    assert_eq!(some.code(), Some(4));
    assert!(some.stdout().starts_with("two  FAILED  discarded"), "{}", some.stdout());
    assert!(ids(&["dlq", "list", "--json"]).is_empty());
    assert_eq!(server.run(&["dlq", "replay", "--all", "--json"]).json()["matched"], 0);
}

#[test]
fn a_job_that_waits_for_its_next_attempt_is_retried_at_once() {
    let server = Server::start();
    let submit = ["submit", "job.flaky", "--job-id", "f", "--payload", "1"];
    server.run(&[&submit[..], &["--retry", "base=1h", "--retry", "cap=1h"]].concat());
    server.wait_for_output(&["why", "f"], "waiting_for_retry");
    let retried = server.run(&["retry", "f", "--reason", "it is back", "--json"]).json();
    assert_eq!(retried, json!({ "job_id": "f", "state": "SCHEDULED" }));
    assert_eq!(server.run(&["watch", "f"]).code(), Some(0));
    let refused = server.run(&["retry", "f"]);
    assert_eq!(refused.code(), Some(5));
    assert!(refused.stderr().contains("SUCCEEDED"), "{}", refused.stderr());
}

#[test]
fn what_is_not_there_exits_with_4() {
    let server = Server::start();
    for words in [
        &["get", "none"][..],
        &["why", "none"],
        &["watch", "none"],
        &["cancel", "none"],
        &["retry", "none"],
        &["dlq", "show", "none"],
    ] {
        let answer = server.run(words);
        assert_eq!(answer.code(), Some(4), "{words:?}: {}", answer.stderr());
        assert!(answer.stderr().contains("none") && answer.stderr().contains("hint:"), "{}", answer.stderr());
    }
}

#[test]
fn whatever_is_not_there_exits_with_4_and_says_what_lists_its_like() {
    let server = Server::start();
    for (words, list) in [
        (["pools", "pause", "none"], "lockgate pools list"),
        (["pools", "show", "none"], "lockgate pools history"),
        (["policy", "show", "none"], "lockgate policy list"),
        (["policy", "rollback", "none"], "lockgate policy list"),
        (["quotas", "rollback", "builtin:default"], "builtin:quotas"),
        (["workers", "drain", "none"], "lockgate workers"),
        (["dag", "show", "none"], "lockgate dag list"),
        (["dag", "get", "none"], "lockgate dag runs"),
        (["schedule", "show", "none"], "lockgate schedule list"),
        (["schedule", "slots", "none"], "lockgate schedule list"),
        (["saga", "show", "none"], "lockgate saga list"),
    ] {
        let answer = server.run(&words);
        assert_eq!(answer.code(), Some(4), "{words:?}: {}", answer.stderr());
        assert!(answer.stderr().contains(list), "{words:?}: {}", answer.stderr());
    }
}

#[test]
fn what_contradicts_itself_exits_with_5() {
    let server = Server::start();
    let first = server.run(&["submit", "job.noop", "--key", "k", "--wait", "--json"]).json();
    let same = server.run(&["submit", "job.noop", "--key", "k", "--json"]).json();
    assert_eq!((id_of(&same), &same["existing"]), (id_of(&first), &json!(true)));
    let other = server.run(&["submit", "job.noop", "--key", "k", "--payload", "1"]);
    assert_eq!(other.code(), Some(5));
    assert!(other.stderr().contains(id_of(&first)), "the first job is named: {}", other.stderr());
    assert_eq!(server.run(&["cancel", id_of(&first)]).code(), Some(5), "it has ended");
}

#[test]
fn what_the_server_refuses_exits_with_1_and_names_every_field() {
    let server = Server::start();
    let answer = server.run(&["submit", "bad topic", "--label", "_x=y"]);
    assert_eq!(answer.code(), Some(1));
    assert!(answer.stderr().contains("topic:") && answer.stderr().contains("labels:"), "{}", answer.stderr());
}

#[test]
fn a_delayed_job_waits_is_explained_and_can_be_cancelled() {
    let server = Server::start();
    let job = server.run(&["submit", "job.noop", "--delay", "1h", "--json"]).json();
    let why = server.run(&["why", id_of(&job)]);
    assert_eq!(why.code(), Some(0));
    assert!(why.stdout().contains("SCHEDULED") && why.stdout().contains("in 59m"), "{}", why.stdout());
    let cancelled = server.run(&["cancel", id_of(&job), "--reason", "no longer wanted", "--json"]).json();
    assert_eq!(cancelled["state"], "CANCELLED");
    let events = server.run(&["watch", id_of(&job), "--json"]);
    assert_eq!(events.code(), Some(2));
    let numbers: Vec<Value> = events.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(numbers.iter().map(|event| event["n"].clone()).collect::<Vec<_>>(), [json!(1), json!(2), json!(3)]);
    assert_eq!(numbers[2]["message"], "no longer wanted");
}

#[test]
fn tenants_do_not_see_each_other() {
    let server = Server::start();
    let job = server.run(&["--tenant", "blue", "submit", "job.noop", "--wait", "--json"]).json();
    assert_eq!(job["tenant"], "blue");
    assert_eq!(server.run(&["get", id_of(&job)]).code(), Some(4));
    assert_eq!(server.run(&["--tenant", "blue", "get", id_of(&job)]).code(), Some(0));
    assert_eq!(server.run(&["jobs", "--json"]).json()["jobs"], json!([]));
}

#[test]
fn lists_are_filtered_and_paged() {
    let server = Server::start();
    for n in 0..3 {
        let label = format!("n={n}");
        server.run(&["submit", "job.noop", "--label", &label, "--label", "all=yes", "--wait", "--json"]).json();
    }
    let one = server.run(&["jobs", "--label", "n=1", "--json"]).json();
    assert_eq!(one["jobs"].as_array().map(Vec::len), Some(1));
    let page = server.run(&["jobs", "--label", "all=yes", "--state", "succeeded", "--limit", "2", "--json"]).json();
    assert_eq!(page["jobs"].as_array().map(Vec::len), Some(2));
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let rest = server.run(&["jobs", "--label", "all=yes", "--limit", "2", "--cursor", cursor, "--json"]).json();
    assert_eq!(rest["jobs"][0]["labels"]["n"], "0");
}

#[test]
fn a_load_ends_as_its_kinds_should() {
    let server = Server::start();
    let report = server.run(&["load", "--jobs", "100", "--no-sleep", "--json"]).json();
    assert_eq!(report["states"], json!({"FAILED": 5, "SUCCEEDED": 95}));
    assert_eq!(report["unexpected"], 0);
    let retries: Vec<&Value> = report["kinds"].as_array().expect("a list").iter().map(|kind| &kind["retries"]).collect();
    assert_eq!(retries, [0, 20, 10, 30], "noop, flaky, always_fail, all");
}

#[test]
fn a_load_beyond_a_rate_comes_back_when_the_server_says() {
    let server = Server::start();
    let files = Files::new();
    let quotas = files.write("quotas.yaml", "defaults: {submit_rate: 100/s}\n");
    assert_eq!(server.run(&["quotas", "apply", &quotas]).code(), Some(0));
    let report = server.run(&["load", "--jobs", "300", "--mix", "noop=1", "--json"]).json();
    assert_eq!(report["states"], json!({"SUCCEEDED": 300}));
    assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds > 1.5), "200 of them had to wait: {report}");
    let hopeless = server.run(&["load", "--jobs", "500", "--mix", "noop=1", "--give-up", "1s"]);
    assert_eq!(hopeless.code(), Some(1), "{}", hopeless.stdout());
    assert!(hopeless.stderr().contains("a job was refused: rate_limited"), "{}", hopeless.stderr());
}

#[test]
fn a_worker_of_another_process_takes_what_the_built_in_one_cannot() {
    let server = Server::start();
    let job = server.run(&["submit", "job.echo", "--require", "gpu", "--payload", "1", "--json"]).json();
    server.wait_for_output(&["why", id_of(&job)], "missing_capability:gpu");
    let mut worker = server.spawn(&["worker", "--name", "with-gpu", "--capability", "gpu", "--log", "warn"]);
    let watched = server.run(&["watch", id_of(&job)]);
    worker.kill().expect("killed");
    worker.wait().expect("ended");
    assert_eq!(watched.code(), Some(0), "{}", watched.stderr());
    assert!(watched.stdout().contains("on with-gpu"), "{}", watched.stdout());
}
