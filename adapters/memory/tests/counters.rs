//! The in-memory counters against the list every adapter must pass.

use std::sync::Arc;

use lockgate_conformance::counters::Stage;
use lockgate_memory::MemoryCounters;
use lockgate_model::ManualClock;
use lockgate_ports::Counters;

async fn stage() -> Stage {
    let clock = Arc::new(ManualClock::default());
    let counters = Arc::new(MemoryCounters::new(clock.clone()));
    Stage::new(counters.clone(), counters, move |span| clock.advance(span))
}

lockgate_conformance::counters_conformance! { stage }

#[tokio::test]
async fn totals_add_up() {
    let counters = MemoryCounters::new(Arc::new(ManualClock::default()));
    counters.add("seen", 2).await.expect("added");
    counters.add("seen", 3).await.expect("added");
    assert_eq!((counters.total("seen"), counters.total("unseen")), (5, 0));
}
