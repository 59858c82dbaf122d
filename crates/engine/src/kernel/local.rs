//! Judges by the policy that the Store has in force.

use std::sync::Arc;

use async_trait::async_trait;
use lockgate_core::output::{OutputStep, OutputVerdict};
use lockgate_core::policy::{Explanation, FailMode, InputPolicy, OutputGate, OutputRules, Policy, Subject, Velocity};
use lockgate_core::request::JobRequest;
use lockgate_core::scan::FindingKey;
use lockgate_core::verdict::{BUILTIN_ALLOW, Decision, Judgement, Verdict};
use lockgate_ports::{Clock, Counters, Kernel, OutputContent, OutputMeta, Visit};
use parking_lot::RwLock;

use super::scanner::Scanner;
use super::shared::SharedWindows;
use super::windows::{Entering, Looking, OwnWindows};

/// Stands for a policy before one is known. No policy has this name.
const UNREAD: &str = "unread";

pub struct LocalKernel {
    in_force: RwLock<LocalPolicies>,
    windows: OwnWindows,
    /// Windows over all replicas, if there are others.
    counters: Option<Arc<dyn Counters>>,
    clock: Arc<dyn Clock>,
    gate: OutputGate,
    scanner: Scanner,
}

#[derive(Clone)]
enum LocalPolicies {
    /// The Store was not asked yet: nothing is decided.
    Unread,
    /// Nobody ever activated a policy.
    Builtin(Arc<Verdict>),
    Policy(Arc<Policy>),
    /// The Store has one that this process cannot read: nothing is decided.
    Unreadable(Arc<str>),
}

impl LocalKernel {
    /// `key` makes findings comparable and unguessable. `outputs` overrules whether results are checked.
    pub fn new(clock: Arc<dyn Clock>, key: FindingKey, outputs: Option<bool>) -> Self {
        let in_force = RwLock::new(LocalPolicies::Unread);
        let (windows, gate) = (OwnWindows::default(), OutputGate::new(key, outputs));
        Self { in_force, windows, counters: None, clock, gate, scanner: Scanner::default() }
    }

    /// Counts velocity together with the other replicas, as long as the counters answer.
    pub fn sharing(self, counters: Option<Arc<dyn Counters>>) -> Self {
        Self { counters, ..self }
    }

    fn shared(&self, visit: Visit) -> Option<SharedWindows<'_>> {
        let counters = self.counters.as_deref()?;
        Some(SharedWindows { counters, own: &self.windows, now: self.clock.now(), visit })
    }

    fn in_force(&self) -> LocalPolicies {
        self.in_force.read().clone()
    }

    fn output_rules(&self) -> OutputRules {
        match &*self.in_force.read() {
            LocalPolicies::Builtin(_) => OutputRules::None,
            LocalPolicies::Policy(policy) => OutputRules::Of(policy.clone()),
            LocalPolicies::Unread | LocalPolicies::Unreadable(_) => OutputRules::Unknown,
        }
    }
}

#[async_trait]
impl Kernel for LocalKernel {
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement> {
        let now = self.clock.now();
        match self.in_force() {
            LocalPolicies::Builtin(verdict) => vec![Judgement::Decided(verdict); requests.len()],
            LocalPolicies::Unread => vec![Judgement::unavailable("the policy in force was not read yet"); requests.len()],
            LocalPolicies::Unreadable(id) => {
                vec![Judgement::unavailable(format!("the policy in force, {id}, cannot be read here")); requests.len()]
            }
            LocalPolicies::Policy(policy) => {
                let judge = |place: usize, windows: &dyn Velocity| {
                    let evaluate = || policy.evaluate(&Subject::new(&requests[place], now), windows);
                    Judgement::Decided(unless_panic(evaluate).unwrap_or_else(|| Arc::new(failed(policy.snapshot()))))
                };
                match self.shared(Visit::Enter) {
                    Some(shared) => shared.evaluate(requests.len(), judge).await,
                    None => (0..requests.len()).map(|place| judge(place, &Entering(&self.windows))).collect(),
                }
            }
        }
    }

    async fn explain(&self, request: &JobRequest) -> Option<Explanation> {
        let now = self.clock.now();
        match self.in_force() {
            LocalPolicies::Builtin(verdict) => Some(Explanation { verdict, looks: Vec::new() }),
            LocalPolicies::Policy(policy) => {
                let explain = |_, windows: &dyn Velocity| policy.explain(&Subject::new(request, now), windows);
                match self.shared(Visit::Look) {
                    Some(shared) => shared.evaluate(1, explain).await.pop(),
                    None => Some(explain(0, &Looking(&self.windows))),
                }
            }
            LocalPolicies::Unread | LocalPolicies::Unreadable(_) => None,
        }
    }

