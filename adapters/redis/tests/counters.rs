//! The counters on a real server against the list every adapter must pass, and what operators see of them.

use std::sync::Arc;
use std::time::Duration;

use lockgate_conformance::counters::Stage;
use lockgate_conformance::counters::random::does_what_core_does;
use lockgate_core::breaker::{BreakerSettings, BreakerState};
use lockgate_ports::{BreakerAnswer, CallOutcome, Counters, WorkersSnapshot};
use lockgate_redis::{ConnectError, GuardMark, MarkLives, Options, RedisCounters, RedisGuard};
use lockgate_testbed::{Redis, wait_until};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(redis: &Redis, installation: &str) -> Arc<dyn Counters> {
    connect_within(redis, installation, RESPONSE_TIMEOUT).await
}

async fn connect_within(redis: &Redis, installation: &str, within: Duration) -> Arc<dyn Counters> {
    let options = Options { response_timeout: within, ..Options::new(redis.url(), installation) };
    Arc::new(RedisCounters::connect(&options).await.expect("a good address"))
}

async fn stage() -> Stage {
    let redis = Redis::start().expect("a server");
    let (a, b) = (connect(&redis, "default").await, connect(&redis, "default").await);
    Stage::new(a, b, move |span| {
        let end = server_time(&redis) + span;
        wait_until("time passes on the server", span + PATIENCE, || server_time(&redis) >= end).expect("it does");
    })
}

