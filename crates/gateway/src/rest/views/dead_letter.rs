//! Dead letters and their replay.

use std::collections::BTreeMap;

use lockgate_core::job as core;
use lockgate_engine::Replayed as EngineReplayed;
use lockgate_ports::Listing;
use serde::Serialize;
use utoipa::ToSchema;

use super::names::{JobStateName, LanePriorityName};
use super::{Name, Time};
use crate::queries::cursor_text;

#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetterList)]
pub(in crate::rest) struct DeadLetters {
    dead_letters: Vec<DeadLetter>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Why a job ended badly, kept for replay.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct DeadLetter {
    job_id: String,
    tenant: String,
    topic: String,
    priority: LanePriorityName,
    state: JobStateName,
    reason: &'static str,
    message: String,
    attempts: u32,
    life: u32,
    at: Time,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Replayed {
    matched: u64,
    replayed: u64,
    /// Had no room: within their tenant's quota, or under a ceiling.
    no_room: u64,
    /// Matched and are not replayed: jobs of runs, undos and jobs of closed workflows, and those that others were faster with.
    left_out: u64,
    /// The first 1,000 of the others.
    job_ids: Vec<String>,
}

impl From<&core::DeadLetter> for DeadLetter {
    fn from(letter: &core::DeadLetter) -> Self {
        Self {
            job_id: letter.job_id.to_string(),
            tenant: letter.tenant.to_string(),
            topic: letter.topic.to_string(),
            priority: Name(letter.priority),
            state: Name(letter.state),
            reason: letter.reason.as_str(),
            message: letter.message.to_string(),
            attempts: letter.attempts,
            life: letter.life,
            at: Time(letter.at),
            labels: letter.labels.clone(),
        }
    }
}

impl From<&Listing<core::DeadLetter>> for DeadLetters {
    fn from(listing: &Listing<core::DeadLetter>) -> Self {
        Self {
            dead_letters: listing.items.iter().map(DeadLetter::from).collect(),
            next_cursor: listing.next.map(cursor_text),
        }
    }
}

impl From<EngineReplayed> for Replayed {
    fn from(replayed: EngineReplayed) -> Self {
        Self {
            matched: replayed.matched,
            replayed: replayed.replayed,
            no_room: replayed.no_room,
            left_out: replayed.left_out,
            job_ids: replayed.job_ids.iter().map(ToString::to_string).collect(),
        }
    }
}