    /// By the windows of this process: those of all replicas would have to be waited for.
    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Arc<Verdict> {
        policy.evaluate(&Subject::new(request, self.clock.now()), &Looking(&self.windows))
    }

    fn snapshot(&self) -> Arc<str> {
        match &*self.in_force.read() {
            LocalPolicies::Unread => UNREAD.into(),
            LocalPolicies::Builtin(verdict) => verdict.snapshot.clone(),
            LocalPolicies::Policy(policy) => policy.snapshot().clone(),
            LocalPolicies::Unreadable(id) => id.clone(),
        }
    }

    fn ready(&self) -> bool {
        !matches!(&*self.in_force.read(), LocalPolicies::Unread | LocalPolicies::Unreadable(_))
    }

    fn input_policy(&self) -> InputPolicy {
        match &*self.in_force.read() {
            LocalPolicies::Policy(policy) => *policy.input(),
            LocalPolicies::Unread | LocalPolicies::Builtin(_) | LocalPolicies::Unreadable(_) => InputPolicy::CLOSED,
        }
    }

    fn adopt(&self, id: &Arc<str>, text: &str) -> Result<(), Vec<String>> {
        match Policy::load_stored("policy.yaml", text) {
            Ok(policy) => {
                *self.in_force.write() = LocalPolicies::Policy(Arc::new(policy));
                Ok(())
            }
            Err(errors) => {
                *self.in_force.write() = LocalPolicies::Unreadable(id.clone());
                Err(errors.iter().map(ToString::to_string).collect())
            }
        }
    }

    fn adopt_builtin(&self) {
        let mut in_force = self.in_force.write();
        if matches!(*in_force, LocalPolicies::Unread) {
            let allow = Verdict::plain(Decision::Allow, "allow-all", "no policy configured", BUILTIN_ALLOW.into());
            *in_force = LocalPolicies::Builtin(Arc::new(allow));
        }
    }

    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep> {
        let rules = self.output_rules();
        outputs.iter().map(|output| self.gate.step(&rules, &output.request, output.bytes)).collect()
    }

    fn output_fail_mode(&self, request: &JobRequest) -> FailMode {
        self.gate.fail_mode(&self.output_rules(), request)
    }

    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict> {
        self.scanner.scan(&self.gate, self.output_rules(), output).await
    }

    fn clean(&self, request: &JobRequest, text: Arc<str>) -> Arc<str> {
        self.gate.clean(&self.output_rules(), request, text)
    }
}

/// A defect of ours must not let anything through, nor take the engine along.
fn unless_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

fn failed(snapshot: &Arc<str>) -> Verdict {
    Verdict::plain(Decision::Deny, "evaluation-failed", "the policy could not be evaluated", snapshot.clone())
}

#[cfg(test)]
mod tests {
    use lockgate_core::request::{Caller, Json, NewJob};
    use lockgate_model::ManualClock;

    use super::*;

    fn kernel() -> LocalKernel {
        LocalKernel::new(Arc::new(ManualClock::default()), FindingKey::new([7; 32]), None)
    }

    /// G-4: a process that just started has results to store before it has read the policy.
    #[tokio::test]
    async fn before_the_policy_is_known_nothing_is_decided_and_no_result_comes_out() {
        let kernel = kernel();
        let new = NewJob { topic: "t".into(), ..NewJob::default() };
        let request = JobRequest::check(new, &Caller::new("default", "tester"), || "job".into()).expect("a job");
        let output = OutputContent { request: Arc::new(request), result: Json::null() };
        let meta = [OutputMeta { request: output.request.clone(), bytes: 4 }];
        assert!(!kernel.ready());
        assert!(matches!(kernel.judge(std::slice::from_ref(&output.request)).await[..], [Judgement::Unavailable(_)]));
        assert_eq!(kernel.check_outputs(&meta).await, [OutputStep::Scan { hold: true }]);
        assert_eq!((kernel.scan(&output).await, kernel.output_fail_mode(&output.request)), (None, FailMode::Closed));
        kernel.adopt_builtin();
        assert!(kernel.ready());
        assert!(matches!(kernel.judge(std::slice::from_ref(&output.request)).await[..], [Judgement::Decided(_)]));
        assert_eq!(kernel.check_outputs(&meta).await, [OutputStep::Pass]);
    }

    #[test]
    fn the_built_in_policy_replaces_no_other() {
        let kernel = kernel();
        kernel.adopt(&"p".into(), "version: 1\ndefault: {decision: deny, reason: no}\n").expect("a policy");
        let known = kernel.snapshot();
        kernel.adopt_builtin();
        assert_eq!(kernel.snapshot(), known);
    }
}
