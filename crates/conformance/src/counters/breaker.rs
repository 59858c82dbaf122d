//! Circuit breakers that replicas share.

use std::time::Duration;

use lockgate_core::breaker::{BreakerSettings, BreakerState, Ticket};

use super::Stage;
use lockgate_ports::counters::{BreakerAnswer, BreakerStanding, CallOutcome, Counters};

const NAME: &str = "safety";
/// Short enough to wait for in real time.
const SOON: Duration = Duration::from_millis(100);
/// Longer than any case takes, on a busy machine too.
const LONG: Duration = Duration::from_secs(600);

/// Opens for long.
fn slow() -> BreakerSettings {
    BreakerSettings { open_for: LONG, probe_ttl: LONG, ..BreakerSettings::default() }
}

/// Half-open soon after it opened.
fn quick() -> BreakerSettings {
    BreakerSettings { open_for: SOON, ..slow() }
}

async fn ask(counters: &dyn Counters, settings: &BreakerSettings) -> (BreakerAnswer, BreakerStanding) {
    counters.ask(NAME, settings).await.expect("the counters answer")
}

async fn admitted(counters: &dyn Counters, settings: &BreakerSettings) -> Ticket {
    match ask(counters, settings).await {
        (BreakerAnswer::Go(ticket), _) => ticket,
        (refused, standing) => panic!("{refused:?}, {standing:?}"),
    }
}

async fn tell(counters: &dyn Counters, settings: &BreakerSettings, ticket: Ticket, outcome: CallOutcome) -> BreakerStanding {
    counters.tell(NAME, settings, ticket, outcome).await.expect("the counters answer")
}

async fn call(counters: &dyn Counters, settings: &BreakerSettings, outcome: CallOutcome) -> BreakerStanding {
    let ticket = admitted(counters, settings).await;
    tell(counters, settings, ticket, outcome).await
}

async fn open(stage: &Stage, settings: &BreakerSettings) {
    call(&*stage.a, settings, CallOutcome::Failed).await;
    call(&*stage.b, settings, CallOutcome::Failed).await;
    let standing = call(&*stage.a, settings, CallOutcome::Failed).await;
    assert_eq!(standing.state, BreakerState::Open, "{standing:?}");
}

/// Open, and then its time is over.
async fn half_open(stage: &Stage, settings: &BreakerSettings) {
    open(stage, settings).await;
    stage.pass(settings.open_for);
}

pub async fn three_failures_over_two_handles_open_it_for_both(stage: Stage) {
    open(&stage, &slow()).await;
    for counters in [&stage.a, &stage.b] {
        let (asked, standing) = ask(&**counters, &slow()).await;
        assert!(matches!(asked, BreakerAnswer::Refused { .. }), "{asked:?}");
        assert_eq!((standing.state, standing.failures), (BreakerState::Open, 3));
    }
}

pub async fn a_success_in_between_starts_the_count_over(stage: Stage) {
    call(&*stage.a, &slow(), CallOutcome::Failed).await;
    let standing = call(&*stage.b, &slow(), CallOutcome::Failed).await;
    assert_eq!((standing.state, standing.failures), (BreakerState::Closed, 2));
    let standing = call(&*stage.b, &slow(), CallOutcome::Succeeded).await;
    assert_eq!((standing.state, standing.failures), (BreakerState::Closed, 0));
    call(&*stage.a, &slow(), CallOutcome::Failed).await;
    let standing = call(&*stage.a, &slow(), CallOutcome::Failed).await;
    assert_eq!((standing.state, standing.failures), (BreakerState::Closed, 2));
}

pub async fn an_open_breaker_says_when_to_ask_again(stage: Stage) {
    open(&stage, &slow()).await;
    let (asked, standing) = ask(&*stage.b, &slow()).await;
    let BreakerAnswer::Refused { again_in } = asked else { panic!("{asked:?}") };
    assert!(again_in > LONG / 2 && again_in <= LONG, "{again_in:?}");
    assert_eq!(standing.probes_in, Some(again_in));
}

pub async fn at_most_three_probes_are_in_flight_over_all_handles(stage: Stage) {
    half_open(&stage, &quick()).await;
    let first = admitted(&*stage.a, &quick()).await;
    admitted(&*stage.b, &quick()).await;
    admitted(&*stage.a, &quick()).await;
    for counters in [&stage.a, &stage.b] {
        let (asked, standing) = ask(&**counters, &quick()).await;
        assert!(matches!(asked, BreakerAnswer::Refused { again_in } if again_in > LONG / 2), "{asked:?}");
        assert_eq!((standing.state, standing.probes_in), (BreakerState::HalfOpen, None));
    }
    tell(&*stage.a, &quick(), first, CallOutcome::Succeeded).await;
    admitted(&*stage.b, &quick()).await;
}

