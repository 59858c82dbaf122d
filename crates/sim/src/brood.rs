//! The children of a simulated parent, encoded as a number in its payload, so that every attempt submits the same children.

use lockgate_core::request::NewJob;
use lockgate_engine::NewChild;

use crate::client::TOPICS;
use crate::plan::JobScript;

/// One bit for the rounds, two for the number of children, four for what each child does. The remaining bits are for
/// children that are parents themselves; they run out, which ends the recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brood(pub(crate) u32);

/// Bits that are not passed on to the next generation.
const OWN_BITS: u32 = 1 + 2 + 4 * 4;
/// How long one attempt of a child may take.
const TIMEOUT_MS: u64 = 4_000;

impl Brood {
    /// How often the parent submits some and waits for them.
    pub(crate) const fn rounds(self) -> u32 {
        1 + (self.0 & 1)
    }

    pub(crate) fn children(self, round: u32) -> Vec<NewChild> {
        let count = 1 + ((self.0 >> 1) & 3);
        (0..count).map(|n| self.child(format!("{round}-{n}"), (self.0 >> (3 + 4 * n)) & 15)).collect()
    }

    /// A child that no round needs.
    pub(crate) fn extra(self, round: u32) -> NewChild {
        self.child(format!("{round}-extra"), 0)
    }

    fn child(self, key: String, does: u32) -> NewChild {
        let plan = match does {
            0..9 => JobScript::Succeed,
            9 | 10 => JobScript::Flaky(1),
            11 => JobScript::AlwaysFail,
            12 => JobScript::Fatal,
            13 => JobScript::Snooze(1),
            14 => JobScript::Parent(Self(self.0 >> OWN_BITS)),
            _ => JobScript::Hang,
        };
        let topic = TOPICS[does as usize % TOPICS.len()].to_owned();
        let job = NewJob { topic, payload: Some(plan.encode()), timeout_ms: Some(TIMEOUT_MS), ..NewJob::default() };
        NewChild { key, job }
    }
}
