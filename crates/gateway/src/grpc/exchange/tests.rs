use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::ids::ID_BYTES_MAX;
use lockgate_core::job::{Env, submit};
use lockgate_core::limits::{INVENTORY_MAX, Limits};
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::retry::Jitter;
use lockgate_core::verdict::{Access, Constraints, Decision, Judgement, Verdict};

use super::*;

fn assignment(token: &str, payload_bytes: usize) -> Assignment {
    let payload = Json::trusted(format!("\"{}\"", "x".repeat(payload_bytes)));
    assigned(token, NewJob { payload: Some(payload), ..NewJob::default() })
}

fn assigned(token: &str, new: NewJob) -> Assignment {
    judged(token, new, Judgement::UNASKED)
}

fn judged(token: &str, new: NewJob, judgement: Judgement) -> Assignment {
    let new = NewJob { topic: "job.x".into(), ..new };
    let caller = Caller::new("t", "a");
    let request = JobRequest::check(new, &caller, || "job".into()).expect("valid");
    let env = Env {
        now: Timestamp::ZERO,
        token: token.into(),
        jitter: Jitter::from_bits(0),
        limits: &Limits::default(),
        timeouts: Arc::default(),
        judgement,
    };
    let hash = request.hash();
    Assignment { number: 1, job: Arc::new(submit(Arc::new(request), hash, &env).job), timeout: Duration::ZERO, trace: None }
}

fn merged(items: Vec<ToWorker>) -> Vec<v1::ServerMessage> {
    let mut ready = VecDeque::new();
    merge(items.into_iter(), MESSAGE_BYTES, &mut ready);
    ready.into()
}

fn stopped(token: &str) -> ToWorker {
    ToWorker::Stop { job_id: "job".into(), token: token.into(), reason: "cancelled".into() }
}

#[test]
fn what_waits_becomes_one_message() {
    let messages = merged(vec![
        ToWorker::Assign(vec![assignment("a", 1), assignment("b", 1)]),
        ToWorker::BeatAck { number: 1, lease_age: Duration::from_millis(30) },
        ToWorker::Acks(vec![("c".into(), Acknowledged::Stored)]),
        ToWorker::Assign(vec![assignment("d", 1)]),
        ToWorker::Acks(vec![("e".into(), Acknowledged::Superseded)]),
        ToWorker::BeatAck { number: 2, lease_age: Duration::from_millis(40) },
    ]);
    let [message] = messages.as_slice() else { panic!("one message, not {}", messages.len()) };
    assert_eq!(message.assignments.iter().map(|a| a.token.as_str()).collect::<Vec<_>>(), ["a", "b", "d"]);
    assert_eq!(
        message.acks.iter().map(|a| (a.token.as_str(), a.superseded)).collect::<Vec<_>>(),
        [("c", false), ("e", true)]
    );
    assert_eq!(message.beat_ack, Some(v1::BeatAck { number: 2, lease_age_ms: 40 }));
}

