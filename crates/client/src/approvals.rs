//! Approvals: what waits for a person, and the answers of people.

use std::collections::HashMap;

use lockgate_proto::v1;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::builder::Client;
use crate::error::ClientError;
use crate::record::raw;
use crate::state::JobState;

/// A job that waits for approval.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PendingApproval {
    pub job_id: String,
    pub topic: String,
    pub submitter: String,
    /// None if the caller may not read payloads.
    pub payload: Option<Box<RawValue>>,
    pub payload_hidden: bool,
    pub labels: HashMap<String, String>,
    /// The rule that asks, and why.
    pub rule: String,
    pub reason: String,
    /// What an answer is bound to: the request and the rule's text.
    pub request_hash: String,
    pub rule_hash: String,
    pub approvers_needed: u32,
    pub approved_by: Vec<String>,
    pub asked_at_ms: i64,
    pub expires_at_ms: Option<i64>,
}

/// An answer to an approval, bound to the request and the rule that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalVote {
    pub job_id: String,
    pub request_hash: String,
    pub rule_hash: String,
    /// Kept in the history of the job.
    pub note: String,
    /// The caller approves without having seen the payload, which its credential hides.
    pub acknowledge_hidden: bool,
}

/// Where a job stands after an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalAnswered {
    pub job_id: String,
    pub state: JobState,
    pub approved_by: Vec<String>,
    pub approvers_needed: u32,
}

impl Client {
    /// A page of what waits for an approval, and the cursor of the next page if there is one.
    pub async fn pending_approvals(
        &self,
        limit: u32,
        cursor: &str,
    ) -> Result<(Vec<PendingApproval>, Option<String>), ClientError> {
        let request = v1::ListApprovalsRequest { limit, cursor: cursor.to_owned() };
        let mut approvals = self.approvals();
        let page = self.answer(approvals.list_approvals(request)).await?;
        let next = Some(page.next_cursor).filter(|cursor| !cursor.is_empty());
        Ok((page.approvals.into_iter().map(Into::into).collect(), next))
    }

    /// A vote on what a job asks for now, whatever the caller has read of it.
    pub async fn vote_on(&self, job_id: &str) -> Result<ApprovalVote, ClientError> {
        let mut scheduler = self.scheduler();
        let job = self.answer(scheduler.get_job(v1::GetJobRequest { job_id: job_id.to_owned() })).await?;
        Ok(ApprovalVote {
            job_id: job.job_id,
            request_hash: job.request_hash,
            // Without one the server says that nothing waits for an answer.
            rule_hash: job.approval.map(|approval| approval.rule_hash).unwrap_or_default(),
            ..ApprovalVote::default()
        })
    }

    /// Approves what was read: if the request or the rule was changed since, this is a conflict.
    pub async fn approve(&self, vote: ApprovalVote) -> Result<ApprovalAnswered, ClientError> {
        let mut approvals = self.approvals();
        self.answer(approvals.approve(v1::AnswerApprovalRequest::from(vote))).await.map(Into::into)
    }

    /// Rejects a job: it ends as DENIED.
    pub async fn reject(&self, vote: ApprovalVote) -> Result<ApprovalAnswered, ClientError> {
        let mut approvals = self.approvals();
        self.answer(approvals.reject(v1::AnswerApprovalRequest::from(vote))).await.map(Into::into)
    }
}

impl From<&PendingApproval> for ApprovalVote {
    fn from(approval: &PendingApproval) -> Self {
        Self {
            job_id: approval.job_id.clone(),
            request_hash: approval.request_hash.clone(),
            rule_hash: approval.rule_hash.clone(),
            ..Self::default()
        }
    }
}

impl From<ApprovalVote> for v1::AnswerApprovalRequest {
    fn from(vote: ApprovalVote) -> Self {
        Self {
            job_id: vote.job_id,
            request_hash: vote.request_hash,
            rule_hash: vote.rule_hash,
            note: vote.note,
            acknowledge_hidden: vote.acknowledge_hidden,
        }
    }
}

impl From<v1::Approval> for PendingApproval {
    fn from(approval: v1::Approval) -> Self {
        Self {
            payload: raw(&approval.payload_json),
            job_id: approval.job_id,
            topic: approval.topic,
            submitter: approval.submitter,
            payload_hidden: approval.payload_hidden,
            labels: approval.labels,
            rule: approval.rule,
            reason: approval.reason,
            request_hash: approval.request_hash,
            rule_hash: approval.rule_hash,
            approvers_needed: approval.approvers_needed,
            approved_by: approval.approved_by,
            asked_at_ms: approval.asked_at_ms,
            expires_at_ms: approval.expires_at_ms,
        }
    }
}

impl From<v1::AnswerApprovalResponse> for ApprovalAnswered {
    fn from(answer: v1::AnswerApprovalResponse) -> Self {
        Self {
            job_id: answer.job_id,
            state: JobState::from_wire(answer.state),
            approved_by: answer.approved_by,
            approvers_needed: answer.approvers_needed,
        }
    }
}
