//! The built-in handlers that need a whole worker around them.

use std::time::Duration;

use lockgate_proto::v1::Assignment;
use lockgate_proto::v1::result::{AwaitChildren, Outcome};
use lockgate_worker::Worker;
use lockgate_worker::handlers::Builtin;

use crate::edge::{Attached, Edge, Manners, job, within};
use crate::running::Running;

async fn builtin(allow_exec: bool) -> (Attached, Running, Edge) {
    let mut edge = Edge::start(Manners::default()).await;
    let builtin = Builtin { allow_exec, ..Builtin::default() };
    let running = Running::start(builtin.register(Worker::connect(edge.url())));
    let stream = edge.accept().await;
    (stream, running, edge)
}

fn exec(token: &str, script: &str) -> Assignment {
    job(token, "job.exec", &serde_json::json!({"command": ["sh", "-c", script]}).to_string())
}

#[tokio::test]
async fn exec_and_db_tx_are_served_only_when_set_up() {
    let (stream, _running, _edge) = builtin(false).await;
    let topics = ["always_fail", "echo", "fan_out", "flaky", "http_call", "noop", "sleep"].map(|name| format!("job.{name}"));
    assert_eq!(stream.hello.topics, topics);
    let (stream, _running, _edge) = builtin(true).await;
    assert!(stream.hello.topics.contains(&"job.exec".to_owned()));
}

