//! Checks that nothing acknowledged is lost and nothing ends twice.

use std::collections::{BTreeMap, BTreeSet};

/// The final state of a job or run.
#[derive(Clone, Debug)]
pub(super) struct EndState {
    pub(super) id: String,
    /// Whether it ended as its kind should.
    pub(super) well: bool,
    pub(super) attempts: u32,
    /// Whether it had more attempts than its kind needs.
    pub(super) again: bool,
    /// Ends in its history, where the history was read.
    pub(super) ends: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChaosTally {
    pub(super) jobs: usize,
    /// Acknowledged work that is missing or did not end as its kind should. None of the load has another reason to end
    /// differently.
    pub(super) lost: usize,
    /// Work that exists twice or ended twice.
    pub(super) doubled: usize,
    /// Run more than once, which is allowed: at least once is the promise to workers.
    pub(super) repeated: usize,
}

pub(super) fn tally(acknowledged: &BTreeSet<String>, found: &[EndState]) -> ChaosTally {
    let mut seen: BTreeMap<&str, (usize, &EndState)> = BTreeMap::new();
    for job in found {
        seen.entry(&job.id).or_insert((0, job)).0 += 1;
    }
    let ended_well = |id: &String| seen.get(id.as_str()).is_some_and(|(_, job)| job.well);
    let doubled = |(times, job): &&(usize, &EndState)| *times > 1 || job.ends.is_some_and(|ends| ends > 1);
    ChaosTally {
        jobs: acknowledged.len(),
        lost: acknowledged.iter().filter(|id| !ended_well(id)).count(),
        doubled: seen.values().filter(doubled).count(),
        repeated: seen.values().filter(|(_, job)| job.again).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(id: &str) -> EndState {
        EndState { id: id.to_owned(), well: true, attempts: 1, again: false, ends: Some(1) }
    }

    fn acknowledged() -> BTreeSet<String> {
        ["a", "b", "c"].map(str::to_owned).into()
    }

    #[test]
    fn all_is_well_when_each_job_ended_once() {
        let mut jobs = vec![found("a"), found("b"), found("c")];
        // Stored, but the acknowledgement was lost, so no client was promised anything.
        jobs.push(found("d"));
        jobs[1].again = true;
        let tally = tally(&acknowledged(), &jobs);
        assert_eq!(tally, ChaosTally { jobs: 3, lost: 0, doubled: 0, repeated: 1 });
    }

    #[test]
    fn a_loss_is_noticed_whether_the_job_is_gone_or_did_not_end_well() {
        let mut jobs = vec![found("a"), found("b")];
        assert_eq!(tally(&acknowledged(), &jobs).lost, 1);
        jobs[0].well = false;
        assert_eq!(tally(&acknowledged(), &jobs).lost, 2);
    }

    #[test]
    fn a_second_end_and_a_second_row_are_noticed() {
        let mut jobs = vec![found("a"), found("b"), found("c")];
        jobs[0].ends = Some(2);
        assert_eq!(tally(&acknowledged(), &jobs).doubled, 1);
        jobs.push(found("b"));
        assert_eq!(tally(&acknowledged(), &jobs).doubled, 2);
    }
}
