//! What a simulated job does when it runs: written into its payload, so that every worker agrees.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::Outcome;
use lockgate_core::request::Json;

use crate::brood::Brood;
use crate::faults::Faults;
use crate::outputs::SECRET;

/// How a job behaves, attempt by attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobScript {
    Succeed,
    /// Fails this many attempts, then succeeds.
    Flaky(u32),
    AlwaysFail,
    Fatal,
    /// Snoozes this many attempts, then succeeds.
    Snooze(u32),
    /// Never ends by itself: the server's timeout must.
    Hang,
    /// Succeeds after so many milliseconds.
    Take(u32),
    /// Submits children and waits for them.
    Parent(Brood),
}

impl JobScript {
    pub(crate) fn draw(faults: &Faults) -> Self {
        match faults.below(100) {
            0..57 => Self::Succeed,
            57..60 => Self::Parent(Brood(u32::try_from(faults.below(1 << 32)).unwrap_or(0))),
            60..75 => Self::Flaky(1 + u32::try_from(faults.below(3)).unwrap_or(0)),
            75..82 => Self::AlwaysFail,
            82..88 => Self::Fatal,
            88..95 => Self::Snooze(1 + u32::try_from(faults.below(3)).unwrap_or(0)),
            _ => Self::Hang,
        }
    }

    pub(crate) fn encode(self) -> Json {
        Json::trusted(match self {
            Self::Succeed => "[0,0]".to_owned(),
            Self::Flaky(n) => format!("[1,{n}]"),
            Self::AlwaysFail => "[2,0]".to_owned(),
            Self::Fatal => "[3,0]".to_owned(),
            Self::Snooze(n) => format!("[4,{n}]"),
            Self::Hang => "[5,0]".to_owned(),
            Self::Take(ms) => format!("[6,{ms}]"),
            Self::Parent(Brood(n)) => format!("[7,{n}]"),
        })
    }

    pub(crate) fn decode(payload: &Json) -> Self {
        let mut parts = payload.as_str().trim_matches(['[', ']']).split(',').map(|n| n.parse().unwrap_or(0));
        let (kind, n) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        match kind {
            1 => Self::Flaky(n),
            2 => Self::AlwaysFail,
            3 => Self::Fatal,
            4 => Self::Snooze(n),
            5 => Self::Hang,
            6 => Self::Take(n),
            7 => Self::Parent(Brood(n)),
            _ => Self::Succeed,
        }
    }

    /// How the attempt ends and how long it runs; None if it never ends, or if its handler says when.
    pub(crate) fn perform(
        self,
        attempt: u32,
        secret: bool,
        faults: &Faults,
        longest_ms: u64,
    ) -> Option<(Duration, Outcome)> {
        let secret = if secret { SECRET } else { "" };
        let succeeded = Outcome::Succeeded { result: Json::trusted(format!("[{attempt},\"{secret}\"]")) };
        let error = format!("planned failure {secret}").into();
        let failed = Outcome::FailedRetryable { error, code: None, retry_after: None };
        let outcome = match self {
            Self::Succeed => succeeded,
            Self::Flaky(n) => {
                if attempt <= n {
                    failed
                } else {
                    succeeded
                }
            }
            Self::AlwaysFail => failed,
            Self::Fatal => Outcome::FailedFatal { error: Arc::from("planned fatal failure") },
            Self::Snooze(n) if attempt <= n => Outcome::Snooze { delay: faults.millis(3_000) },
            Self::Snooze(_) => succeeded,
            Self::Hang | Self::Parent(_) => return None,
            Self::Take(ms) => return Some((Duration::from_millis(ms.into()), succeeded)),
        };
        Some((faults.millis(longest_ms), outcome))
    }
}
