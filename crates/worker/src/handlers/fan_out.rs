//! `job.fan_out`: submits a child for each item, and reports their outcomes.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::children::{Child, ChildOutcome, Wait};
use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FanOutInput {
    /// Of the children.
    topic: String,
    /// One child each, with the item as its payload.
    items: Vec<Value>,
    #[serde(default)]
    max_attempts: Option<u32>,
    /// How long to wait for all of them.
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    on_timeout: OnTimeout,
    /// What happens to the job if a child does not succeed.
    #[serde(default)]
    on_child_failure: OnChildFailure,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnChildFailure {
    /// The job succeeds, and its result names the failed children.
    #[default]
    Report,
    /// The job fails for good.
    Fail,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnTimeout {
    #[default]
    Fail,
    Review,
}

#[derive(Debug, Serialize)]
pub(super) struct FanOutOutput {
    succeeded: usize,
    /// Children that ended otherwise or have not ended.
    failed: usize,
    children: Vec<ChildReport>,
}

impl FanOutOutput {
    /// The error text of a job that fails with its children.
    fn first_failure(&self) -> Option<String> {
        let first = self.children.iter().find(|child| child.error.is_some() || child.state != "SUCCEEDED")?;
        let (total, why) = (self.children.len(), first.error.as_deref().unwrap_or("no reason is known"));
        Some(format!("{} of {total} children did not succeed; {} {}: {why}", self.failed, first.key, first.state))
    }
}

#[derive(Debug, Serialize)]
struct ChildReport {
    key: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn run(context: &Context, payload: &Payload) -> Result<FanOutOutput, JobError> {
    let input: FanOutInput = payload.json()?;
    if context.gathered().is_some() {
        let told = told(context.children().await?);
        return match told.first_failure().filter(|_| input.on_child_failure == OnChildFailure::Fail) {
            Some(error) => Err(JobError::fatal(error)),
            None => Ok(told),
        };
    }
    let child = |(n, item): (usize, &Value)| {
        let child = Child::new(format!("item-{n}"), input.topic.as_str()).payload(item);
        match input.max_attempts {
            Some(attempts) => child.max_attempts(attempts),
            None => child,
        }
    };
    let ids = context.submit_children(input.items.iter().enumerate().map(child)).await?;
    context.log(format!("submitted {} children", ids.len()));
    let wait = input.timeout_ms.map_or_else(Wait::default, |ms| Wait::up_to(Duration::from_millis(ms)));
    Err(JobError::await_children(match input.on_timeout {
        OnTimeout::Fail => wait,
        OnTimeout::Review => wait.or_review(),
    }))
}

fn told(children: Vec<ChildOutcome>) -> FanOutOutput {
    let succeeded = children.iter().filter(|child| child.succeeded()).count();
    let one = |child: ChildOutcome| ChildReport {
        result: child.succeeded().then(|| child.result().ok()).flatten(),
        error: child.failure.map(|(reason, message)| format!("{reason}: {message}")),
        key: child.key,
        state: child.state,
    };
    FanOutOutput { succeeded, failed: children.len() - succeeded, children: children.into_iter().map(one).collect() }
}
