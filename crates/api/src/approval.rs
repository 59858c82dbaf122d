//! Questions to people and their answers: from core to protobuf, and from there to JSON.

use std::collections::BTreeMap;

use lockgate_core::job as core;
use lockgate_core::time::Timestamp;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::name_set::JobStateName;
use crate::time::Time;
use crate::{ToWire, document, json_bytes, present, text};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApprovalList)]
pub struct Approvals {
    pub approvals: Vec<Approval>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A question, and what it is about. The hashes must come back with the answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct Approval {
    pub job_id: String,
    pub topic: String,
    pub submitter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Payload and environment are hidden from this caller, who approves only with `acknowledge_hidden`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risk_tags: Vec<String>,
    pub rule: String,
    pub reason: String,
    pub request_hash: String,
    pub rule_hash: String,
    pub approvers_needed: u32,
    pub approved_by: Vec<String>,
    pub asked_at: Time,
    /// Unanswered until then, the job is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// What a job's approval has come to.
#[derive(Debug, Serialize, ToSchema)]
pub struct Answered {
    pub job_id: String,
    pub state: JobStateName,
    pub approved_by: Vec<String>,
    pub approvers_needed: u32,
}

/// What people were asked about a job, and said.
#[derive(Debug, Serialize, ToSchema)]
pub struct AskedApproval {
    pub rule: String,
    pub rule_hash: String,
    pub approvers_needed: u32,
    pub votes: Vec<Vote>,
    pub asked_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_at: Option<Time>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Vote {
    pub actor: String,
    pub at: Time,
    /// Given without sight of the payload, and acknowledged as such.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub payload_hidden: bool,
}

/// An answer to the question policy asked.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Answer)]
pub struct AnswerBody {
    /// What is answered, as it was seen: the job's.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub request_hash: String,
    /// The rule's that asks.
    pub rule_hash: String,
    /// Why, for the records.
    pub note: Option<String>,
    /// The caller knows that the payload is hidden from them. Without it such a caller cannot approve; rejecting needs nothing.
    #[serde(default)]
    pub acknowledge_hidden: bool,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewNote)]
pub struct NoteBody {
    /// Why, for the records.
    pub note: Option<String>,
}

/// The question a job waits with, if it does.
pub fn approval(job: &core::Job, payload_hidden: bool) -> Option<v1::Approval> {
    let (request, asked) = (&job.request, job.life.approval.as_ref()?);
    let verdict = job.life.attempt.verdict.as_ref();
    Some(v1::Approval {
        job_id: request.job_id.to_string(),
        topic: request.topic.to_string(),
        submitter: request.actor.to_string(),
        payload_json: if payload_hidden { Default::default() } else { json_bytes(&request.payload) },
        payload_hidden,
        labels: request.labels.clone().into_iter().collect(),
        rule: asked.rule.to_string(),
        reason: verdict.map(|verdict| verdict.reason.to_string()).unwrap_or_default(),
        request_hash: job.hash.to_string(),
        rule_hash: asked.rule_hash.to_string(),
        approvers_needed: asked.terms.approvers,
        approved_by: approved_by(asked),
        asked_at_ms: asked.asked_at.as_millis(),
        expires_at_ms: asked.expires_at().map(Timestamp::as_millis),
        capability: text(request.capability.as_deref()),
        risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
    })
}

/// What a job's approval has come to.
pub fn answered(job: &core::Job) -> v1::AnswerApprovalResponse {
    let asked = job.life.approval.as_ref();
    v1::AnswerApprovalResponse {
        job_id: job.request.job_id.to_string(),
        state: job.state().to_wire().into(),
        approved_by: asked.map(approved_by).unwrap_or_default(),
        approvers_needed: asked.map_or(0, |asked| asked.terms.approvers),
    }
}

fn approved_by(asked: &core::Approval) -> Vec<String> {
    asked.votes.iter().map(|vote| vote.actor.to_string()).collect()
}

impl ToWire for core::Approval {
    type Wire = v1::AskedApproval;

    fn to_wire(&self) -> v1::AskedApproval {
        let vote = |vote: &core::Vote| v1::asked_approval::Vote {
            actor: vote.actor.to_string(),
            at_ms: vote.at.as_millis(),
            payload_hidden: vote.payload_hidden,
        };
        v1::AskedApproval {
            rule: self.rule.to_string(),
            rule_hash: self.rule_hash.to_string(),
            approvers_needed: self.terms.approvers,
            votes: self.votes.iter().map(vote).collect(),
            asked_at_ms: self.asked_at.as_millis(),
            expires_at_ms: self.expires_at().map(Timestamp::as_millis),
            granted_at_ms: self.granted_at.map(Timestamp::as_millis),
        }
    }
}

impl From<v1::AskedApproval> for AskedApproval {
    fn from(wire: v1::AskedApproval) -> Self {
        let vote = |vote: v1::asked_approval::Vote| Vote {
            actor: vote.actor,
            at: Time::from_millis(vote.at_ms),
            payload_hidden: vote.payload_hidden,
        };
        Self {
            rule: wire.rule,
            rule_hash: wire.rule_hash,
            approvers_needed: wire.approvers_needed,
            votes: wire.votes.into_iter().map(vote).collect(),
            asked_at: Time::from_millis(wire.asked_at_ms),
            expires_at: wire.expires_at_ms.map(Time::from_millis),
            granted_at: wire.granted_at_ms.map(Time::from_millis),
        }
    }
}

impl Approval {
    /// What was asked about a job, if anything was.
    pub fn of(job: v1::Job) -> Option<Self> {
        let asked = job.approval?;
        Some(Self::from(v1::Approval {
            job_id: job.job_id,
            topic: job.topic,
            submitter: job.actor,
            payload_json: job.payload_json,
            payload_hidden: job.payload_hidden,
            labels: job.labels,
            rule: asked.rule,
            reason: job.verdict.map(|verdict| verdict.reason).unwrap_or_default(),
            request_hash: job.request_hash,
            rule_hash: asked.rule_hash,
            approvers_needed: asked.approvers_needed,
            approved_by: asked.votes.into_iter().map(|vote| vote.actor).collect(),
            asked_at_ms: asked.asked_at_ms,
            expires_at_ms: asked.expires_at_ms,
            capability: job.capability,
            risk_tags: job.risk_tags,
        }))
    }
}

impl From<v1::Approval> for Approval {
    fn from(wire: v1::Approval) -> Self {
        Self {
            job_id: wire.job_id,
            topic: wire.topic,
            submitter: wire.submitter,
            payload: document(&wire.payload_json),
            payload_hidden: wire.payload_hidden,
            labels: wire.labels.into_iter().collect(),
            capability: present(wire.capability),
            risk_tags: wire.risk_tags,
            rule: wire.rule,
            reason: wire.reason,
            request_hash: wire.request_hash,
            rule_hash: wire.rule_hash,
            approvers_needed: wire.approvers_needed,
            approved_by: wire.approved_by,
            asked_at: Time::from_millis(wire.asked_at_ms),
            expires_at: wire.expires_at_ms.map(Time::from_millis),
        }
    }
}

impl From<v1::ListApprovalsResponse> for Approvals {
    fn from(wire: v1::ListApprovalsResponse) -> Self {
        Self { approvals: wire.approvals.into_iter().map(Approval::from).collect(), next_cursor: present(wire.next_cursor) }
    }
}

impl From<v1::AnswerApprovalRequest> for AnswerBody {
    /// Without the job, which REST names in the path.
    fn from(wire: v1::AnswerApprovalRequest) -> Self {
        let v1::AnswerApprovalRequest { job_id: _, request_hash, rule_hash, note, acknowledge_hidden } = wire;
        Self { request_hash, rule_hash, note: present(note), acknowledge_hidden }
    }
}

impl From<v1::AnswerApprovalResponse> for Answered {
    fn from(wire: v1::AnswerApprovalResponse) -> Self {
        Self {
            state: wire.state().into(),
            job_id: wire.job_id,
            approved_by: wire.approved_by,
            approvers_needed: wire.approvers_needed,
        }
    }
}
