//! Whether something was said that the lanes did not hear.

/// A rebuild reads everything from the Store, so it makes good for whatever was not heard before it began.
#[derive(Debug, Default)]
pub(super) struct LostCalls {
    /// Calls that were lost and not made good for yet.
    lost: u64,
    /// Of these, the ones that were reported to the rebuild loop, and may be rebuilding for.
    told: u64,
    /// The latest rebuild when it was first told.
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

    /// This process rebuilt the lanes. What was lost since it was told to may be missing.
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
