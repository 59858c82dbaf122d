//! Requests verdicts from a kernel in another process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_api::{explanation_from_wire, json_bytes, output_verdict_from_wire, subject_to_wire, verdict_from_wire};
use lockgate_core::breaker::BreakerSettings;
use lockgate_core::output::{OutputStep, OutputVerdict};
use lockgate_core::policy::{
    Explanation, FailMode, InputPolicy, OutputGate, OutputRules, Policy, Subject, Velocity, VelocityWindow,
};
use lockgate_core::request::JobRequest;
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Judgement, Verdict};
use lockgate_ports::{
    BreakerMove, BreakerView, Clock, Counters, Elsewhere, INPUT_BREAKER, Kernel, OUTPUT_BREAKER, OutputContent, OutputMeta,
};
use lockgate_proto::v1;
use lockgate_proto::v1::output_policy_client::OutputPolicyClient;
use lockgate_proto::v1::safety_kernel_client::SafetyKernelClient;
use parking_lot::RwLock;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::active_policies::{ActivePolicies, rules};
use crate::address::{AddressError, Bearer, KernelAddress};
use crate::breakers::BreakerName;
use crate::guard::{CallFailure, GuardedCall};

const INPUT: BreakerName = BreakerName { here: INPUT_BREAKER, shared: "safety" };
const OUTPUT: BreakerName = BreakerName { here: OUTPUT_BREAKER, shared: "safety:output" };
/// The most requests and payload bytes of one call.
const PAGE_MAX: usize = 500;
const PAGE_BYTES_MAX: usize = 8 << 20;
/// The largest accepted answer.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Debug)]
pub struct CallOptions {
    pub breaker: BreakerSettings,
    /// The deadline of verdicts.
    pub answer_within: Duration,
    /// The deadline of content scans.
    pub scan_within: Duration,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            breaker: BreakerSettings::default(),
            answer_within: Duration::from_secs(2),
            // Longer than the kernel itself takes before it decides about a scan that does not finish.
            scan_within: Duration::from_secs(35),
        }
    }
}

/// A channel that adds the key to every call.
type KeyedChannel = InterceptedService<Channel, Bearer>;

pub struct RemoteKernel {
    kernel: SafetyKernelClient<KeyedChannel>,
    results: OutputPolicyClient<KeyedChannel>,
    input: GuardedCall,
    output: GuardedCall,
    in_force: RwLock<ActivePolicies>,
    gate: OutputGate,
    clock: Arc<dyn Clock>,
    options: CallOptions,
}

impl RemoteKernel {
    /// Connects with the first call: an unreachable kernel is handled by the breaker and does not fail the start. With
    /// `counters` all replicas share the breakers.
    pub fn new(
        address: &KernelAddress,
        clock: Arc<dyn Clock>,
        counters: Option<Arc<dyn Counters>>,
        gate: OutputGate,
        options: CallOptions,
    ) -> Result<Self, AddressError> {
        let line = InterceptedService::new(address.endpoint()?.connect_lazy(), address.bearer()?);
        Ok(Self {
            kernel: SafetyKernelClient::new(line.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX),
            results: OutputPolicyClient::new(line).max_decoding_message_size(MESSAGE_BYTES_MAX),
            input: GuardedCall::new(INPUT, clock.clone(), options.breaker, counters.clone()),
            output: GuardedCall::new(OUTPUT, clock.clone(), options.breaker, counters),
            in_force: RwLock::default(),
            gate,
            clock,
            options,
        })
    }

    async fn judge_page(&self, requests: &[Arc<JobRequest>]) -> Result<Vec<Judgement>, CallFailure> {
        let subjects = requests.iter().map(|request| subject_to_wire(request)).collect();
        let mut kernel = self.kernel.clone();
        let asked = kernel.check_batch(v1::CheckBatchRequest { subjects });
        let answer = self.input.call(self.options.answer_within, asked).await;
        // With a wrong number of verdicts none can be matched to its request.
        let verdicts = answer?.verdicts;
        if verdicts.len() != requests.len() {
            return Err(CallFailure::Miscounted { asked: requests.len(), given: verdicts.len() });
        }
        let in_force = self.snapshot();
        let judgement = |wire| {
            let verdict = verdict_from_wire(wire);
            // Judged before or after a change of policy: requested again once the Store knows which policy is in force.
            if verdict.snapshot == in_force {
                return Judgement::Decided(Arc::new(verdict));
            }
            let judged_by = &verdict.snapshot;
            Judgement::unavailable(format!(
                "the safety kernel judged by policy {judged_by}, and {in_force} is in force here"
            ))
        };
        Ok(verdicts.into_iter().map(judgement).collect())
    }

    fn output_rules(&self) -> OutputRules {
        self.in_force.read().rules.clone()
    }

    /// Takes the kernel's report of its policy. None: the policy changed while the kernel reported; the next answer is
    /// consistent again.
    fn take(&self, answer: v1::ListSnapshotsResponse) -> Option<Elsewhere> {
        let mode = if answer.fail_open { FailMode::Open } else { FailMode::Closed };
        let input = InputPolicy { mode, until: answer.fail_open_until_ms.map(Timestamp::from_millis) };
        let id: Arc<str> = answer.snapshots.into_iter().next()?.into();
        let mut in_force = self.in_force.write();
        in_force.input = input;
        if in_force.known() == &*id {
            return Some(in_force.policy.clone());
        }
        let policy = Elsewhere { id, text: answer.policy_text.into() };
        let (rules, errors) = rules(&policy).ok()?;
        if !errors.is_empty() && in_force.policy.id != policy.id {
            tracing::error!(snapshot = %policy.id, ?errors, "the output rules in force cannot be read here; results are held");
        }
        *in_force = ActivePolicies { policy: policy.clone(), input, rules };
        Some(policy)
    }
}

