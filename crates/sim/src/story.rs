//! A story: everything that determines a run of the simulator.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use lockgate_model::SeededEntropy;

use crate::check::Violation;
use crate::faults::Fault;
use crate::planted::Bug;
use crate::world::{SimWorld, Summary};

/// The command line's word for a story that excludes no fault.
pub const NONE: &str = "none";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    pub seed: u64,
    /// Faults that never happen in it, see [`Story::of`].
    pub without: BTreeSet<Fault>,
    /// How long clients submit and faults happen.
    pub chaos: Duration,
    pub clients: u64,
    /// Half of the stories have one process, the others two or three, unless set here.
    pub processes: Option<u64>,
    /// A bug planted on purpose.
    pub bug: Option<Bug>,
}

/// Long enough for silence to be noticed, where a story has time for that.
const LONG_CHAOS: Duration = Duration::from_secs(40);

/// Faults that make Store calls fail for every process. A process postpones lost-worker detection for such failures, and
/// postpones it only in time without them.
const STORE_FAILS: [Fault; 4] = [Fault::Unavailable, Fault::UnknownOutcome, Fault::CallHung, Fault::StoreOutage];

/// What ends processes.
const PROCESSES_END: [Fault; 2] = [Fault::Crash, Fault::GracefulStop];

impl Story {
    /// The story of a seed. Two of three exclude some faults: if everything happens all the time, behaviour that needs a
    /// while without a fault never occurs.
    pub fn of(seed: u64) -> Self {
        let without = left_out(seed);
        let chaos = Duration::from_secs(20 + seed % 4 * 10);
        let chaos = if without.is_empty() { chaos } else { chaos.max(LONG_CHAOS) };
        Self { seed, without, chaos, clients: 2, processes: None, bug: None }
    }

    pub fn tell(&self) -> Result<Summary, Violation> {
        crate::on_paused_time(async { SimWorld::new(self).run().await })
    }

    /// A shorter story that breaks the same rule: fewer faults, fewer clients, less time. A story that breaks another rule
    /// does not count.
    pub fn shrunk(self, rule: &str) -> Self {
        let mut story = self;
        let shorter = [1, 2, 4].map(|part| Self { chaos: story.chaos * part / 8, ..story.clone() });
        if let Some(shorter) = shorter.into_iter().find(|shorter| shorter.breaks(rule)) {
            story = shorter;
        }
        let alone = Self { clients: 1, ..story.clone() };
        if alone.breaks(rule) {
            story = alone;
        }
        for fault in Fault::ALL {
            let mut calmer = story.clone();
            if calmer.without.insert(*fault) && calmer.breaks(rule) {
                story = calmer;
            }
        }
        story
    }

    fn breaks(&self, rule: &str) -> bool {
        self.tell().is_err_and(|violation| violation.rule == rule)
    }
}

/// Drawn from a random stream of its own, so that the rest of a story does not depend on it.
fn left_out(seed: u64) -> BTreeSet<Fault> {
    let dice = SeededEntropy::new(seed ^ 0x6c65_6674_206f_7574);
    match dice.below(9) {
        0..3 => BTreeSet::new(),
        3..5 => STORE_FAILS.into(),
        5..7 => PROCESSES_END.into(),
        _ => Fault::ALL.iter().copied().filter(|_| dice.one_in(4)).collect(),
    }
}

/// As arguments of `lockgate-sim`.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, without, chaos, clients, .. } = self;
        write!(f, "--from {seed} --seeds 1 --millis {} --clients {clients}", chaos.as_millis())?;
        let without: Vec<&str> = without.iter().map(|fault| fault.as_str()).collect();
        write!(f, " --without {}", if without.is_empty() { NONE.to_owned() } else { without.join(",") })
    }
}
