//! Checks of the final state. They know what the Store has and what clients and workers saw, and nothing of the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, JobEvent, JobState, Reason};
use lockgate_ports::{DeadLetterQuery, JobDetail, JobQuery, JobStore, Upkeep};

use crate::clock::BASE;
use crate::trail::Trail;
use crate::world::{SimWorld, Summary};
use crate::{ends, families, flow, outputs, sagas, times};

/// A broken guarantee. `rule` is an invariant's id or name.
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

pub(crate) async fn all(world: &SimWorld) -> Result<Summary, Violation> {
    world.witness.testify().await?;
    let (acknowledged, executions, broken) = {
        let ledger = world.ledger.lock();
        (ledger.acknowledged.clone(), ledger.executions.len(), ledger.broken.first().cloned())
    };
    if let Some(violation) = broken {
        return Err(violation);
    }
    let (letters, trail) = (letters(world).await, Trail::read(world).await?);
    let (mut lost, mut fingerprint) = (0, 0xcbf2_9ce4_8422_2325);
    let all: BTreeSet<JobId> = acknowledged.iter().cloned().chain(world.witness.jobs()).collect();
    for id in &all {
        let detail = world.disk.detail(id).await.ok().flatten();
        let detail = detail.ok_or_else(|| Violation::new("nothing acknowledged is lost", id.to_string()))?;
        history(id, &detail)?;
        work(world, id, &detail)?;
        ends::check(world, id, &detail)?;
        outputs::check(world, id, &detail)?;
        trail.tells(id, &detail.events)?;
        let state = detail.job.state();
        let letter = letters.get(id).copied();
        ensure(
            letter == Some(state).filter(|state| state.is_dead()),
            "J-4 a dead letter for every bad end, and only then",
            || format!("{id} {state}, letter {letter:?}"),
        )?;
        lost += detail.events.iter().filter(|event| was_lost(world, event)).count();
        fingerprint = fold(fingerprint, &format!("{:?}", detail.events));
    }
    families::check(world).await?;
    flow::check(world).await?;
    sagas::check(world).await?;
    times::check(world).await?;
    trail.is_one_chain()?;
    let totals = world.disk.totals().await.map_err(|e| Violation::new("totals", e.to_string()))?;
    ensure(totals.live == [0; 4], "totals agree", || format!("{totals:?}"))?;
    let (acknowledged, closed, injected) = (acknowledged.len(), world.faults.closed(), world.faults.injected());
    let (ahead, given_back) = world.ledger.lock().sent_ahead();
    Ok(Summary { acknowledged, executions, lost, closed, ahead, given_back, injected, fingerprint })
}

/// Whether the attempt was lost while faults were on, because its worker was silent.
fn was_lost(world: &SimWorld, event: &JobEvent) -> bool {
    let silent = event.kind == EventKind::AttemptLost && event.reason == Some(Reason::AgentLost);
    silent && event.at < BASE + world.chaos
}

/// Compares what workers did with what the job's history says.
fn work(world: &SimWorld, id: &JobId, detail: &JobDetail) -> Result<(), Violation> {
    let ledger = world.ledger.lock();
    for event in detail.events.iter().filter(|event| event.kind == EventKind::Succeeded) {
        let attempt = event.late_of.unwrap_or(event.attempt);
        let told = || format!("{id} attempt {attempt}: {}", tell(&detail.events));
        ensure(
            ledger.finished.contains_key(&(id.clone(), attempt)),
            "A-1 success only by the word of who holds the attempt",
            told,
        )?;
    }
    // Waiting jobs are checked every second, held ones every two; the rest of the slack is for crashes and slow calls.
    let life = &detail.job.life;
    let late = life.deadline_at.zip(life.ended_at).filter(|(deadline, ended)| *deadline + deadline_slack(world) < *ended);
    ensure(late.is_none(), "a deadline ends a job", || format!("{id}: {late:?} {}", tell(&detail.events)))
}

