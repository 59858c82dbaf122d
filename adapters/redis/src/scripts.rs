//! The scripts of the lanes, each composed of the shared rules and one entry point.

use std::sync::LazyLock;

use redis::Script;

/// The shared rules, each after those that it uses.
const RULES: &[&str] = &[
    include_str!("../scripts/base.lua"),
    include_str!("../scripts/ring.lua"),
    include_str!("../scripts/bucket.lua"),
    include_str!("../scripts/line.lua"),
    include_str!("../scripts/gates.lua"),
    include_str!("../scripts/shares.lua"),
    include_str!("../scripts/lanes.lua"),
    include_str!("../scripts/window.lua"),
    include_str!("../scripts/queue.lua"),
    include_str!("../scripts/standing.lua"),
    include_str!("../scripts/holds.lua"),
];
const FINISH: &str = include_str!("../scripts/finish.lua");
const LOOK_ONLY: &str = "return main()\n";

pub(crate) struct LoadedScript {
    pub(crate) script: Script,
    pub(crate) code: String,
}

pub(crate) struct LaneScripts {
    pub(crate) adopt: LoadedScript,
    pub(crate) claim: LoadedScript,
    pub(crate) demand: LoadedScript,
    pub(crate) depths: LoadedScript,
    pub(crate) feed: LoadedScript,
    pub(crate) hold: LoadedScript,
    pub(crate) holding: LoadedScript,
    pub(crate) hungry: LoadedScript,
    pub(crate) limits: LoadedScript,
    pub(crate) offer: LoadedScript,
    pub(crate) rebuild: LoadedScript,
    pub(crate) recount: LoadedScript,
    pub(crate) release: LoadedScript,
    pub(crate) settle: LoadedScript,
    pub(crate) shared: LoadedScript,
    pub(crate) taken: LoadedScript,
}

pub(crate) static SCRIPTS: LazyLock<LaneScripts> = LazyLock::new(|| LaneScripts {
    adopt: entry(&[include_str!("../scripts/adopt.lua")]),
    claim: changes(&[
        include_str!("../scripts/turns.lua"),
        include_str!("../scripts/seats.lua"),
        include_str!("../scripts/claim.lua"),
    ]),
    demand: looks(include_str!("../scripts/demand.lua")),
    depths: looks(include_str!("../scripts/depths.lua")),
    feed: changes(&[include_str!("../scripts/feed.lua")]),
    hold: changes(&[include_str!("../scripts/hold.lua")]),
    holding: looks(include_str!("../scripts/holding.lua")),
    hungry: changes(&[include_str!("../scripts/hungry.lua")]),
    limits: looks(include_str!("../scripts/limits.lua")),
    offer: changes(&[include_str!("../scripts/offer.lua")]),
    rebuild: changes(&[include_str!("../scripts/rebuild.lua")]),
    recount: changes(&[include_str!("../scripts/recount.lua")]),
    release: changes(&[include_str!("../scripts/release.lua")]),
    settle: changes(&[include_str!("../scripts/settle.lua")]),
    shared: looks(include_str!("../scripts/shared.lua")),
    taken: looks(include_str!("../scripts/taken.lua")),
});

fn changes(parts: &[&str]) -> LoadedScript {
    entry(&[RULES, parts, &[FINISH]].concat())
}

fn looks(part: &str) -> LoadedScript {
    entry(&[RULES, &[part, LOOK_ONLY]].concat())
}

fn entry(parts: &[&str]) -> LoadedScript {
    let code = parts.concat();
    LoadedScript { script: Script::new(&code), code }
}
