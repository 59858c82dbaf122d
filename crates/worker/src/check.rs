//! Handlers ask policy before they do something that cannot be undone.

use std::time::Duration;

use lockgate_proto::v1::safety_kernel_client::SafetyKernelClient;
use lockgate_proto::v1::{Action, CheckRequest, Decision, Verdict, check_request::What};
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;

use crate::context::Context;
use crate::error::JobError;

/// After this time the check counts as unanswered.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The action that a handler is about to take.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Call a tool, by name.
    Tool(&'a str),
    /// Open an address.
    Url(&'a str),
    /// Run a command.
    Command(&'a str),
}

impl Context {
    /// Asks policy whether this attempt may take the action. The verdict is recorded with the attempt. `detail` is one JSON
    /// value that rules may match on.
    ///
    /// A refusal is a fatal error with the rule and its reason; a missing answer is a retryable one. So after
    /// `ctx.check(…).await?` a handler continues only if the action is allowed.
    pub async fn check(&self, act: Act<'_>, detail: &serde_json::Value) -> Result<(), JobError> {
        let (kind, value) = match act {
            Act::Tool(name) => ("tool", name),
            Act::Url(address) => ("url", address),
            Act::Command(line) => ("command", line),
        };
        let verdict = self.ask(kind, value, detail).await?;
        match verdict.decision() {
            Decision::Allow | Decision::AllowWithConstraints => Ok(()),
            Decision::Throttle => Err(JobError::retryable(format!("policy slows {kind} {value} down: {}", verdict.reason))),
            _ => Err(JobError::fatal(format!("policy refuses {kind} {value} (rule {}): {}", verdict.rule, verdict.reason))),
        }
    }

    async fn ask(&self, kind: &str, value: &str, detail: &serde_json::Value) -> Result<Verdict, JobError> {
        let channel = self.channel().ok_or_else(|| JobError::retryable("not attached to a server that could be asked"))?;
        let action = Action {
            job_id: self.job_id().to_owned(),
            token: self.token().to_owned(),
            kind: kind.to_owned(),
            value: value.to_owned(),
            detail_json: detail.to_string().into_bytes().into(),
        };
        let mut request = Request::new(CheckRequest { what: Some(What::Action(action)) });
        let tenant = AsciiMetadataValue::try_from(self.tenant()).map_err(JobError::fatal)?;
        request.metadata_mut().insert("x-lockgate-tenant", tenant);
        let mut kernel = SafetyKernelClient::new(channel);
        let answer = tokio::time::timeout(ANSWER_WITHIN, kernel.check(request)).await;
        let answer = answer.map_err(|_| JobError::retryable(format!("policy did not answer within {ANSWER_WITHIN:?}")))?;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| JobError::retryable(format!("policy could not be asked: {}", status.message())))
    }
}
