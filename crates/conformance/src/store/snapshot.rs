//! Everything a Store answers, as comparable text.
//!
//! Numbers that an adapter may choose freely (sequence, outbox, audit and cursor numbers) are left out; their order is not.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditRow, Block};
use lockgate_core::ids::{JobId, JobSeq, RunId, SessionId, TenantId};
use lockgate_core::job::{Duty, Job, JobState};
use lockgate_core::lane::ReadyKey;

use super::listings::{all_jobs, all_letters};
use super::runs_snapshot::runs;
use super::schedules_snapshot::schedules;
use super::stage::Found;
use super::tenants::everybody;
use lockgate_ports::store::{DeadLetterQuery, JobQuery, SnapshotKind, Store};

/// Pages are small so that every read goes on at least once.
pub(super) const PAGE: usize = 3;

pub(super) type Snapshot = Vec<(String, String)>;

/// Whom to ask about.
pub(super) struct Known {
    pub(super) jobs: Vec<JobId>,
    pub(super) sessions: Vec<SessionId>,
    pub(super) runs: Vec<RunId>,
    pub(super) schedules: Vec<(TenantId, Arc<str>)>,
}

pub(super) async fn snapshot(store: &dyn Store, all: &Known) -> Found<Snapshot> {
    let Known { jobs, sessions, runs: run_ids, schedules: names } = all;
    let mut parts = Snapshot::new();
    each_job(store, jobs, &mut parts).await?;
    queues(store, &mut parts).await?;
    lists(store, &mut parts).await?;
    for session in sessions {
        add(&mut parts, format!("held by {session}"), plain(store.held(session).await?));
    }
    add(&mut parts, "open sessions", store.open_sessions().await?);
    add(&mut parts, "closed holding", store.closed_holding().await?);
    let outbox = store.outbox(0, Duration::ZERO, 1_000).await?;
    add(&mut parts, "outbox", outbox.into_iter().map(|row| (row.job_id, row.at, row.entry)).collect::<Vec<_>>());
    add(&mut parts, "totals", store.totals().await?);
    add(&mut parts, "usage", store.usage(&["other", "nobody", "acme"].map(Into::into)).await?);
    add(&mut parts, "tenants", everybody(store).await?);
    duties(store, &mut parts).await?;
    policies(store, &mut parts).await?;
    trail(store, &mut parts).await?;
    runs(store, run_ids, &mut parts).await?;
    schedules(store, names, &mut parts).await?;
    Ok(parts)
}

pub(super) fn add(parts: &mut Snapshot, name: impl Into<String>, value: impl Debug) {
    parts.push((name.into(), format!("{value:?}")));
}

fn plain(jobs: Vec<Job>) -> Vec<Job> {
    jobs.into_iter().map(|job| Job { seq: JobSeq::default(), ..job }).collect()
}

async fn each_job(store: &dyn Store, jobs: &[JobId], parts: &mut Snapshot) -> Found<()> {
    let loaded = store.load(jobs).await?;
    for (id, job) in jobs.iter().zip(loaded) {
        let detail = store.detail(id).await?;
        assert_eq!(job, detail.as_ref().map(|detail| detail.job.clone()), "load and detail differ");
        let detail = detail.map(|detail| (plain(vec![detail.job]), detail.events, detail.result));
        add(parts, format!("job {id}"), detail);
        let page = store.events(id, 3).await?;
        add(parts, format!("events of {id}"), page.map(|page| (page.events, page.state)));
        let logs: Vec<_> = store.logs(id, 0, 5).await?.into_iter().map(|kept| kept.line).collect();
        add(parts, format!("logs of {id}"), logs);
    }
    Ok(())
}

