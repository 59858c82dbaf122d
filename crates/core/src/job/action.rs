//! A running attempt asks policy whether it may do one thing: call a tool, open an address, run a command.

use std::sync::Arc;

use super::{Env, EventKind, Illegal, Job, Transition, clipped};
use crate::ids::AttemptToken;
use crate::request::{JobRequest, Json};
use crate::verdict::{Decision, Verdict};

/// What the attempt is about to do.
#[derive(Clone, Debug)]
pub struct Action {
    pub kind: ActionKind,
    /// The tool's name, the address, or the command line.
    pub value: Arc<str>,
    pub detail: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    Tool,
    Url,
    Command,
}

impl ActionKind {
    pub const ALL: [Self; 3] = [Self::Tool, Self::Url, Self::Command];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Url => "url",
            Self::Command => "command",
        }
    }
}

impl Action {
    /// The action as policy sees it: the job's own request with the topic `action.<kind>` and the action as payload, so that
    /// one rule language governs jobs and actions.
    pub fn request(&self, of: &JobRequest) -> JobRequest {
        let payload = format!(
            r#"{{"detail":{},"job_topic":{},"value":{}}}"#,
            self.detail.as_str(),
            quoted(of.topic.as_str()),
            quoted(&self.value)
        );
        JobRequest { topic: format!("action.{}", self.kind.as_str()).into(), payload: Json::trusted(payload), ..of.clone() }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "null".to_owned())
}

impl Job {
    /// Records the verdict as an event of the attempt that asked.
    pub(super) fn checked(
        &self,
        token: &AttemptToken,
        action: &Action,
        verdict: &Verdict,
        env: &Env<'_>,
    ) -> Result<Transition, Illegal> {
        if !self.holds(token) {
            return Err(Illegal::Superseded);
        }
        let allowed = matches!(verdict.decision, Decision::Allow | Decision::AllowWithConstraints);
        let kind = if allowed { EventKind::ActionAllowed } else { EventKind::ActionRefused };
        let message = format!("{} {}: {}", action.kind.as_str(), clipped(&action.value), verdict.reason);
        let rule = format!("{}#{}", verdict.snapshot, verdict.rule);
        let mut transition = Transition::from(self);
        transition.event(kind, env.now, |event| {
            event.rule = Some(rule.into());
            event.message = Some(clipped(&message));
        });
        Ok(transition)
    }
}
