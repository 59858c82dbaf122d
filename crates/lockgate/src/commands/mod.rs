//! One file a command.

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod breaker;
pub(crate) mod cancel;
pub(crate) mod chaos;
pub(crate) mod completions;
mod config;
pub(crate) mod dag;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod force_retry;
pub(crate) mod get;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod load;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod policy;
pub(crate) mod pools;
pub(crate) mod queues;
pub(crate) mod quotas;
pub(crate) mod release;
pub(crate) mod retry;
pub(crate) mod saga;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod submit;
pub(crate) mod tenants;
pub(crate) mod timeouts;
pub(crate) mod top;
pub(crate) mod watch;
pub(crate) mod why;
pub(crate) mod worker;
pub(crate) mod workers;

use lockgate_api::ToWire;
use lockgate_api::view;
use lockgate_core::job::JobState;
use lockgate_core::lane::Priority;
use lockgate_proto::v1;

use crate::error::Exit;
use crate::output::{Output, TableCell, Tone};

/// What the end of a job means for a script that waited for it.
fn end_of(job: &v1::Job) -> Exit {
    if job.state() == v1::JobState::Succeeded { Exit::Success } else { Exit::JobEndedBadly }
}

/// The wire has an extra value for "not said".
fn wire_priority(priority: Option<Priority>) -> v1::Priority {
    priority.map_or(v1::Priority::Unspecified, |priority| priority.to_wire())
}

fn wire_state(state: Option<JobState>) -> v1::JobState {
    state.map_or(v1::JobState::Unspecified, |state| state.to_wire())
}

/// A verdict and its grounds, and what would help against a refusal.
fn verdict_text(verdict: &view::Verdict, out: Output) -> String {
    let tone = match &*verdict.decision {
        "allow" | "allow_with_constraints" => Tone::Good,
        "deny" => Tone::Bad,
        _ => Tone::Waiting,
    };
    let mut fields = vec![
        ("decision", TableCell::text(&verdict.decision).toned(tone)),
        ("rule", TableCell::text(&verdict.rule)),
        ("reason", TableCell::text(&verdict.reason)),
        ("policy", TableCell::text(&verdict.snapshot)),
    ];
    if let Some(constraints) = &verdict.constraints {
        fields.push(("constraints", TableCell::text(constraints_text(constraints))));
    }
    let remedies = remedies(verdict);
    let text = out.fields(&fields);
    if remedies.is_empty() { text } else { format!("{text}\n\n{remedies}") }
}

/// `network=deny max_runtime_ms=500`.
fn constraints_text(constraints: &view::Constraints) -> String {
    let number = |name: &str, number: Option<u64>| number.map(|number| format!("{name}={number}"));
    let word = |name: &str, word: Option<&str>| word.map(|word| format!("{name}={word}"));
    let pools = constraints.allowed_pools.as_ref().map(|pools| pools.join(","));
    let parts = [
        number("max_runtime_ms", constraints.max_runtime_ms),
        number("max_retries", constraints.max_retries.map(u64::from)),
        number("max_output_bytes", constraints.max_output_bytes),
        number("max_concurrent", constraints.max_concurrent.map(u64::from)),
        word("allowed_pools", pools.as_deref()),
        word("network", constraints.network.as_deref()),
        word("exec", constraints.exec.as_deref()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What the submitter could change to be allowed, a line each.
fn remedies(verdict: &view::Verdict) -> String {
    let line = |remediation: &view::Remediation| {
        let summary = remediation.summary.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        let topic = remediation.replacement_topic.as_ref().map(|topic| format!(" (use {topic})")).unwrap_or_default();
        format!("- {}{summary}{topic}", remediation.title)
    };
    verdict.remediations.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_priority_has_its_value_on_the_wire() {
        for state in JobState::ALL {
            assert_eq!(&*view::JobStateName::from(wire_state(Some(state))), state.as_str());
        }
        for priority in Priority::ALL {
            let name = format!("PRIORITY_{}", priority.as_str().to_uppercase());
            assert_eq!(wire_priority(Some(priority)).as_str_name(), name);
        }
        assert_eq!(wire_state(None), v1::JobState::Unspecified);
    }

    #[test]
    fn only_a_job_that_succeeded_ended_well() {
        for state in JobState::ALL {
            let job = v1::Job { state: wire_state(Some(state)).into(), ..v1::Job::default() };
            assert_eq!(end_of(&job) == Exit::Success, state == JobState::Succeeded);
        }
    }
}