/// How late a deadline may be enforced: a server may be down for 15 seconds, and then another one. Where there are several,
/// all of them may be cut off or stalled as well.
pub(crate) fn deadline_slack(world: &SimWorld) -> Duration {
    Duration::from_secs(if world.ground.shared.is_some() { 100 } else { 60 })
}

/// Names the work that still waits when none should.
pub(crate) async fn stuck(world: &SimWorld) -> Violation {
    let mut query = JobQuery { limit: 1_000, ..JobQuery::default() };
    let mut waiting = Vec::new();
    while let Ok(page) = world.disk.list(query.clone()).await {
        waiting.extend(page.items.into_iter().filter(|job| !job.state().is_terminal()));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    if let Some(parent) = families::waits_for_nobody(&waiting) {
        let told = format!("{} {:?}", parent.request.job_id, parent.life);
        return Violation::new("F-2 a parent goes on when none of its children is under way", told);
    }
    let lines: Vec<String> = waiting.iter().take(5).map(|job| format!("{} {:?}", job.request.job_id, job.life)).collect();
    let (runs, times) = (flow::open(world).await.unwrap_or_default(), times::left(world).await.unwrap_or_default());
    let mut runs: Vec<String> = runs.iter().map(|run| format!("{run:?}")).collect();
    runs.extend(sagas::open(world).await.unwrap_or_default().iter().map(|saga| format!("{saga:?}")));
    let told =
        format!("{} live: {}; times not started: {times}; runs: {}", waiting.len(), lines.join("; "), runs.join("; "));
    Violation::new("everything ends once faults stop", told)
}

pub(crate) fn is_end(kind: EventKind) -> bool {
    use EventKind::{Cancelled, Denied, Failed, OutputQuarantined, Succeeded, TimedOut};
    matches!(kind, Succeeded | Failed | TimedOut | Cancelled | Denied | OutputQuarantined)
}

/// Events that a job may get after its end: a bypass is judged, a late result is recorded, a result is scanned or released.
fn is_note(kind: EventKind, has_result: bool) -> bool {
    use EventKind::{BypassRefused, DoneLate, OutputQuarantined, OutputRedacted, OutputUnchecked, Released};
    let about_result = matches!(kind, OutputUnchecked | OutputQuarantined | OutputRedacted | Released);
    matches!(kind, BypassRefused | DoneLate) || (about_result && has_result)
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
        let mut after = life.iter().skip_while(|event| !is_end(event.kind));
        let end = after.next().map(|event| event.kind);
        ensure(end.is_some(), "J-2 one end per life", told)?;
        // Only an existing result is scanned after the end: that of a success, or a late one.
        let mut has_result = matches!(end, Some(EventKind::Succeeded | EventKind::OutputQuarantined));
        let fits = after.all(|event| {
            has_result |= event.kind == EventKind::DoneLate;
            is_note(event.kind, has_result)
        });
        ensure(fits, "J-3 nothing after the end", told)?;
    }
    ensure(lives.len() == detail.job.life.no as usize, "lives are counted", told)?;
    let dispatched: Vec<u32> =
        events.iter().filter(|event| event.kind == EventKind::Dispatched).map(|event| event.attempt).collect();
    ensure(dispatched.is_sorted_by(|a, b| a < b), "A-3 an attempt is dispatched once", told)
}

async fn letters(world: &SimWorld) -> BTreeMap<JobId, JobState> {
    let mut query = DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() };
    let mut letters = BTreeMap::new();
    while let Ok(page) = world.disk.dead_letters(query.clone()).await {
        letters.extend(page.items.into_iter().map(|letter| (letter.job_id, letter.state)));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    letters
}

pub(crate) fn tell(events: &[JobEvent]) -> String {
    events.iter().map(|e| format!("{}:{:?}#{}", e.n, e.kind, e.attempt)).collect::<Vec<_>>().join(" ")
}

fn fold(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
