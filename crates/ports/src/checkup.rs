//! Health checks of an adapter's server, for operators.

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The setting or property, named as the server names it.
    pub what: &'static str,
    pub found: String,
    pub grade: Grade,
    /// What it means for Lockgate's guarantees, and what to do if it is not good.
    pub meaning: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    Good,
    /// Works, but an operator should know.
    Notice,
    /// A guarantee does not hold with this setting.
    Bad,
}

impl Grade {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Notice => "notice",
            Self::Bad => "bad",
        }
    }
}

impl Check {
    pub fn new(what: &'static str, found: impl Into<String>, grade: Grade, meaning: impl Into<String>) -> Self {
        Self { what, found: found.into(), grade, meaning: meaning.into() }
    }
}

/// Stamps of one process are compared with those of another; a difference up to this goes unnoticed.
const SKEW_FINE_MS: u64 = 500;
/// From this difference on, delays and deadlines are visibly wrong.
const SKEW_BAD_MS: u64 = 5_000;

/// How far the server's clock is from this process's clock.
pub fn clock_skew(theirs_ms: i64, ours_ms: i64) -> Check {
    let apart = theirs_ms.abs_diff(ours_ms);
    let grade = match apart {
        _ if apart <= SKEW_FINE_MS => Grade::Good,
        _ if apart <= SKEW_BAD_MS => Grade::Notice,
        _ => Grade::Bad,
    };
    let meaning = match grade {
        Grade::Good => "delays, deadlines and leases are measured alike everywhere",
        Grade::Notice | Grade::Bad => "delays and deadlines are off by as much; run a time service on both machines",
    };
    Check::new("clock", format!("{apart} ms apart"), grade, meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_graded_by_its_distance_whichever_is_ahead() {
        let grades = [0, 500, 501, -5_000, 5_001].map(|apart| clock_skew(10_000 + apart, 10_000).grade);
        assert_eq!(grades, [Grade::Good, Grade::Good, Grade::Notice, Grade::Notice, Grade::Bad]);
    }
}
