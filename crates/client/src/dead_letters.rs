//! Jobs that ended badly, and their next lives.

use std::collections::HashMap;
use std::time::Duration;

use lockgate_contract::Priority;
use lockgate_proto::v1;
use serde::{Deserialize, Serialize};

use crate::builder::Client;
use crate::error::ClientError;
use crate::new_job::{priority_word, wire_priority};
use crate::state::JobState;

/// A replay works through a list of any length.
const REPLAY_TAKES: u32 = 120;

/// A job that ended badly and can be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLetterRecord {
    pub job_id: String,
    pub tenant: String,
    pub topic: String,
    pub priority: String,
    pub state: JobState,
    /// Why it ended, as a stable code.
    pub reason: String,
    pub message: String,
    pub attempts: u32,
    pub life: u32,
    pub at_ms: i64,
    pub labels: HashMap<String, String>,
}

/// Which dead letters are meant. Conditions add up; an empty filter means all of the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeadLetterFilter {
    pub topic: Option<String>,
    pub priority: Option<Priority>,
    pub reason: Option<String>,
    pub labels: HashMap<String, String>,
    /// Only those that an operator discarded, instead of the open ones. A replay refuses it.
    pub discarded: bool,
}

/// What a replay did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplayCounts {
    /// Dead letters that were meant.
    pub matched: u64,
    /// Jobs that have a new life.
    pub replayed: u64,
    /// Jobs that can be replayed, at most 1,000.
    pub job_ids: Vec<String>,
    /// Jobs for which a quota has no room.
    pub no_room: u64,
    /// Jobs that are not replayed, such as nodes of runs.
    pub left_out: u64,
}

impl Client {
    /// A page of dead letters, and the cursor of the next page if there is one.
    pub async fn dead_letters(
        &self,
        filter: DeadLetterFilter,
        limit: u32,
        cursor: &str,
    ) -> Result<(Vec<DeadLetterRecord>, Option<String>), ClientError> {
        let request = v1::ListDeadLettersRequest { filter: Some(filter.into()), limit, cursor: cursor.to_owned() };
        let mut scheduler = self.scheduler();
        let page = self.answer(scheduler.list_dead_letters(request)).await?;
        let next = Some(page.next_cursor).filter(|cursor| !cursor.is_empty());
        Ok((page.dead_letters.into_iter().map(Into::into).collect(), next))
    }

    /// Gives one dead job a new life.
    pub async fn replay(&self, job_id: &str) -> Result<ReplayCounts, ClientError> {
        let request = v1::ReplayDeadLettersRequest { job_id: job_id.to_owned(), ..v1::ReplayDeadLettersRequest::default() };
        self.send_replay(request).await
    }

    /// Gives all dead jobs that are meant a new life, or with `dry_run` only says which.
    pub async fn replay_all(&self, filter: DeadLetterFilter, dry_run: bool) -> Result<ReplayCounts, ClientError> {
        let filter = Some(filter.into());
        self.send_replay(v1::ReplayDeadLettersRequest { filter, dry_run, ..v1::ReplayDeadLettersRequest::default() }).await
    }

    async fn send_replay(&self, request: v1::ReplayDeadLettersRequest) -> Result<ReplayCounts, ClientError> {
        let within: Duration = self.call_timeout.saturating_mul(REPLAY_TAKES);
        let mut scheduler = self.scheduler();
        let answer = self.answer_within(within, scheduler.replay_dead_letters(request)).await?;
        Ok(ReplayCounts {
            matched: answer.matched,
            replayed: answer.replayed,
            job_ids: answer.job_ids,
            no_room: answer.no_room,
            left_out: answer.left_out,
        })
    }
}

impl From<DeadLetterFilter> for v1::DeadLetterFilter {
    fn from(filter: DeadLetterFilter) -> Self {
        Self {
            topic: filter.topic.unwrap_or_default(),
            priority: wire_priority(filter.priority).into(),
            reason: filter.reason.unwrap_or_default(),
            labels: filter.labels,
            discarded: filter.discarded,
        }
    }
}

impl From<v1::DeadLetter> for DeadLetterRecord {
    fn from(letter: v1::DeadLetter) -> Self {
        Self {
            state: JobState::from_wire(letter.state),
            priority: priority_word(letter.priority).to_owned(),
            job_id: letter.job_id,
            tenant: letter.tenant,
            topic: letter.topic,
            reason: letter.reason,
            message: letter.message,
            attempts: letter.attempts,
            life: letter.life,
            at_ms: letter.at_ms,
            labels: letter.labels,
        }
    }
}
