//! The safety kernel: verdicts on attempts and on their results.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::breaker::BreakerState;
use lockgate_core::output::{OutputStep, OutputVerdict};
use lockgate_core::policy::{Explanation, FailMode, InputPolicy, Policy};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Judgement, Verdict};

#[async_trait]
pub trait Kernel: Send + Sync {
    /// One judgement per request, in order. A kernel that cannot decide answers `Unavailable`; there is no error.
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement>;

    /// The verdict on a request with every evaluated rule. Velocity windows do not count it. None: the kernel did not
    /// answer.
    async fn explain(&self, request: &JobRequest) -> Option<Explanation>;

    /// The verdict of another policy, with the present velocity windows. They do not count it.
    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Arc<Verdict>;

    /// The policy in force. A job judged under another one is judged again before dispatch.
    fn snapshot(&self) -> Arc<str>;

    /// Whether asking makes sense now. False while a circuit breaker is open or the policy cannot be read.
    fn ready(&self) -> bool {
        true
    }

    /// The policy's fail mode for jobs that get no verdict.
    fn input_policy(&self) -> InputPolicy {
        InputPolicy::CLOSED
    }

    /// The circuit breakers between this process and the safety kernel; empty if the kernel is in this process.
    fn breakers(&self) -> Vec<BreakerView> {
        Vec::new()
    }

    /// The breakers' changes of state since the last call, oldest first.
    fn breaker_moves(&self) -> Vec<BreakerMove> {
        Vec::new()
    }

    /// Whether an external kernel decides. Then the Store follows the kernel's policy instead of the kernel the Store's.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// The policy in force in an external kernel, if it answered just now.
    async fn decided_elsewhere(&self) -> Option<Elsewhere> {
        None
    }

    /// Called when the Store says that this policy is in force. Refused with every error of the text if the policy cannot be
    /// loaded; until a text is accepted, the kernel decides nothing. An external kernel is asked for verdicts in any case;
    /// the Store's copy of its policy counts only while it does not answer.
    fn adopt(&self, id: &Arc<str>, text: &str) -> Result<(), Vec<String>>;

    /// Called when the Store has never had an activated policy: the built-in one is in force. Before `adopt` or this call,
    /// the kernel decides nothing and no result is exposed.
    fn adopt_builtin(&self) {}

    /// The metadata step of the output policy, in order. Every result passes it, so it must not wait.
    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep>;

    /// Whether a scanner can be reached now. False while its circuit breaker is open.
    fn scans(&self) -> bool {
        true
    }

    /// What happens to a result whose content cannot be scanned now.
    fn output_fail_mode(&self, _request: &JobRequest) -> FailMode {
        FailMode::Closed
    }

    /// The content step of the output policy. None: no scanner answered, and the scan stays owed.
    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict>;

    /// A text that is exposed together with an attempt (errors, progress, log lines), with findings removed.
    fn clean(&self, request: &JobRequest, text: Arc<str>) -> Arc<str>;
}

/// The policy of an external safety kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub id: Arc<str>,
    /// Empty for the built-in policy, and where the kernel does not reveal the text.
    pub text: Arc<str>,
}

/// The circuit breaker of calls for verdicts.
pub const INPUT_BREAKER: &str = "input";
/// The circuit breaker of calls for content scans.
pub const OUTPUT_BREAKER: &str = "output";

/// A circuit breaker as shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerView {
    pub name: &'static str,
    pub state: BreakerState,
    pub failures: u32,
    /// When the first probe will be let through.
    pub open_until: Option<Timestamp>,
    /// The latest failure.
    pub last_error: Option<Arc<str>>,
    pub sharing: Sharing,
}

/// A change of a circuit breaker's state, as this process noticed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerMove {
    pub at: Timestamp,
    pub breaker: &'static str,
    pub from: BreakerState,
    pub to: BreakerState,
    /// The latest failure.
    pub error: Option<Arc<str>>,
}

/// Whose calls a breaker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Those of this process, by configuration.
    Alone,
    /// Those of all replicas.
    Shared,
    /// Those of this process, until the shared counters answer again.
    LocalFallback,
}

impl Sharing {
    pub const ALL: [Self; 3] = [Self::Alone, Self::Shared, Self::LocalFallback];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Shared => "shared",
            Self::LocalFallback => "local_fallback",
        }
    }
}

/// A result that is about to be stored.
#[derive(Clone, Debug)]
pub struct OutputMeta {
    pub request: Arc<JobRequest>,
    pub bytes: usize,
}

/// A stored result.
#[derive(Clone, Debug)]
pub struct OutputContent {
    pub request: Arc<JobRequest>,
    pub result: Json,
}
