//! Verdicts on attempts, and on what comes out of them.

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
    /// One judgement per request, in order. Failing to decide is an answer too, never an error.
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement>;

    /// The verdict on a request with every step told. Counts nothing. None: no answer.
    async fn explain(&self, request: &JobRequest) -> Option<Explanation>;

    /// What another policy would say, with the windows as they are. Counts nothing.
    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Arc<Verdict>;

    /// The policy in force. A verdict made under another one is asked for again before dispatch.
    fn snapshot(&self) -> Arc<str>;

    /// Whether asking makes sense now. False while a circuit breaker is open or the policy cannot be read.
    fn ready(&self) -> bool {
        true
    }

    /// What to do with jobs that cannot be judged, as far as the policy says.
    fn input_policy(&self) -> InputPolicy {
        InputPolicy::CLOSED
    }

    /// The circuit breakers between this process and the safety kernel; none if the kernel is in this process.
    fn breakers(&self) -> Vec<BreakerView> {
        Vec::new()
    }

    /// What the breakers did since this was last asked, oldest first.
    fn breaker_moves(&self) -> Vec<BreakerMove> {
        Vec::new()
    }

    /// Whether an external kernel decides: the Store then follows the kernel, not the kernel the Store.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// The policy in force there, if it could be asked just now.
    async fn decided_elsewhere(&self) -> Option<Elsewhere> {
        None
    }

    /// The Store says that this policy is in force now. Refused with every error of the text if it cannot be judged by;
    /// until a text is taken, nothing is decided. A kernel elsewhere is asked for verdicts all the same; what the Store
    /// remembers of its policy counts while it is silent.
    fn adopt(&self, id: &Arc<str>, text: &str) -> Result<(), Vec<String>>;

    /// The Store has never had an activated policy: the built-in one is in force. Before either is said, nothing is
    /// decided and no result comes out.
    fn adopt_builtin(&self) {}

    /// What the metadata alone says about results, in order. On the way of every result: answers at once.
    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep>;

    /// Whether a scanner can be reached now. False while the circuit breaker on the way is open.
    fn scans(&self) -> bool {
        true
    }

    /// What happens to a result whose content no scanner can read now.
    fn output_fail_mode(&self, _request: &JobRequest) -> FailMode {
        FailMode::Closed
    }

    /// What the content says. None: no scanner answered; the scan stays owed.
    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict>;

    /// Text that leaves with an attempt (errors, progress, log lines) without what must not come out.
    fn clean(&self, request: &JobRequest, text: Arc<str>) -> Arc<str>;
}

/// The policy of an external safety kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub id: Arc<str>,
    /// Empty for the built-in one, and where the text is not told.
    pub text: Arc<str>,
}

/// The breaker on the way of verdicts.
pub const INPUT_BREAKER: &str = "input";
/// The breaker on the way of contents.
pub const OUTPUT_BREAKER: &str = "output";

/// A circuit breaker as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerView {
    pub name: &'static str,
    pub state: BreakerState,
    pub failures: u32,
    /// When the first probe is let through.
    pub open_until: Option<Timestamp>,
    /// What went wrong last.
    pub last_error: Option<Arc<str>>,
    pub sharing: Sharing,
}

/// A circuit breaker that changed its state, as it was noticed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerMove {
    pub at: Timestamp,
    pub breaker: &'static str,
    pub from: BreakerState,
    pub to: BreakerState,
    /// What went wrong last.
    pub error: Option<Arc<str>>,
}

/// Whose calls a breaker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Those of this process, as configured.
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