/// By the clock the scripts go by.
fn server_time(redis: &Redis) -> Duration {
    let answer = redis.command("TIME").expect("an answer");
    let numbers: Vec<u64> = answer.lines().filter_map(|line| line.parse().ok()).collect();
    let [seconds, micros] = numbers[..] else { panic!("{answer:?}") };
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

lockgate_conformance::counters_conformance! { stage }

/// What redis-cli would show.
fn shown(redis: &Redis, command: &str) -> String {
    let answer = redis.command(command).expect("an answer");
    let last = answer.lines().last().unwrap_or_default();
    last.trim_start_matches(':').to_owned()
}

async fn fail(counters: &dyn Counters, name: &str) {
    let settings = BreakerSettings::default();
    let (asked, _) = counters.ask(name, &settings).await.expect("an answer");
    let BreakerAnswer::Go(ticket) = asked else { panic!("{asked:?}") };
    counters.tell(name, &settings, ticket, CallOutcome::Failed).await.expect("an answer");
}

#[tokio::test]
async fn operators_read_failures_and_the_time_left_by_the_names_they_know() {
    let redis = Redis::start().expect("a server");
    let counters = connect(&redis, "default").await;
    fail(&*counters, "safety").await;
    assert_eq!(shown(&redis, "GET lockgate:cb:safety:failures"), "1");
    let left = || shown(&redis, "TTL lockgate:cb:safety:failures").parse::<i64>().expect("seconds");
    assert!((1..=30).contains(&left()), "a failure counts for as long as the breaker would stay open: {}", left());
    redis.command("EXPIRE lockgate:cb:safety:failures 5").expect("an answer");
    fail(&*counters, "safety").await;
    assert!((1..=5).contains(&left()), "from the first failure on: {}", left());
    redis.command("EXPIRE lockgate:cb:safety:failures 86400").expect("an answer");
    fail(&*counters, "safety").await;
    assert_eq!(shown(&redis, "GET lockgate:cb:safety:failures"), "3");
    let left: u64 = shown(&redis, "TTL lockgate:cb:safety:failures").parse().expect("seconds");
    assert!((1..=30).contains(&left), "{left}");
    fail(&*counters, "safety:output").await;
    assert_eq!(shown(&redis, "GET lockgate:cb:safety:output:failures"), "1");
}

#[tokio::test]
async fn deleting_the_failures_lets_probes_through_at_once() {
    let redis = Redis::start().expect("a server");
    let counters = connect(&redis, "default").await;
    for _ in 0..3 {
        fail(&*counters, "safety").await;
    }
    let look = async || counters.look("safety", &BreakerSettings::default()).await.expect("an answer").state;
    assert_eq!(look().await, BreakerState::Open);
    redis.command("DEL lockgate:cb:safety:failures").expect("an answer");
    assert_eq!(look().await, BreakerState::HalfOpen);
    let (asked, _) = counters.ask("safety", &BreakerSettings::default()).await.expect("an answer");
    assert!(matches!(asked, BreakerAnswer::Go(_)), "{asked:?}");
}

#[tokio::test]
async fn totals_add_up_over_replicas_and_installations_keep_apart() {
    let redis = Redis::start().expect("a server");
    let (a, b) = (connect(&redis, "default").await, connect(&redis, "default").await);
    let staging = connect(&redis, "staging").await;
    a.add("scheduler:input_fail_open_total", 2).await.expect("added");
    b.add("scheduler:input_fail_open_total", 3).await.expect("added");
    staging.add("scheduler:input_fail_open_total", 9).await.expect("added");
    assert_eq!(shown(&redis, "GET lockgate:scheduler:input_fail_open_total"), "5");
    assert_eq!(shown(&redis, "GET staging:lockgate:scheduler:input_fail_open_total"), "9");
    fail(&*staging, "safety").await;
    assert_eq!(shown(&redis, "EXISTS lockgate:cb:safety:failures"), "0");
}

#[tokio::test]
async fn operators_find_the_snapshot_of_workers_and_its_writer_by_the_names_they_know() {
    let redis = Redis::start().expect("a server");
    let (counters, staging) = (connect(&redis, "default").await, connect(&redis, "staging").await);
    counters.keep_workers(&WorkersSnapshot::default()).await.expect("kept");
    assert_eq!(shown(&redis, "GET sys:workers:snapshot"), r#"{"workers":[]}"#);
    let left: u64 = shown(&redis, "TTL sys:workers:snapshot").parse().expect("seconds");
    assert!((1..=30).contains(&left), "{left}");
    assert_eq!(staging.kept_workers().await.expect("an answer"), None, "installations keep apart");
    let writer = "scheduler:snapshot:writer";
    assert_eq!(counters.hold(&[writer], "edge-1", Duration::from_secs(10)).await.expect("an answer"), [true]);
    assert_eq!(shown(&redis, "GET lockgate:scheduler:snapshot:writer"), "edge-1");
    assert_eq!(staging.hold(&[writer], "edge-2", Duration::from_secs(10)).await.expect("an answer"), [true]);
}

#[tokio::test]
async fn a_snapshot_of_workers_that_cannot_be_read_is_none() {
    let redis = Redis::start().expect("a server");
    let counters = connect(&redis, "default").await;
    redis.command("SET sys:workers:snapshot of-another-release").expect("an answer");
    assert_eq!(counters.kept_workers().await.expect("an answer"), None);
}

#[tokio::test]
async fn keys_of_one_script_share_a_slot() {
    let redis = Redis::start().expect("a server");
    let counters = connect(&redis, "default").await;
    fail(&*counters, "safety").await;
    let keys = redis.command("KEYS *safety*").expect("an answer");
    let keys: Vec<&str> = keys.lines().filter(|line| line.contains("lockgate")).collect();
    assert!(keys.len() >= 2, "{keys:?}");
    // A cluster refuses a script whose keys differ in this.
    let tag =
        |key: &str| key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or(key, |(tag, _)| tag).to_owned();
    assert!(keys.iter().all(|key| tag(key) == "lockgate:cb:safety:failures"), "{keys:?}");
}

#[tokio::test]
async fn a_ticket_from_before_a_wipe_fits_no_breaker_after_it() {
    let redis = Redis::start().expect("a server");
    let (counters, settings) = (connect(&redis, "default").await, BreakerSettings::default());
    let (BreakerAnswer::Go(ticket), _) = counters.ask("safety", &settings).await.expect("an answer") else {
        panic!("refused")
    };
    redis.command("FLUSHALL").expect("an answer");
    fail(&*counters, "safety").await;
    let standing = counters.tell("safety", &settings, ticket, CallOutcome::Failed).await.expect("an answer");
    assert_eq!(standing.failures, 1);
}

#[tokio::test]
async fn a_server_that_hangs_costs_one_wait_and_comes_back_by_itself() {
    let redis = Redis::start().expect("a server");
    let within = Duration::from_millis(300);
    let counters = connect_within(&redis, "default", within).await;
    counters.add("seen", 1).await.expect("added");
    redis.pause();
    counters.add("seen", 1).await.expect_err("it hangs");
    // Far fewer waits than calls: 100 of them would take 30 s.
    let calls = async {
        for _ in 0..100 {
            counters.add("seen", 1).await.expect_err("it hangs");
        }
    };
    tokio::time::timeout(within, calls).await.expect("nobody waits again");
    redis.resume();
    wait_back(&*counters).await;
}

#[tokio::test]
async fn a_server_that_is_killed_and_started_again_is_found() {
    let mut redis = Redis::start().expect("a server");
    let counters = connect(&redis, "default").await;
    redis.kill();
    let away = counters.add("seen", 1).await.expect_err("nobody is there");
    assert!(away.to_string().contains("this process goes on"), "{away}");
    redis.restart().expect("started");
    wait_back(&*counters).await;
}

async fn wait_back(counters: &dyn Counters) {
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    let back = async {
        while counters.add("seen", 1).await.is_err() {
            tick.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, back).await.expect("it is back");
}

#[tokio::test]
async fn a_server_that_was_away_at_the_start_is_used_when_it_comes() {
    let mut redis = Redis::start().expect("a server");
    redis.kill();
    let counters = connect(&redis, "default").await;
    counters.add("seen", 1).await.expect_err("nobody is there");
    redis.restart().expect("started");
    wait_back(&*counters).await;
}

#[tokio::test]
async fn what_cannot_be_an_address_or_an_installation_is_refused() {
    let connect = async |url, installation| RedisCounters::connect(&Options::new(url, installation)).await;
    assert!(matches!(connect("nonsense", "default").await, Err(ConnectError::Url(_))));
    assert!(matches!(connect("redis://127.0.0.1:1/", "a{b}").await, Err(ConnectError::Installation(_))));
}

#[tokio::test]
async fn a_message_is_in_one_hand_over_all_processes_and_known_when_it_is_done() {
    let redis = Redis::start().expect("a server");
    let lives = MarkLives { in_hand: PATIENCE, done: PATIENCE };
    let options = Options { response_timeout: RESPONSE_TIMEOUT, ..Options::new(redis.url(), "default") };
    let one = RedisGuard::connect(&options, lives).await.expect("a good address");
    let other = RedisGuard::connect(&options, lives).await.expect("a good address");
    let ids = ["a".to_owned(), "b".to_owned()];
    assert_eq!(one.begin(&ids).await.expect("there"), [GuardMark::Ours, GuardMark::Ours]);
    assert_eq!(other.begin(&ids).await.expect("there"), [GuardMark::InHand, GuardMark::InHand]);
    one.finish(&ids[..1]).await.expect("there");
    one.release(&ids[1..]).await.expect("there");
    assert_eq!(other.begin(&ids).await.expect("there"), [GuardMark::Done, GuardMark::Ours]);
    assert_eq!(redis.command("EXISTS lockgate:bus:processed:a").expect("answered"), ":1\r\n", "operators know the name");
    let in_hand = |id: &str| redis.command(&format!("PTTL {{lockgate:bus:processed:{id}}}:in-flight")).expect("answered");
    assert_eq!(in_hand("a"), ":-2\r\n", "a repeat of what is done is in no hand");
    redis.command("PEXPIRE {lockgate:bus:processed:b}:in-flight 5000").expect("answered");
    assert_eq!(one.begin(&ids[1..]).await.expect("there"), [GuardMark::InHand]);
    let left: i64 = in_hand("b").trim().trim_start_matches(':').parse().expect("milliseconds");
    assert!((1..=5_000).contains(&left), "a repeat of what is in hand leaves its mark as it is: {left}");
    let left = redis.command("PTTL lockgate:bus:processed:a").expect("answered");
    assert!(!left.starts_with(":-"), "it is forgotten by itself: {left}");
}

#[test]
fn random_calls_over_two_handles_do_what_core_does() {
    use proptest::prelude::*;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let redis = Redis::start().expect("a server");
    let handles = runtime.block_on(async { [connect(&redis, "default").await, connect(&redis, "default").await] });
    let case = std::cell::Cell::new(0);
    let words = proptest::collection::vec(any::<u64>(), 1..80);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) };
    let held = proptest::test_runner::TestRunner::new(config).run(&words, |words| {
        case.set(case.get() + 1);
        runtime.block_on(does_what_core_does(&handles, &format!("case-{}", case.get()), &words));
        Ok(())
    });
    held.expect("the same answers");
}

#[tokio::test]
async fn queues_are_shown_as_lists_of_their_length() {
    let redis = Redis::start().expect("a server");
    let counters = connect(&redis, "default").await;
    let show = async |length: u64| counters.show_lengths(&[("cpu".into(), length)]).await.expect("shown");
    for (length, seen) in [(3, "3"), (2_500, "2500"), (7, "7"), (1_000_000, "10000"), (0, "0")] {
        show(length).await;
        assert_eq!(shown(&redis, "LLEN lockgate:queue:cpu"), seen, "as KEDA asks for it");
    }
    show(5).await;
    let left: u64 = shown(&redis, "TTL lockgate:queue:cpu").parse().expect("seconds");
    assert!((1..=60).contains(&left), "what nobody shows anew goes: {left}");
}
