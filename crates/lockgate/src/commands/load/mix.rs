//! The kinds of jobs in a load, and their shares.

use std::str::FromStr;
use std::time::Duration;

use lockgate_core::job::JobState;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LoadKind {
    Noop,
    Flaky,
    AlwaysFail,
    Sleep,
}

impl LoadKind {
    pub(super) const ALL: [Self; 4] = [Self::Noop, Self::Flaky, Self::AlwaysFail, Self::Sleep];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Flaky => "flaky",
            Self::AlwaysFail => "always_fail",
            Self::Sleep => "sleep",
        }
    }

    pub(super) fn topic(self) -> String {
        format!("job.{}", self.as_str())
    }

    pub(super) fn of_topic(topic: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.topic() == topic)
    }

    pub(super) fn payload(self, sleep: Duration) -> String {
        match self {
            Self::Noop => "null".to_owned(),
            Self::AlwaysFail => "{}".to_owned(),
            Self::Flaky => r#"{"fail":2}"#.to_owned(),
            Self::Sleep => format!(r#"{{"ms":{},"renew":false}}"#, sleep.as_millis()),
        }
    }

    /// The state in which a job of this kind should end.
    pub(super) const fn expected_end(self) -> JobState {
        match self {
            Self::AlwaysFail => JobState::Failed,
            Self::Noop | Self::Flaky | Self::Sleep => JobState::Succeeded,
        }
    }
}

/// Shares of the kinds, in the order of `LoadKind::ALL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mix([u32; 4]);

/// Keeps the pattern that repeats over the jobs short.
const SHARES_MAX: u32 = 10_000;

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut shares = [0; 4];
        for part in text.split(',') {
            let wrong = || format!("{part:?} is not of the form kind=share with a kind of noop, flaky, always_fail, sleep");
            let (name, share) = part.split_once('=').ok_or_else(wrong)?;
            let at = LoadKind::ALL.iter().position(|kind| kind.as_str() == name).ok_or_else(wrong)?;
            shares[at] = share.parse().map_err(|_| wrong())?;
        }
        match shares.iter().copied().fold(0, u32::saturating_add) {
            0 => Err("at least one share must not be 0".to_owned()),
            1..=SHARES_MAX => Ok(Self(shares)),
            _ => Err(format!("the shares must not sum up to more than {SHARES_MAX}")),
        }
    }
}

impl Mix {
    /// Gives the share of the sleeping jobs to the quick ones.
    pub(super) const fn without_sleep(self) -> Self {
        let [noop, flaky, always_fail, sleep] = self.0;
        Self([noop + sleep, flaky, always_fail, 0])
    }

    /// One round of kinds, each spread evenly over it, so that any part of a load has about the right shares.
    pub(super) fn spread(self) -> Vec<LoadKind> {
        let total: u32 = self.0.iter().sum();
        let mut owed = [0_i64; 4];
        let mut round = Vec::new();
        for _ in 0..total {
            for (debt, share) in owed.iter_mut().zip(self.0) {
                *debt += i64::from(share);
            }
            let most = (0..4).max_by_key(|kind| (owed[*kind], std::cmp::Reverse(*kind))).unwrap_or(0);
            owed[most] -= i64::from(total);
            round.push(LoadKind::ALL[most]);
        }
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mix: Mix) -> [usize; 4] {
        LoadKind::ALL.map(|kind| mix.spread().iter().filter(|k| **k == kind).count())
    }

    #[test]
    fn shares_are_kept_exactly_in_a_round() {
        let mix: Mix = "noop=80,flaky=10,always_fail=5,sleep=5".parse().expect("a mix");
        assert_eq!(shares(mix), [80, 10, 5, 5]);
        assert_eq!(shares(mix.without_sleep()), [85, 10, 5, 0]);
    }

    #[test]
    fn kinds_are_spread_over_the_round() {
        let mix: Mix = "noop=2,flaky=1".parse().expect("a mix");
        assert_eq!(mix.spread(), [LoadKind::Noop, LoadKind::Flaky, LoadKind::Noop]);
    }

    #[test]
    fn an_odd_mix_is_refused() {
        for text in ["", "noop", "nap=1", "noop=-1", "noop=0", "noop=20000"] {
            assert!(text.parse::<Mix>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_topic_names_its_kind() {
        for kind in LoadKind::ALL {
            assert_eq!(LoadKind::of_topic(&kind.topic()), Some(kind));
            assert!(serde_json::from_str::<serde_json::Value>(&kind.payload(Duration::from_secs(1))).is_ok());
        }
    }
}
