//! Work that a job's state says is still to be done by a server instead of a worker.

use super::{Job, JobState, Transition};

/// G-3: kept as an index by the Store, so that the loop that does the work finds it without a scan and after any crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// A person must agree or refuse.
    Approve,
    /// The content of the result must be scanned.
    Scan,
    /// It was let through unjudged; the kernel must say what it thinks.
    Rejudge,
    /// It waits for its children: its barrier must be opened when none of them is under way.
    Gather,
    /// It ended badly: children that are still under way must be stopped.
    Disown,
}

impl Duty {
    pub const ALL: [Self; 5] = [Self::Approve, Self::Scan, Self::Rejudge, Self::Gather, Self::Disown];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Scan => "scan",
            Self::Rejudge => "rejudge",
            Self::Gather => "gather",
            Self::Disown => "disown",
        }
    }
}

impl Job {
    pub fn owes(&self, duty: Duty) -> bool {
        match duty {
            Duty::Approve => self.life.state == JobState::ApprovalRequired,
            Duty::Scan => self.needs_scan(),
            Duty::Rejudge => self.needs_rejudging(),
            Duty::Gather => self.barrier().is_some(),
            Duty::Disown => self.owes_its_children_an_end(),
        }
    }
}

impl Transition {
    /// Duties that begin (true) or end (false) with this commit.
    pub fn duties(&self) -> impl Iterator<Item = (Duty, bool)> {
        Duty::ALL.into_iter().filter_map(|duty| {
            let (before, after) = (self.owed.contains(&duty), self.job.owes(duty));
            (before != after).then_some((duty, after))
        })
    }
}
