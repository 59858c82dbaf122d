//! Who leads the loops that one process runs for all, as the leases in the Store say.

use std::time::Duration;

use lockgate_ports::LeaseRow;

use crate::Inner;
use crate::loops::Lead;

/// One lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderView {
    pub lease: &'static str,
    /// What a process must be started as to lead it.
    pub role: &'static str,
    pub holder: Option<String>,
    pub epoch: u64,
    /// How long nobody has held it, as far as this process could see.
    pub vacant: Duration,
    /// It has been for longer than it takes somebody to take over.
    pub nobody: bool,
}

impl Inner {
    pub(super) fn leaders(&self, leases: &[LeaseRow]) -> Vec<LeaderView> {
        if self.settings.exclusive_store {
            return Vec::new();
        }
        // Before this process watched, nobody may have been meant to lead.
        let watched = self.watch.began.elapsed();
        let view = |lead: Lead| {
            let (role, every) = lead.cadence(&self.settings)?;
            let row = leases.iter().find(|row| row.name == lead.name());
            let patience = every * 2 + self.settings.leaderless_after;
            Some(leader(lead.name(), role, row, patience, watched))
        };
        Lead::ALL.into_iter().filter_map(view).collect()
    }
}

fn leader(
    lease: &'static str,
    role: &'static str,
    row: Option<&LeaseRow>,
    patience: Duration,
    watched: Duration,
) -> LeaderView {
    let held = row.is_some_and(LeaseRow::is_held);
    let expired = row.map_or(watched, |row| Duration::from_millis(u64::try_from(-row.left_ms).unwrap_or(0)));
    let vacant = if held { Duration::ZERO } else { expired.min(watched) };
    LeaderView {
        lease,
        role,
        holder: row.filter(|_| held).and_then(|row| row.holder.clone()),
        epoch: row.map_or(0, |row| row.epoch),
        vacant,
        nobody: vacant > patience,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(holder: Option<&str>, left_ms: i64, watched: u64) -> LeaderView {
        let row = LeaseRow { name: "lease".to_owned(), holder: holder.map(str::to_owned), epoch: 3, left_ms };
        leader("lease", "scheduler", Some(&row), Duration::from_secs(12), Duration::from_secs(watched))
    }

    #[test]
    fn a_lease_that_ran_out_a_moment_ago_is_being_taken_over() {
        assert!(!view(Some("a"), 500, 3_600).nobody);
        assert!(!view(Some("a"), -12_000, 3_600).nobody);
        assert!(view(Some("a"), -12_001, 3_600).nobody);
        assert!(view(None, -12_001, 3_600).nobody, "given up and not taken");
        assert!(!view(None, 500, 3_600).nobody);
    }

    #[test]
    fn a_process_that_has_just_come_does_not_call_the_others_missing() {
        assert!(!view(Some("a"), -3_600_000, 12).nobody);
        assert!(view(Some("a"), -3_600_000, 13).nobody);
        let never = |watched| leader("lease", "scheduler", None, Duration::from_secs(12), Duration::from_secs(watched));
        assert!(!never(12).nobody && never(13).nobody);
    }
}