#[tokio::test]
async fn fan_out_submits_a_child_for_each_item_and_tells_what_became_of_them() {
    let (mut stream, _running, _edge) = builtin(false).await;
    let payload = r#"{"topic": "t", "items": [1, 2], "timeout_ms": 50, "on_timeout": "review"}"#;
    let again = Assignment { gathered: 1, ..job("again", "job.fan_out", payload) };
    let strict = r#"{"topic": "t", "items": [1, 2], "on_child_failure": "fail"}"#;
    let strict = Assignment { gathered: 1, ..job("strict", "job.fan_out", strict) };
    stream.assign([job("first", "job.fan_out", payload), again, strict, job("bad", "job.fan_out", r#"{"topic": "t"}"#)]);
    let ends = stream.results(4).await;
    let failed = "1 of 2 children did not succeed; b FAILED: no reason is known";
    assert!(matches!(&ends["strict"], Outcome::FailedFatal(told) if told.error == failed), "{ends:?}");
    let waits = |wait: &AwaitChildren| wait.timeout_ms == Some(50) && wait.on_timeout == "review";
    assert!(matches!(&ends["first"], Outcome::AwaitChildren(wait) if waits(wait)), "{ends:?}");
    let told =
        r#"{"succeeded":1,"failed":1,"children":[{"key":"a","state":"SUCCEEDED","result":7},{"key":"b","state":"FAILED"}]}"#;
    assert!(matches!(&ends["again"], Outcome::Succeeded(done) if done.result_json == told), "{ends:?}");
    assert!(matches!(&ends["bad"], Outcome::FailedFatal(failed) if failed.error.contains("missing field `items`")));
}

#[tokio::test]
async fn the_simple_ones_do_what_they_are_called() {
    let (mut stream, _running, _edge) = builtin(false).await;
    stream.assign([
        job("noop", "job.noop", ""),
        job("echo", "job.echo", r#"{"a": 1}"#),
        job("sleep", "job.sleep", r#"{"ms": 1}"#),
        job("flaky", "job.flaky", r#"{"fail": 1}"#),
        job("fail", "job.always_fail", r#"{"message": "no"}"#),
        job("bad", "job.sleep", r#"{"ms": -1}"#),
    ]);
    let ends = stream.results(6).await;
    assert!(matches!(&ends["noop"], Outcome::Succeeded(done) if done.result_json == "null"));
    assert!(matches!(&ends["echo"], Outcome::Succeeded(done) if done.result_json == r#"{"a": 1}"#));
    assert!(matches!(&ends["sleep"], Outcome::Succeeded(_)));
    assert!(matches!(&ends["flaky"], Outcome::FailedRetryable(_)));
    assert!(matches!(&ends["fail"], Outcome::FailedRetryable(failed) if failed.error == "no"));
    assert!(matches!(&ends["bad"], Outcome::FailedFatal(failed) if failed.error.contains("field `ms`")));
}

#[tokio::test]
async fn a_sleep_without_renewal_hides_its_first_attempt_only() {
    let (mut stream, _running, _edge) = builtin(false).await;
    let payload = r#"{"ms": 60000, "renew": false}"#;
    stream.assign([job("first", "job.sleep", payload), Assignment { attempt: 2, ..job("second", "job.sleep", payload) }]);
    stream.started(&["first", "second"]).await;
    assert_eq!(stream.held().await, ["second"]);
}

#[tokio::test]
async fn a_command_ends_with_its_output_and_exit_code() {
    let (mut stream, _running, _edge) = builtin(true).await;
    let fed = r#"{"command": ["sh", "-c", "cat; echo $WHO $LOCKGATE_JOB_ID; echo aside >&2"], "stdin": "in\n", "env": {"WHO": "me"}}"#;
    stream.assign([
        job("good", "job.exec", fed),
        exec("bad", "echo broken >&2; exit 3"),
        job("none", "job.exec", r#"{"command": []}"#),
    ]);
    let (mut lines, mut ends) = (Vec::new(), std::collections::BTreeMap::new());
    stream
        .until("the ends", |message| {
            lines.extend(message.logs.iter().filter(|log| log.token == "good").map(|log| log.line.clone()));
            ends.extend(message.results.iter().map(|report| (report.token.clone(), report.outcome.clone().unwrap())));
            (ends.len() == 3).then_some(())
        })
        .await;
    lines.sort();
    assert_eq!(lines, ["aside", "in", "me job-good"]);
    let good = r#"{"exit_code":0,"stdout":"in\nme job-good\n","truncated":false}"#;
    assert!(matches!(&ends["good"], Outcome::Succeeded(done) if done.result_json == good), "{:?}", ends["good"]);
    let failed = |name: &str| match &ends[name] {
        Outcome::FailedRetryable(failed) => failed.error.clone(),
        Outcome::FailedFatal(failed) => failed.error.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(failed("bad"), "the command ended with exit status: 3: broken");
    assert!(failed("none").contains("field `command`"));
}

#[tokio::test]
async fn policy_may_keep_a_job_from_starting_programs_and_from_opening_connections() {
    let (mut stream, _running, _edge) = builtin(true).await;
    let folder = tempfile::tempdir().unwrap();
    let touch = |name: &str| format!("touch {}", folder.path().join(name).display());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    nobody.set_nonblocking(true).unwrap();
    let call = serde_json::json!({ "url": format!("http://{}/", nobody.local_addr().unwrap()) }).to_string();
    stream.assign([
        Assignment { exec: Some(false), ..exec("no-exec", &touch("forbidden")) },
        Assignment { exec: Some(true), ..exec("exec", &touch("allowed")) },
        Assignment { network: Some(false), ..exec("exec-offline", &touch("offline")) },
        Assignment { network: Some(false), ..job("no-network", "job.http_call", &call) },
    ]);
    let ends = stream.results(4).await;
    let refused = |name: &str, what: &str| matches!(&ends[name], Outcome::FailedFatal(failed) if failed.error == format!("policy does not let this job {what}"));
    assert!(refused("no-exec", "start programs (constraint exec)"), "{ends:?}");
    assert!(refused("no-network", "open connections (constraint network)"), "{ends:?}");
    assert!(matches!(&ends["exec"], Outcome::Succeeded(_)) && matches!(&ends["exec-offline"], Outcome::Succeeded(_)));
    let made = |name: &str| folder.path().join(name).exists();
    assert!(made("allowed") && made("offline") && !made("forbidden"), "only what was allowed happened");
    assert!(nobody.accept().is_err(), "nobody called");
}

/// Starts a command whose grandchild prints its pid and waits; returns that pid once it is known.
async fn grandchild(stream: &mut Attached, job: Assignment) -> i32 {
    stream.assign([job]);
    stream.until("the grandchild's pid", |m| m.logs.first().and_then(|log| log.line.trim().parse().ok())).await
}

const FAMILY: &str = "sh -c 'sleep 600 & echo $!; wait' & wait";

/// A killed process is gone, or a zombie that its new parent has not collected yet.
async fn wait_until_gone(pid: i32) {
    let is_gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    };
    let wait = async {
        while !is_gone() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the grandchild's end", wait).await;
}

/// Runs a family with a timeout, given in milliseconds, long enough for it to be born: on a busy machine that may take a
/// few tries. Returns the grandchild's pid and how the attempt ended.
async fn outlived(stream: &mut Attached, timed: impl Fn(&str, u64) -> Assignment) -> (i32, Outcome) {
    for ms in [500, 2_000, 8_000] {
        let token = ms.to_string();
        stream.assign([timed(&token, ms)]);
        let mut pid = None;
        let end = stream.until("the end", |m| {
            let line = m.logs.iter().find(|log| log.token == token);
            pid = pid.or_else(|| line.and_then(|log| log.line.trim().parse().ok()));
            m.results.iter().find(|report| report.token == token).map(|report| report.outcome.clone().unwrap())
        });
        let end = end.await;
        stream.ack(&token);
        if let Some(pid) = pid {
            return (pid, end);
        }
    }
    panic!("the family was never born");
}

#[tokio::test]
async fn a_timeout_kills_the_whole_family_of_a_command() {
    let (mut stream, _running, _edge) = builtin(true).await;
    let timed = |token: &str, timeout_ms| Assignment { timeout_ms, ..exec(token, FAMILY) };
    let (pid, end) = outlived(&mut stream, timed).await;
    assert!(matches!(end, Outcome::TimedOut(_)));
    wait_until_gone(pid).await;
}

#[tokio::test]
async fn the_commands_own_timeout_kills_it_too() {
    let (mut stream, _running, _edge) = builtin(true).await;
    let timed = |token: &str, ms| {
        let payload = serde_json::json!({"command": ["sh", "-c", FAMILY], "timeout_ms": ms}).to_string();
        job(token, "job.exec", &payload)
    };
    let (pid, end) = outlived(&mut stream, timed).await;
    assert!(matches!(end, Outcome::FailedRetryable(failed) if failed.error.contains("did not end within")));
    wait_until_gone(pid).await;
}

#[tokio::test]
async fn a_stop_kills_the_whole_family_of_a_command() {
    let (mut stream, _running, _edge) = builtin(true).await;
    let pid = grandchild(&mut stream, exec("a", FAMILY)).await;
    stream.stop("a");
    wait_until_gone(pid).await;
}

#[tokio::test]
async fn what_a_finished_command_left_behind_is_killed() {
    let (mut stream, _running, _edge) = builtin(true).await;
    let pid = grandchild(&mut stream, exec("a", "sleep 600 & echo $!")).await;
    assert!(matches!(stream.result().await, Outcome::Succeeded(_)));
    wait_until_gone(pid).await;
}
