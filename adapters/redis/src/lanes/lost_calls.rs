//! Counts calls that did not reach the lanes, which therefore need a rebuild.

/// A rebuild reads everything from the Store, so it repairs the effects of all calls lost before it began.
#[derive(Debug, Default)]
pub(super) struct LostCalls {
    /// Lost calls that no rebuild has repaired yet.
    lost: u64,
    /// How many of them the rebuild loop knows of; its rebuild repairs these.
    told: u64,
    /// The latest rebuild when the loop was first told.
    since: Option<String>,
}

impl LostCalls {
    pub(super) fn lose(&mut self) {
        self.lost += 1;
        self.since = None;
    }

    /// Whether a rebuild is needed, given the latest one.
    pub(super) fn is_behind(&mut self, rebuilds: &str) -> bool {
        if self.lost > 0 && self.since.as_deref().is_some_and(|since| since != rebuilds) {
            *self = Self::default();
        }
        self.told = self.lost;
        if self.lost > 0 && self.since.is_none() {
            self.since = Some(rebuilds.to_owned());
        }
        self.lost > 0
    }

    /// This process has rebuilt the lanes. Calls lost after the loop was told may be missing in the rebuild, so they remain.
    pub(super) fn rebuilt(&mut self) {
        if self.lost == self.told {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_rebuilds_after_it_was_told_makes_good() {
        let mut heard = LostCalls::default();
        assert!(!heard.is_behind("a/1"));
        heard.lose();
        assert!(heard.is_behind("a/1") && heard.is_behind("a/1"));
        assert!(!heard.is_behind("a/2"), "another process did");
        heard.lose();
        assert!(heard.is_behind("a/2"));
        heard.rebuilt();
        assert!(!heard.is_behind("a/3"), "this one did");
    }

    #[test]
    fn what_is_lost_during_a_rebuild_needs_another_one() {
        let mut heard = LostCalls::default();
        heard.lose();
        assert!(heard.is_behind("a/1"));
        heard.lose();
        heard.rebuilt();
        assert!(heard.is_behind("a/2") && heard.is_behind("a/2"));
        heard.rebuilt();
        assert!(!heard.is_behind("a/3"));
    }
}
