//! The judges. They know the Store's final state and what clients and workers saw, and nothing of the engine.

use std::fmt;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, JobEvent, JobState};
use lockgate_ports::{DeadLetterQuery, JobDetail, JobQuery, Jobs, Upkeep};

use crate::flow;
use crate::world::{Summary, World};

/// A promise was broken. `rule` is an invariant's id or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(rule: &'static str, detail: String) -> Self {
        Self { rule, detail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

pub(crate) fn ensure(holds: bool, rule: &'static str, detail: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new(rule, detail())) }
}

pub(crate) async fn all(world: &World) -> Result<Summary, Violation> {
    let (acknowledged, finished, executions, broken) = {
        let ledger = world.ledger.lock();
        let broken = ledger.broken.first().cloned();
        (ledger.acknowledged.clone(), ledger.finished.clone(), ledger.executions.len(), broken)
    };
    if let Some(violation) = broken {
        return Err(violation);
    }
    let mut fingerprint = 0xcbf2_9ce4_8422_2325;
    for id in &acknowledged {
        let detail = world.disk.detail(id).await.ok().flatten();
        let detail = detail.ok_or_else(|| Violation::new("nothing acknowledged is lost", id.to_string()))?;
        history(id, &detail)?;
        dead_letter(world, id, detail.job.state()).await?;
        if detail.job.state() == JobState::Succeeded {
            ensure(finished.contains(id), "success only by a worker's word", || id.to_string())?;
        }
        fingerprint = fold(fingerprint, &format!("{:?}", detail.events));
    }
    flow::check(world).await?;
    let totals = world.disk.totals().await.map_err(|e| Violation::new("totals", e.to_string()))?;
    ensure(totals.live == [0; 4], "totals agree", || format!("{totals:?}"))?;
    Ok(Summary { acknowledged: acknowledged.len(), executions, injected: world.faults.injected(), fingerprint })
}

/// Says what still waits when nothing should.
pub(crate) async fn stuck(world: &World) -> Violation {
    let mut query = JobQuery { limit: 1_000, ..JobQuery::default() };
    let mut waiting = Vec::new();
    while let Ok(page) = world.disk.list(query.clone()).await {
        waiting.extend(page.items.into_iter().filter(|job| !job.state().is_terminal()));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let lines: Vec<String> = waiting.iter().take(5).map(|job| format!("{} {:?}", job.request.job_id, job.life)).collect();
    Violation::new("everything ends once faults stop", format!("{} live: {}", waiting.len(), lines.join("; ")))
}

fn is_end(kind: EventKind) -> bool {
    matches!(kind, EventKind::Succeeded | EventKind::Failed | EventKind::TimedOut | EventKind::Cancelled | EventKind::Denied)
}

fn history(id: &JobId, detail: &JobDetail) -> Result<(), Violation> {
    let events = &detail.events;
    let told = || format!("{id}: {}", tell(events));
    ensure(detail.job.state().is_terminal(), "every acknowledged job ends", told)?;
    let numbers = events.iter().zip(1..).all(|(event, n)| event.n == n);
    ensure(numbers && events.len() as u64 == detail.job.life.events, "S-4 events without gaps", told)?;
    ensure(events.is_sorted_by_key(|event| event.attempt), "J-1 attempts only grow", told)?;
    let lives: Vec<&[JobEvent]> = events.split(|event| event.kind == EventKind::Replayed).collect();
    for life in &lives {
        let ends = life.iter().filter(|event| is_end(event.kind)).count();
        ensure(ends == 1, "J-2 one end per life", told)?;
        ensure(life.last().is_some_and(|event| is_end(event.kind)), "J-3 nothing after the end", told)?;
    }
    ensure(lives.len() == detail.job.life.no as usize, "lives are counted", told)?;
    let dispatched: Vec<u32> =
        events.iter().filter(|event| event.kind == EventKind::Dispatched).map(|event| event.attempt).collect();
    ensure(dispatched.is_sorted_by(|a, b| a < b), "A-3 an attempt is dispatched once", told)
}

async fn dead_letter(world: &World, id: &JobId, state: JobState) -> Result<(), Violation> {
    let mut query = DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() };
    let mut found = false;
    while let Ok(page) = world.disk.dead_letters(query.clone()).await {
        found |= page.items.iter().any(|letter| letter.job_id == *id && letter.state == state);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    ensure(found == state.is_dead(), "a dead letter for every bad end, and only then", || format!("{id} {state}"))
}

fn tell(events: &[JobEvent]) -> String {
    events.iter().map(|e| format!("{}:{:?}#{}", e.n, e.kind, e.attempt)).collect::<Vec<_>>().join(" ")
}

fn fold(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
