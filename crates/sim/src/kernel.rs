//! A safety kernel that is slow, or silent.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::output::{OutputStep, OutputVerdict};
use lockgate_core::policy::{Explanation, FailMode, Policy};
use lockgate_core::request::JobRequest;
use lockgate_core::verdict::{Decision, Judgement, Verdict};
use lockgate_engine::LocalKernel;
use lockgate_ports::{Kernel, OutputContent, OutputMeta};

use crate::faults::{Fault, Faults};
use crate::planted::{Bug, Planted};
use crate::process::Lifeline;

/// How long it takes at most, when it is slow.
const KERNEL_SLOW_MS: u64 = 2_500;

pub(crate) struct FaultyKernel {
    pub(crate) kernel: LocalKernel,
    pub(crate) faults: Arc<Faults>,
    pub(crate) planted: Arc<Planted>,
    pub(crate) lifeline: Lifeline,
    /// The fail mode for results that no scanner can read.
    pub(crate) outputs: FailMode,
}

impl FaultyKernel {
    /// A call that may be slow, and may be the last of this process. Its subject may change meanwhile.
    async fn before(&self) {
        if self.faults.inject(10, Fault::KernelSlow) {
            tokio::time::sleep(self.faults.millis(KERNEL_SLOW_MS)).await;
        }
        if self.faults.inject(1, Fault::Crash) {
            self.lifeline.crash().await;
        }
        self.lifeline.alive_or_never().await;
    }
}

#[async_trait]
impl Kernel for FaultyKernel {
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement> {
        self.before().await;
        if self.faults.inject(20, Fault::KernelSilent) {
            return requests.iter().map(|_| Judgement::UNASKED).collect();
        }
        if self.planted.is(Bug::EverythingAllowed) {
            let verdict = || Verdict::plain(Decision::Allow, "planted", "whatever it is", self.kernel.snapshot());
            return requests.iter().map(|_| Judgement::Decided(Arc::new(verdict()))).collect();
        }
        self.kernel.judge(requests).await
    }

    async fn explain(&self, request: &JobRequest) -> Option<Explanation> {
        self.kernel.explain(request).await
    }

    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Arc<Verdict> {
        self.kernel.simulate(policy, request)
    }

    fn snapshot(&self) -> Arc<str> {
        self.kernel.snapshot()
    }

    fn adopt(&self, id: &Arc<str>, text: &str) -> Result<(), Vec<String>> {
        self.kernel.adopt(id, text)
    }

    fn adopt_builtin(&self) {
        self.kernel.adopt_builtin();
    }

    /// Like a remote kernel: while no scanner is reachable, a result that need not wait for the scan does not.
    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep> {
        let mut steps = self.kernel.check_outputs(outputs).await;
        if self.planted.is(Bug::ResultsUnchecked) {
            steps.fill(OutputStep::Pass);
        }
        for step in steps.iter_mut().filter(|step| matches!(step, OutputStep::Scan { .. })) {
            if self.faults.inject(50, Fault::KernelSilent) {
                *step = match self.outputs {
                    FailMode::Open => OutputStep::Unchecked { why: "simulated: nobody can look".into() },
                    FailMode::Closed => OutputStep::Scan { hold: true },
                };
            }
        }
        steps
    }

    fn output_fail_mode(&self, _request: &JobRequest) -> FailMode {
        self.outputs
    }

    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict> {
        self.before().await;
        if self.faults.inject(20, Fault::KernelSilent) {
            return None;
        }
        self.kernel.scan(output).await
    }

    fn clean(&self, request: &JobRequest, text: Arc<str>) -> Arc<str> {
        self.kernel.clean(request, text)
    }
}