pub async fn two_successful_probes_close_it_for_all(stage: Stage) {
    half_open(&stage, &quick()).await;
    let (first, second) = (admitted(&*stage.a, &quick()).await, admitted(&*stage.b, &quick()).await);
    assert_eq!(tell(&*stage.a, &quick(), first, CallOutcome::Succeeded).await.state, BreakerState::HalfOpen);
    let standing = tell(&*stage.b, &quick(), second, CallOutcome::Succeeded).await;
    assert_eq!(standing, BreakerStanding { state: BreakerState::Closed, failures: 0, probes_in: None });
    for _ in 0..10 {
        admitted(&*stage.a, &quick()).await;
    }
}

pub async fn a_failed_probe_opens_it_again_for_the_whole_time(stage: Stage) {
    half_open(&stage, &quick()).await;
    let (first, second) = (admitted(&*stage.a, &quick()).await, admitted(&*stage.b, &quick()).await);
    tell(&*stage.a, &quick(), first, CallOutcome::Succeeded).await;
    let standing = tell(&*stage.b, &quick(), second, CallOutcome::Failed).await;
    assert_eq!(standing, BreakerStanding { state: BreakerState::Open, failures: 3, probes_in: Some(SOON) });
    stage.pass(quick().open_for);
    let standing = call(&*stage.a, &quick(), CallOutcome::Succeeded).await;
    assert_eq!(standing.state, BreakerState::HalfOpen, "successes before the failure count no more");
}

pub async fn a_probe_nobody_answers_for_is_given_up(stage: Stage) {
    let settings = BreakerSettings { probe_ttl: SOON * 10, ..quick() };
    half_open(&stage, &settings).await;
    for counters in [&stage.a, &stage.b, &stage.a] {
        admitted(&**counters, &settings).await;
    }
    let (asked, _) = ask(&*stage.b, &settings).await;
    assert!(matches!(asked, BreakerAnswer::Refused { again_in } if again_in <= settings.probe_ttl), "{asked:?}");
    stage.pass(settings.probe_ttl);
    admitted(&*stage.b, &settings).await;
}

pub async fn answers_to_calls_from_before_change_nothing(stage: Stage) {
    let (early, also_early) = (admitted(&*stage.a, &quick()).await, admitted(&*stage.b, &quick()).await);
    half_open(&stage, &quick()).await;
    let probe = admitted(&*stage.b, &quick()).await;
    let standing = tell(&*stage.a, &quick(), early, CallOutcome::Failed).await;
    assert_eq!(standing.state, BreakerState::HalfOpen, "a late failure does not open it");
    tell(&*stage.b, &quick(), probe, CallOutcome::Succeeded).await;
    let standing = tell(&*stage.b, &quick(), also_early, CallOutcome::Succeeded).await;
    assert_eq!(standing.state, BreakerState::HalfOpen, "a late success is no second probe");
    let standing = call(&*stage.a, &quick(), CallOutcome::Succeeded).await;
    assert_eq!(standing.state, BreakerState::Closed);
    assert_eq!(tell(&*stage.b, &quick(), probe, CallOutcome::Failed).await.failures, 0);
}

pub async fn breakers_of_other_names_are_others(stage: Stage) {
    open(&stage, &slow()).await;
    let (asked, standing) = stage.b.ask("safety:output", &slow()).await.expect("the counters answer");
    assert!(matches!(asked, BreakerAnswer::Go(_)), "{asked:?}");
    assert_eq!((standing.state, standing.failures), (BreakerState::Closed, 0));
}

pub async fn looking_changes_nothing(stage: Stage) {
    let look = async || stage.b.look(NAME, &quick()).await.expect("the counters answer");
    assert_eq!(look().await, BreakerStanding { state: BreakerState::Closed, failures: 0, probes_in: None });
    call(&*stage.a, &quick(), CallOutcome::Failed).await;
    assert_eq!(look().await.failures, 1);
    call(&*stage.a, &quick(), CallOutcome::Failed).await;
    call(&*stage.a, &quick(), CallOutcome::Failed).await;
    stage.pass(quick().open_for);
    for _ in 0..5 {
        assert_eq!(look().await, BreakerStanding { state: BreakerState::HalfOpen, failures: 3, probes_in: None });
    }
    for _ in 0..3 {
        admitted(&*stage.a, &quick()).await;
    }
}
