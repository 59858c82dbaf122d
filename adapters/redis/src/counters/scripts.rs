//! The scripts of the counters, each atomic.

use std::sync::LazyLock;

use redis::Script;

const BREAKER: &str = include_str!("../../scripts/counters/breaker.lua");

pub(super) struct CounterScripts {
    pub(super) ask: Script,
    pub(super) tell: Script,
    pub(super) look: Script,
    pub(super) places: Script,
    pub(super) take: Script,
    pub(super) lengths: Script,
    pub(super) hold: Script,
    pub(super) let_go: Script,
    pub(super) kept: Script,
}

pub(super) static SCRIPTS: LazyLock<CounterScripts> = LazyLock::new(|| CounterScripts {
    ask: of_breaker(include_str!("../../scripts/counters/ask.lua")),
    tell: of_breaker(include_str!("../../scripts/counters/tell.lua")),
    look: of_breaker(include_str!("../../scripts/counters/look.lua")),
    places: Script::new(include_str!("../../scripts/counters/places.lua")),
    take: Script::new(include_str!("../../scripts/counters/take.lua")),
    lengths: Script::new(include_str!("../../scripts/counters/lengths.lua")),
    hold: Script::new(include_str!("../../scripts/counters/hold.lua")),
    let_go: Script::new(include_str!("../../scripts/counters/let_go.lua")),
    kept: Script::new(include_str!("../../scripts/counters/kept.lua")),
});

fn of_breaker(entry: &str) -> Script {
    Script::new(&[BREAKER, entry].concat())
}
