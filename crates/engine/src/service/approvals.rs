//! Questions that policy puts to people, and their answers.

use std::sync::Arc;

use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::{Answer, Approval, Ballot, Duty, Illegal, Input, Job, Sight, Vote};
use lockgate_core::request::{Caller, RequestHash};
use lockgate_core::time::Timestamp;
use lockgate_ports::Cursor;

use crate::Engine;
use crate::error::ApiError;

/// One person's answer, as it comes in.
#[derive(Clone, Debug)]
pub struct ApprovalAnswer {
    pub job_id: JobId,
    pub answer: Answer,
    pub note: Option<Arc<str>>,
    /// What is answered, as the person saw it.
    pub request_hash: RequestHash,
    pub rule_hash: Arc<str>,
    /// The person knows that the payload is hidden from them. Asked of those only who may not see payloads.
    pub acknowledge_hidden: bool,
}

/// Rows looked at for one page, so that a tenant with nothing to answer costs a bounded read.
const ROWS_MAX: usize = 1_000;

impl Engine {
    /// Open questions of the caller's tenant, oldest first, and where the list goes on.
    pub async fn approvals(
        &self,
        caller: &Caller,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Job>, Option<Cursor>), ApiError> {
        if !(1..=ROWS_MAX).contains(&limit) {
            return Err(ApiError::invalid("limit", format_args!("must be between 1 and {ROWS_MAX}")));
        }
        let after = JobSeq(cursor.map_or(0, |cursor| cursor.0));
        let rows = self.inner.ports.store.owing(Duty::Approve, after, ROWS_MAX).await?;
        let more = rows.len() == ROWS_MAX;
        let last_read = rows.last().map(|job| Cursor(job.seq.0));
        let mut own: Vec<Job> = rows.into_iter().filter(|job| job.request.tenant == caller.tenant).collect();
        if !caller.sees_payloads {
            own.iter_mut().for_each(Job::hide);
        }
        if own.len() > limit {
            own.truncate(limit);
            let next = own.last().map(|job| Cursor(job.seq.0));
            return Ok((own, next));
        }
        Ok((own, last_read.filter(|_| more)))
    }

    /// Answers a question. The same answer of the same person twice is one answer. The job in the answer has the question that was
    /// answered, also where the job itself goes on without it.
    pub async fn answer(&self, caller: &Caller, answer: ApprovalAnswer) -> Result<Job, ApiError> {
        let job = self.inner.find(caller, &answer.job_id).await?;
        let ballot = Ballot {
            actor: caller.actor.clone(),
            answer: answer.answer,
            note: answer.note,
            request_hash: answer.request_hash,
            rule_hash: answer.rule_hash,
            sight: match (caller.sees_payloads, answer.acknowledge_hidden) {
                (true, _) => Sight::Whole,
                (false, false) => Sight::Hidden,
                (false, true) => Sight::HiddenAcknowledged,
            },
        };
        let asked = job.life.approval.clone().map(|asked| with_vote(asked, &ballot, self.inner.ports.clock.now()));
        match self.inner.clone().drive_one(caller, job, Input::Vote(ballot)).await {
            Ok(job) => {
                let mut job = Job::clone(&job);
                let kept = job.life.approval.as_ref().map(|kept| &kept.rule_hash);
                if kept != asked.as_ref().map(|asked| &asked.rule_hash) {
                    job.life.approval = asked;
                }
                Ok(job)
            }
            Err(ApiError::State(Illegal::AlreadyVoted)) if answer.answer == Answer::Approve => {
                Ok(Job::clone(&*self.inner.find(caller, &answer.job_id).await?))
            }
            Err(error) => Err(error),
        }
    }
}

/// The question with one more answer.
fn with_vote(mut asked: Approval, ballot: &Ballot, now: Timestamp) -> Approval {
    if ballot.answer == Answer::Approve {
        let payload_hidden = ballot.sight != Sight::Whole;
        asked.votes.push(Vote { actor: ballot.actor.clone(), at: now, payload_hidden });
    }
    asked
}
