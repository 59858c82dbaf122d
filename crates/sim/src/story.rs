//! A story: everything that a run of the simulator depends on.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::check::Violation;
use crate::faults::Fault;
use crate::planted::Bug;
use crate::world::{Summary, World};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    pub seed: u64,
    /// Faults that never happen in it.
    pub without: BTreeSet<Fault>,
    /// How long clients submit and faults happen.
    pub chaos: Duration,
    pub clients: u64,
    /// Half of the stories are about one process, the others about two or three, unless it is said here.
    pub processes: Option<u64>,
    /// Something that is wrong on purpose.
    pub bug: Option<Bug>,
}

impl Story {
    /// The whole story of a seed.
    pub fn of(seed: u64) -> Self {
        let chaos = Duration::from_secs(20 + seed % 4 * 10);
        Self { seed, without: BTreeSet::new(), chaos, clients: 2, processes: None, bug: None }
    }

    pub fn tell(&self) -> Result<Summary, Violation> {
        crate::on_paused_time(async { World::new(self).run().await })
    }

    /// A shorter story that ends badly too: fewer faults, fewer clients, less time. It need not be the same bad end.
    pub fn shrunk(self) -> Self {
        let mut story = self;
        let shorter = [1, 2, 4].map(|part| Self { chaos: story.chaos * part / 8, ..story.clone() });
        if let Some(shorter) = shorter.into_iter().find(Self::ends_badly) {
            story = shorter;
        }
        let alone = Self { clients: 1, ..story.clone() };
        if alone.ends_badly() {
            story = alone;
        }
        for fault in Fault::ALL {
            let mut calmer = story.clone();
            calmer.without.insert(*fault);
            if calmer.ends_badly() {
                story = calmer;
            }
        }
        story
    }

    fn ends_badly(&self) -> bool {
        self.tell().is_err()
    }
}

/// As arguments of `lockgate-sim`.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, without, chaos, clients, .. } = self;
        write!(f, "--from {seed} --seeds 1 --millis {} --clients {clients}", chaos.as_millis())?;
        let without: Vec<&str> = without.iter().map(|fault| fault.as_str()).collect();
        if without.is_empty() { Ok(()) } else { write!(f, " --without {}", without.join(",")) }
    }
}
