//! Questions to people and their answers, as the REST contract has them.

use std::collections::BTreeMap;

use lockgate_proto::v1;
use serde::Serialize;

use super::convert::{document, present, sorted, state, time};
use super::{Json, Moment};

#[derive(Debug, Serialize)]
pub(crate) struct AskedApproval {
    pub(crate) rule: String,
    pub(crate) rule_hash: String,
    pub(crate) approvers_needed: u32,
    pub(crate) votes: Vec<Vote>,
    pub(crate) asked_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) granted_at: Option<Moment>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Vote {
    pub(crate) actor: String,
    pub(crate) at: Option<Moment>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) payload_hidden: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Approvals {
    pub(crate) approvals: Vec<Approval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Approval {
    pub(crate) job_id: String,
    pub(crate) topic: String,
    pub(crate) submitter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Json>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) payload_hidden: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capability: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) risk_tags: Vec<String>,
    pub(crate) rule: String,
    pub(crate) reason: String,
    pub(crate) request_hash: String,
    pub(crate) rule_hash: String,
    pub(crate) approvers_needed: u32,
    pub(crate) approved_by: Vec<String>,
    pub(crate) asked_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Moment>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answered {
    pub(crate) job_id: String,
    pub(crate) state: &'static str,
    pub(crate) approved_by: Vec<String>,
    pub(crate) approvers_needed: u32,
}

impl From<v1::AskedApproval> for AskedApproval {
    fn from(asked: v1::AskedApproval) -> Self {
        let vote = |vote: v1::asked_approval::Vote| Vote {
            actor: vote.actor,
            at: time(vote.at_ms),
            payload_hidden: vote.payload_hidden,
        };
        Self {
            rule: asked.rule,
            rule_hash: asked.rule_hash,
            approvers_needed: asked.approvers_needed,
            votes: asked.votes.into_iter().map(vote).collect(),
            asked_at: time(asked.asked_at_ms),
            expires_at: asked.expires_at_ms.and_then(time),
            granted_at: asked.granted_at_ms.and_then(time),
        }
    }
}

impl From<v1::ListApprovalsResponse> for Approvals {
    fn from(response: v1::ListApprovalsResponse) -> Self {
        Self {
            approvals: response.approvals.into_iter().map(Approval::from).collect(),
            next_cursor: present(response.next_cursor),
        }
    }
}

impl From<v1::Approval> for Approval {
    fn from(approval: v1::Approval) -> Self {
        Self {
            job_id: approval.job_id,
            topic: approval.topic,
            submitter: approval.submitter,
            payload: document(&approval.payload_json),
            payload_hidden: approval.payload_hidden,
            labels: sorted(approval.labels),
            capability: present(approval.capability),
            risk_tags: approval.risk_tags,
            rule: approval.rule,
            reason: approval.reason,
            request_hash: approval.request_hash,
            rule_hash: approval.rule_hash,
            approvers_needed: approval.approvers_needed,
            approved_by: approval.approved_by,
            asked_at: time(approval.asked_at_ms),
            expires_at: approval.expires_at_ms.and_then(time),
        }
    }
}

impl Approval {
    /// What was asked about a job, if anything was.
    pub(crate) fn of(job: v1::Job) -> Option<Self> {
        let asked = job.approval?;
        Some(Self {
            job_id: job.job_id,
            topic: job.topic,
            submitter: job.actor,
            payload: document(&job.payload_json),
            payload_hidden: job.payload_hidden,
            labels: sorted(job.labels),
            capability: present(job.capability),
            risk_tags: job.risk_tags,
            rule: asked.rule,
            reason: job.verdict.map(|verdict| verdict.reason).unwrap_or_default(),
            request_hash: job.request_hash,
            rule_hash: asked.rule_hash,
            approvers_needed: asked.approvers_needed,
            approved_by: asked.votes.into_iter().map(|vote| vote.actor).collect(),
            asked_at: time(asked.asked_at_ms),
            expires_at: asked.expires_at_ms.and_then(time),
        })
    }
}

impl From<v1::AnswerApprovalResponse> for Answered {
    fn from(response: v1::AnswerApprovalResponse) -> Self {
        Self {
            state: state(response.state()),
            job_id: response.job_id,
            approved_by: response.approved_by,
            approvers_needed: response.approvers_needed,
        }
    }
}
