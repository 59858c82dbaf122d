//! Duties: work that a server, not a worker, still has to do for a job, as its state implies.

use super::{Job, JobState, Transition};

/// G-3: the Store keeps an index of duties, so that the loop that performs them finds each job without a scan, also after a
/// crash.
/// The duty is derived from the state and never stored beside it, so the two cannot disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// A person must agree or refuse.
    Approve,
    /// The content of the result must be scanned for findings.
    Scan,
    /// The job ran without a verdict; the kernel must judge it afterwards.
    Rejudge,
    /// The job waits for its children: its barrier must open once no child is under way.
    Gather,
    /// The job ended badly: its children that are still under way must be stopped.
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
    /// Duties that begin (true) or end (false) with this commit, for the Store's index.
    pub fn duties(&self) -> impl Iterator<Item = (Duty, bool)> {
        Duty::ALL.into_iter().filter_map(|duty| {
            let (before, after) = (self.owed.contains(&duty), self.job.owes(duty));
            (before != after).then_some((duty, after))
        })
    }
}