#[async_trait]
impl Kernel for RemoteKernel {
    async fn judge(&self, requests: &[Arc<JobRequest>]) -> Vec<Judgement> {
        let mut judgements = Vec::with_capacity(requests.len());
        let mut pages: VecDeque<&[Arc<JobRequest>]> = pages(requests).into();
        while let Some(page) = pages.pop_front() {
            match self.judge_page(page).await {
                Ok(judged) => judgements.extend(judged),
                // The message is too large, or contains a request that the kernel cannot take: halve it, so that the other
                // requests are answered.
                Err(CallFailure::Refused(_)) if page.len() > 1 => {
                    let (first, second) = page.split_at(page.len() / 2);
                    pages.push_front(second);
                    pages.push_front(first);
                }
                Err(why) => judgements.extend(vec![Judgement::unavailable(why.to_string()); page.len()]),
            }
        }
        judgements
    }

    async fn explain(&self, request: &JobRequest) -> Option<Explanation> {
        let mut kernel = self.kernel.clone();
        let asked = kernel.explain(v1::ExplainRequest { subject: Some(subject_to_wire(request)) });
        self.input.call(self.options.answer_within, asked).await.ok().and_then(explanation_from_wire)
    }

    /// Velocity windows are counted in the kernel, so here every window is empty.
    fn simulate(&self, policy: &Policy, request: &JobRequest) -> Arc<Verdict> {
        policy.evaluate(&Subject::new(request, self.clock.now()), &NoVelocity)
    }

    fn snapshot(&self) -> Arc<str> {
        self.in_force.read().policy.id.clone()
    }

    /// As the kernel last reported.
    fn input_policy(&self) -> InputPolicy {
        self.in_force.read().input
    }

    fn ready(&self) -> bool {
        self.input.lets_through()
    }

    fn breakers(&self) -> Vec<BreakerView> {
        vec![self.input.view(), self.output.view()]
    }

    fn breaker_moves(&self) -> Vec<BreakerMove> {
        let mut moves = self.input.moves();
        moves.extend(self.output.moves());
        moves
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    async fn decided_elsewhere(&self) -> Option<Elsewhere> {
        // Refreshed from time to time even without scans, so that the breaker shown to people is never old.
        self.output.refresh().await;
        let known = self.in_force.read().known().to_owned();
        let mut kernel = self.kernel.clone();
        let asked = kernel.list_snapshots(v1::ListSnapshotsRequest { known });
        self.take(self.input.call(self.options.answer_within, asked).await.ok()?)
    }

    fn adopt(&self, id: &Arc<str>, text: &str) -> Result<(), Vec<String>> {
        let policy = Elsewhere { id: id.clone(), text: text.into() };
        let (rules, errors) = rules(&policy).unwrap_or_else(|_| (OutputRules::Unknown, Vec::new()));
        let input = match &rules {
            OutputRules::Of(policy) => *policy.input(),
            OutputRules::None | OutputRules::Unknown => InputPolicy::CLOSED,
        };
        *self.in_force.write() = ActivePolicies { policy, input, rules };
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    async fn check_outputs(&self, outputs: &[OutputMeta]) -> Vec<OutputStep> {
        let rules = self.output_rules();
        outputs.iter().map(|output| self.gate.step(&rules, &output.request, output.bytes)).collect()
    }

    fn scans(&self) -> bool {
        self.output.lets_through()
    }

    fn output_fail_mode(&self, request: &JobRequest) -> FailMode {
        self.gate.fail_mode(&self.output_rules(), request)
    }

    async fn scan(&self, output: &OutputContent) -> Option<OutputVerdict> {
        let mut results = self.results.clone();
        let asked = results.check_output(v1::CheckOutputRequest {
            subject: Some(subject_to_wire(&output.request)),
            result_json: json_bytes(&output.result),
        });
        match self.output.call(self.options.scan_within, asked).await {
            Ok(answer) => Some(output_verdict_from_wire(answer)),
            Err(CallFailure::Refused(why)) => {
                let bytes = output.result.as_str().len();
                self.gate.unreadable(&self.output_rules(), &output.request, bytes, &why)
            }
            Err(_) => None,
        }
    }

    fn clean(&self, request: &JobRequest, text: Arc<str>) -> Arc<str> {
        self.gate.clean(&self.output_rules(), request, text)
    }
}

/// Splits requests into calls that fit the kernel's message limit.
fn pages(mut requests: &[Arc<JobRequest>]) -> Vec<&[Arc<JobRequest>]> {
    let mut pages = Vec::new();
    while !requests.is_empty() {
        let mut bytes = 0;
        let fits = |request: &&Arc<JobRequest>| {
            bytes += weight(request);
            bytes <= PAGE_BYTES_MAX
        };
        let count = requests.iter().take(PAGE_MAX).take_while(fits).count().max(1);
        let (page, rest) = requests.split_at(count);
        pages.push(page);
        requests = rest;
    }
    pages
}

/// The approximate size of a request in a message: the fields whose size clients choose.
fn weight(request: &JobRequest) -> usize {
    let pairs = request.labels.iter().chain(&request.env);
    request.payload.as_str().len() + pairs.map(|(name, value)| name.len() + value.len()).sum::<usize>()
}

struct NoVelocity;

impl Velocity for NoVelocity {
    fn count(&self, _window: &VelocityWindow<'_>) -> u64 {
        1
    }
}
