//! Random calls through a shared breaker and through core's, side by side.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::breaker::{Breaker, BreakerSettings, Ticket};
use lockgate_core::time::Timestamp;

use lockgate_ports::counters::{BreakerAnswer, CallOutcome, Counters};

/// An open breaker is half-open at once and no probe is ever given up, so that the time between two calls decides nothing.
const TIMELESS: BreakerSettings = BreakerSettings {
    fail_budget: 3,
    open_for: Duration::ZERO,
    probes_max: 3,
    close_after: 2,
    probe_ttl: Duration::from_secs(3600),
};

/// Executes the words on a fresh breaker of this name, alternating between the handles.
pub async fn does_what_core_does(handles: &[Arc<dyn Counters>], name: &str, words: &[u64]) {
    let now = Timestamp::ZERO;
    let mut model = Breaker::new(TIMELESS);
    let mut calls: Vec<(Ticket, Ticket)> = Vec::new();
    for (turn, word) in words.iter().enumerate() {
        let counters = &handles[turn % handles.len()];
        let standing = if word % 2 == 0 || calls.is_empty() {
            let (asked, standing) = counters.ask(name, &TIMELESS).await.expect("the counters answer");
            match (asked, model.ask(now)) {
                (BreakerAnswer::Go(theirs), Ok(ours)) => calls.push((theirs, ours)),
                (BreakerAnswer::Refused { .. }, Err(_)) => {}
                (theirs, ours) => panic!("turn {turn}: {theirs:?} but {ours:?}"),
            }
            standing
        } else {
            let (theirs, ours) = calls.swap_remove((word >> 3) as usize % calls.len());
            let outcome = if word & 4 == 0 { CallOutcome::Failed } else { CallOutcome::Succeeded };
            match outcome {
                CallOutcome::Succeeded => model.succeeded(ours),
                CallOutcome::Failed => model.failed(ours, now),
            }
            counters.tell(name, &TIMELESS, theirs, outcome).await.expect("the counters answer")
        };
        assert_eq!((standing.state, standing.failures), (model.state(now), model.failures(now)), "turn {turn}");
    }
}
