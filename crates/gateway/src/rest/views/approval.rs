//! Questions to people and their answers.

use std::collections::BTreeMap;

use lockgate_core::job as core;
use lockgate_ports::Cursor;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::names::JobStateName;
use super::{Name, Time, document};
use crate::queries::cursor_text;

#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalList)]
pub(in crate::rest) struct Approvals {
    approvals: Vec<Approval>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A question, and what it is about. The hashes must come back with the answer.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Approval {
    job_id: String,
    topic: String,
    submitter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Payload and environment are hidden from this caller, who approves only with `acknowledge_hidden`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    payload_hidden: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risk_tags: Vec<String>,
    rule: String,
    reason: String,
    request_hash: String,
    rule_hash: String,
    approvers_needed: u32,
    approved_by: Vec<String>,
    asked_at: Time,
    /// Unanswered until then, the job is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
}

/// What a job's approval has come to.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Answered {
    job_id: String,
    state: JobStateName,
    approved_by: Vec<String>,
    approvers_needed: u32,
}

/// What people were asked about a job, and said.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct AskedApproval {
    rule: String,
    rule_hash: String,
    approvers_needed: u32,
    votes: Vec<Vote>,
    asked_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_at: Option<Time>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Vote {
    actor: String,
    at: Time,
    /// Given without sight of the payload, and acknowledged as such.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    payload_hidden: bool,
}

impl Approvals {
    pub(in crate::rest) fn new(jobs: &[core::Job], payload_hidden: bool, next: Option<Cursor>) -> Self {
        let approvals = jobs.iter().filter_map(|job| Approval::of(job, payload_hidden)).collect();
        Self { approvals, next_cursor: next.map(cursor_text) }
    }
}

impl Approval {
    /// The question a job waits with, if it does.
    fn of(job: &core::Job, payload_hidden: bool) -> Option<Self> {
        let (request, asked) = (&job.request, job.life.approval.as_ref()?);
        let verdict = job.life.attempt.verdict.as_ref();
        Some(Self {
            job_id: request.job_id.to_string(),
            topic: request.topic.to_string(),
            submitter: request.actor.to_string(),
            payload: if payload_hidden { None } else { document(&request.payload) },
            payload_hidden,
            labels: request.labels.clone(),
            capability: request.capability.as_ref().map(ToString::to_string),
            risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
            rule: asked.rule.to_string(),
            reason: verdict.map(|verdict| verdict.reason.to_string()).unwrap_or_default(),
            request_hash: job.hash.to_string(),
            rule_hash: asked.rule_hash.to_string(),
            approvers_needed: asked.terms.approvers,
            approved_by: approved_by(asked),
            asked_at: Time(asked.asked_at),
            expires_at: asked.expires_at().map(Time),
        })
    }
}

fn approved_by(asked: &core::Approval) -> Vec<String> {
    asked.votes.iter().map(|vote| vote.actor.to_string()).collect()
}

impl From<&core::Job> for Answered {
    fn from(job: &core::Job) -> Self {
        let asked = job.life.approval.as_ref();
        Self {
            job_id: job.request.job_id.to_string(),
            state: Name(job.state()),
            approved_by: asked.map(approved_by).unwrap_or_default(),
            approvers_needed: asked.map_or(0, |asked| asked.terms.approvers),
        }
    }
}

impl From<&core::Approval> for AskedApproval {
    fn from(asked: &core::Approval) -> Self {
        let vote = |vote: &core::Vote| Vote {
            actor: vote.actor.to_string(),
            at: Time(vote.at),
            payload_hidden: vote.payload_hidden,
        };
        Self {
            rule: asked.rule.to_string(),
            rule_hash: asked.rule_hash.to_string(),
            approvers_needed: asked.terms.approvers,
            votes: asked.votes.iter().map(vote).collect(),
            asked_at: Time(asked.asked_at),
            expires_at: asked.expires_at().map(Time),
            granted_at: asked.granted_at.map(Time),
        }
    }
}