async fn queues(store: &dyn Store, parts: &mut Snapshot) -> Found<()> {
    let lanes = store.ready_lanes().await?;
    for (lane, depth) in &lanes {
        let (mut after, mut jobs) = (None, Vec::new());
        loop {
            let page = store.ready(lane, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.ready_key());
            jobs.extend(page);
        }
        assert_eq!(jobs.len() as u64, *depth, "depth of {lane:?}");
        add(parts, format!("ready in {lane:?}"), plain(jobs));
    }
    add(parts, "lanes", lanes);
    let (mut after, mut due) = (ReadyKey::default(), Vec::new());
    loop {
        let page = store.due(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.ready_key();
        due.extend(page);
    }
    add(parts, "due", plain(due));
    let (mut after, mut pending) = (ReadyKey::default(), Vec::new());
    loop {
        let page = store.pending(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.ready_key();
        pending.extend(page);
    }
    add(parts, "pending", plain(pending));
    add(parts, "expired", plain(store.expired(ReadyKey::default(), 100).await?));
    add(parts, "first expired", plain(store.expired(ReadyKey::default(), PAGE).await?));
    Ok(())
}

async fn lists(store: &dyn Store, parts: &mut Snapshot) -> Found<()> {
    let any = || JobQuery { limit: PAGE, ..JobQuery::default() };
    add(parts, "jobs", plain(all_jobs(store, any()).await?));
    for state in JobState::ALL {
        let query = JobQuery { state: Some(state), ..any() };
        add(parts, format!("jobs {state}"), plain(all_jobs(store, query).await?));
    }
    let labelled = JobQuery { labels: [("team".to_owned(), "blue".to_owned())].into(), ..any() };
    add(parts, "blue jobs", plain(all_jobs(store, labelled).await?));
    let of_tenant = JobQuery { tenant: Some("other".into()), ..any() };
    add(parts, "jobs of other", plain(all_jobs(store, of_tenant).await?));
    let letters = all_letters(store, DeadLetterQuery { limit: PAGE, ..DeadLetterQuery::default() }).await?;
    add(parts, "letters", letters);
    let letters = DeadLetterQuery { limit: PAGE, tenant: Some("other".into()), ..DeadLetterQuery::default() };
    add(parts, "letters of other", all_letters(store, letters).await?);
    Ok(())
}

async fn duties(store: &dyn Store, parts: &mut Snapshot) -> Found<()> {
    for duty in Duty::ALL {
        let (mut after, mut jobs) = (JobSeq::default(), Vec::new());
        loop {
            let page = store.owing(duty, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            jobs.extend(page);
        }
        add(parts, format!("owing {}", duty.as_str()), plain(jobs));
    }
    Ok(())
}

async fn policies(store: &dyn Store, parts: &mut Snapshot) -> Found<()> {
    let kind = SnapshotKind::Policy;
    add(parts, "policy in force", store.active(kind).await?);
    let rows = store.snapshots(kind, 100).await?;
    for row in &rows {
        add(parts, format!("text of {}", row.id), store.snapshot(kind, &row.id).await?);
    }
    add(parts, "policies", rows);
    add(parts, "latest policies", store.snapshots(kind, PAGE - 1).await?);
    Ok(())
}

async fn trail(store: &dyn Store, parts: &mut Snapshot) -> Found<()> {
    let (mut after, mut rows) = (0, Vec::new());
    loop {
        let page = store.audit(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        rows.extend(page);
    }
    add(parts, "audit", rows.iter().map(|row| (&row.entry, row.entry.detail.as_str())).collect::<Vec<_>>());
    let mut before: Option<Block> = None;
    loop {
        let page = store.blocks(before.as_ref().map_or(0, |block| block.no), PAGE).await?;
        if page.is_empty() {
            break;
        }
        for block in page {
            let its: Vec<AuditRow> =
                rows.iter().filter(|row| (block.first..=block.last).contains(&row.id)).cloned().collect();
            block.verify(before.as_ref(), &its)?;
            add(parts, format!("block {}", block.no), (block.rows, block.sealed_at));
            before = Some(block);
        }
    }
    assert_eq!(store.head().await?, before, "the head is the last block");
    Ok(())
}