#[test]
fn a_stop_takes_back_what_was_not_sent_yet() {
    let messages = merged(vec![ToWorker::Assign(vec![assignment("a", 1), assignment("b", 1)]), stopped("a")]);
    assert_eq!(messages[0].assignments.iter().map(|a| a.token.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(messages[0].stops[0].token, "a");
}

#[test]
fn a_revoke_follows_its_assignment_and_leaves_it_in_the_message() {
    let revoked = ToWorker::Revoke { job_id: "job".into(), token: "b".into() };
    let messages = merged(vec![ToWorker::Assign(vec![assignment("a", 1), assignment("b", 1)]), revoked, ToWorker::Drain]);
    let [message] = messages.as_slice() else { panic!("one message, not {}", messages.len()) };
    assert_eq!(message.assignments.iter().map(|a| a.token.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(message.revokes, [v1::Revoke { job_id: "job".to_owned(), token: "b".to_owned() }]);
    assert!(message.drain);
}

fn greeting(region: &str, prefetch: u32) -> v1::Hello {
    let labels = [("region".to_owned(), "by label".to_owned())].into();
    v1::Hello { region: region.to_owned(), prefetch, labels, ..v1::Hello::default() }
}

#[test]
fn the_region_is_a_label_and_wins_over_one() {
    let region = |said: &str| hello(greeting(said, PREFETCH_MAX), None).expect("valid").profile.labels["region"].clone();
    assert_eq!((&*region("eu-west"), &*region("")), ("eu-west", "by label"));
}

#[test]
fn what_a_worker_may_keep_waiting_is_bounded() {
    assert_eq!(hello(greeting("", PREFETCH_MAX), None).expect("valid").prefetch, PREFETCH_MAX);
    let refused = hello(greeting(&"x".repeat(VALUE_BYTES_MAX + 1), PREFETCH_MAX + 1), None);
    let Err(ApiError::Invalid(errors)) = refused else { panic!("{refused:?}") };
    assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), ["region", "prefetch"]);
}

/// The fields that are refused.
fn refused<T: std::fmt::Debug>(said: Result<T, ApiError>) -> Vec<String> {
    let Err(ApiError::Invalid(errors)) = said else { panic!("{said:?}") };
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn what_a_worker_says_it_holds_is_bounded() {
    let held = |count: usize| vec![v1::Held { job_id: "j".into(), token: "t".into(), started_at_ms: None }; count];
    let greeted = |count| hello(v1::Hello { inventory: held(count), ..greeting("", 0) }, None);
    assert_eq!(greeted(INVENTORY_MAX).expect("valid").inventory.len(), INVENTORY_MAX);
    assert_eq!(refused(greeted(INVENTORY_MAX + 1)), ["inventory"]);
    let beating = |count| {
        let beat = Some(v1::Beat { inventory: held(count), ..v1::Beat::default() });
        from_worker(v1::WorkerMessage { beat, ..v1::WorkerMessage::default() }, Timestamp::ZERO)
    };
    assert!(beating(INVENTORY_MAX).is_ok());
    assert_eq!(refused(beating(INVENTORY_MAX + 1)), ["beat.inventory"]);
}

#[test]
fn an_id_that_nobody_made_is_refused_with_its_field() {
    let long = || "x".repeat(ID_BYTES_MAX + 1);
    let held = |job_id: String, token: String| vec![v1::Held { job_id, token, started_at_ms: None }];
    let start = |job_id: String, token: String| vec![v1::Start { job_id, token }];
    let result = |job_id: String, token: String| vec![v1::Result { job_id, token, outcome: None, ..v1::Result::default() }];
    let beat = |inventory| Some(v1::Beat { inventory, ..v1::Beat::default() });
    let none = v1::WorkerMessage::default;
    let cases = [
        (v1::WorkerMessage { beat: beat(held(long(), String::new())), ..none() }, "beat.inventory"),
        (v1::WorkerMessage { beat: beat(held(String::new(), long())), ..none() }, "beat.inventory"),
        (v1::WorkerMessage { starts: start(long(), String::new()), ..none() }, "starts.job_id"),
        (v1::WorkerMessage { starts: start(String::new(), long()), ..none() }, "starts.token"),
        (v1::WorkerMessage { results: result(long(), String::new()), ..none() }, "results.job_id"),
        (v1::WorkerMessage { results: result(String::new(), long()), ..none() }, "results.token"),
        (v1::WorkerMessage { let_go: vec![long()], ..none() }, "let_go"),
    ];
    for (message, field) in cases {
        assert_eq!(refused(from_worker(message, Timestamp::ZERO)), [field]);
    }
    let longest = "x".repeat(ID_BYTES_MAX);
    let fine = v1::WorkerMessage { results: result(longest.clone(), longest), ..none() };
    assert_eq!(from_worker(fine, Timestamp::ZERO).expect("valid").results.len(), 1);
    let greeted = hello(v1::Hello { inventory: held(long(), String::new()), ..greeting("", 0) }, None);
    assert_eq!(refused(greeted), ["inventory"]);
}

#[test]
fn more_than_all_of_a_machine_is_all_of_it() {
    let wire = v1::Beat { cpu_load: Some(250), gpu_utilization: Some(100), active_jobs: 3, ..v1::Beat::default() };
    let message = v1::WorkerMessage { beat: Some(wire), ..v1::WorkerMessage::default() };
    let beat = from_worker(message, Timestamp::ZERO).expect("valid").beat.expect("a beat");
    assert_eq!((beat.load, beat.active_jobs), (Load { cpu: Some(100), gpu: Some(100), memory: None }, 3));
}

#[test]
fn payloads_close_a_message_before_it_grows_too_large() {
    let batch = ["a", "b", "c", "d", "e"].map(|token| assignment(token, MESSAGE_BYTES / 3)).into();
    let sizes: Vec<usize> = merged(vec![ToWorker::Assign(batch)]).iter().map(|m| m.assignments.len()).collect();
    assert_eq!(sizes, [2, 2, 1]);
}

#[test]
fn labels_and_env_count_as_well_as_payloads() {
    let entries: BTreeMap<String, String> =
        (0..ENTRIES_MAX).map(|n| (format!("n{n}"), "x".repeat(VALUE_BYTES_MAX))).collect();
    let job = || NewJob { labels: entries.clone(), env: entries.clone(), ..NewJob::default() };
    let batch = (0..20).map(|n| assigned(&format!("t{n}"), job())).collect();
    let messages = merged(vec![ToWorker::Assign(batch)]);
    assert_eq!(messages.iter().map(|message| message.assignments.len()).sum::<usize>(), 20);
    let largest = messages.iter().map(Message::encoded_len).max();
    assert!(largest < Some(2 * MESSAGE_BYTES), "{largest:?}");
}

fn sent(new: NewJob, verdict: Verdict) -> v1::Assignment {
    assign(&judged("a", new, Judgement::Decided(Arc::new(verdict))))
}

#[test]
fn a_worker_is_told_the_conditions_it_must_keep() {
    let plain = Verdict::plain(Decision::AllowWithConstraints, "r", "why", "s".into());
    let told = sent(NewJob::default(), plain.clone());
    assert_eq!((told.network, told.exec), (None, None));
    let constraints = Constraints { network: Some(Access::Deny), exec: Some(Access::Allow), ..Constraints::default() };
    let told = sent(NewJob::default(), plain.but(|verdict| verdict.constraints = constraints));
    assert_eq!((told.network, told.exec), (Some(false), Some(true)));
}

#[test]
fn a_bypass_is_told_to_the_worker() {
    let labels = BTreeMap::from([("team".to_owned(), "blue".to_owned())]);
    let told = sent(NewJob { labels, ..NewJob::default() }, Verdict::bypass("kernel away", "s".into()));
    assert_eq!(told.labels["safety_bypassed"], "true");
    assert!(told.labels["safety_bypass_reason"].contains("kernel away"), "{:?}", told.labels);
}
