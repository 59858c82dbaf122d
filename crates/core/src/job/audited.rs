//! Which events of a job enter the audit trail: refusals and questions of policy, and decisions of people.

use std::net::IpAddr;

use serde::Serialize;

use super::{EventKind, JobEvent, Transition};
use crate::audit::{AuditAction, AuditEntry};
use crate::ids::ActorId;
use crate::request::Json;

/// The actor of audit entries for the platform's own acts.
const PLATFORM: &str = "lockgate";

impl Transition {
    /// G-5: audit entries are derived from the events of a commit, so that no decision can be committed without its entry.
    pub fn audit(&self) -> Vec<AuditEntry> {
        self.events.iter().filter_map(|event| self.entry(event)).collect()
    }

    fn entry(&self, event: &JobEvent) -> Option<AuditEntry> {
        let action = match event.kind {
            EventKind::Denied => AuditAction::JobDenied,
            EventKind::ApprovalRequired => AuditAction::ApprovalAsked,
            EventKind::Approved => AuditAction::Approved,
            EventKind::Replayed => AuditAction::JobReplayed,
            EventKind::RetryForced => AuditAction::RetryForced,
            EventKind::Discarded => AuditAction::DeadLetterDiscarded,
            EventKind::OutputRedacted => AuditAction::OutputRedacted,
            EventKind::OutputQuarantined => AuditAction::OutputQuarantined,
            EventKind::OutputUnchecked => AuditAction::OutputUnchecked,
            EventKind::SafetyBypassed => AuditAction::SafetyBypassed,
            EventKind::BypassRefused => AuditAction::BypassRefused,
            EventKind::ActionRefused => AuditAction::ActionRefused,
            EventKind::Released => AuditAction::OutputReleased,
            EventKind::Cancelled if event.actor.is_some() => AuditAction::JobCancelled,
            _ => return None,
        };
        let request = &self.job.request;
        Some(AuditEntry {
            at: event.at,
            tenant: request.tenant.clone(),
            actor: event.actor.clone().unwrap_or_else(|| ActorId::from(PLATFORM)),
            action,
            subject: request.job_id.as_str().into(),
            detail: detail(self, event),
        })
    }
}

fn detail(transition: &Transition, event: &JobEvent) -> Json {
    #[derive(Serialize)]
    struct Detail<'a> {
        request_hash: String,
        topic: &'a str,
        submitter: &'a str,
        event: &'a JobEvent,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<IpAddr>,
    }
    let request = &transition.job.request;
    let detail = Detail {
        request_hash: transition.job.hash.to_string(),
        topic: request.topic.as_str(),
        submitter: request.actor.as_str(),
        event,
        // Events without an actor are the platform's consequences of a person's act; the person's address does not belong to
        // them.
        source: transition.source.filter(|_| event.actor.is_some()),
    };
    Json::trusted(serde_json::to_string(&detail).unwrap_or_else(|_| "null".to_owned()))
}
