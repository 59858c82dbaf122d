//! The policy of an installation that configured none.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::request::JobRequest;
use lockgate_core::verdict::{Decision, Judgement, Verdict};

use crate::kernel::Kernel;

/// Name of the built-in snapshot.
pub const BUILTIN_ALLOW: &str = "builtin:allow";

/// Allows everything and says so in every verdict.
#[derive(Debug)]
pub struct BuiltinKernel {
    verdict: Arc<Verdict>,
}

impl Default for BuiltinKernel {
    fn default() -> Self {
        let verdict = Verdict::plain(Decision::Allow, "allow-all", "no policy configured", BUILTIN_ALLOW.into());
        Self { verdict: Arc::new(verdict) }
    }
}

#[async_trait]
impl Kernel for BuiltinKernel {
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement> {
        vec![Judgement::Decided(self.verdict.clone()); requests.len()]
    }

    fn snapshot(&self) -> Arc<str> {
        self.verdict.snapshot.clone()
    }
}
