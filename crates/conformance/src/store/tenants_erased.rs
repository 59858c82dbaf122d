//! Erasure of a tenant.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry, Block};
use lockgate_core::dag::{NodeState, RunHead};
use lockgate_core::ids::TenantId;
use lockgate_core::job::Transition;
use lockgate_core::request::{Json, NewJob, RequestHash};
use lockgate_core::schedule::{Schedule, SlotOutcome};

use super::runs_stage::{after, audited, change, child_of, head, node, over};
use super::schedules_stage::{schedule, turn};
use super::stage::{Found, Proof, StoreHarness, allow, cancel, deny, fatal, new_job, replay, success};
use super::tenants::{everybody, usage, with_payload};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{
    DeadLetterQuery, Erased, JobChange, JobQuery, LogLine, NewDag, OutboxEntry, RunChange, RunKey, RunQuery, ScheduleChange,
    SlotQuery, Totals, Usage,
};

fn erasure(h: &StoreHarness, tenant: &str) -> AuditEntry {
    AuditEntry { tenant: "ops".into(), action: AuditAction::JobDenied, ..audited(h, &format!("tenant {tenant}")) }
}

async fn erase(h: &StoreHarness, tenant: &str, limit: usize) -> Found<Erased> {
    Ok(h.store.erase(&tenant.into(), limit, &erasure(h, tenant)).await?)
}

async fn erasures(h: &StoreHarness) -> Found<usize> {
    Ok(h.store.audit(0, 1_000).await?.iter().filter(|row| row.entry.subject.starts_with("tenant ")).count())
}

fn telling(transition: Transition) -> JobChange {
    JobChange { transition, outbox: vec![OutboxEntry { sink: Arc::from("webhook"), body: Json::trusted("1") }] }
}

/// One of everything that a tenant may leave, all of it ended.
async fn a_life_of(h: &StoreHarness, tenant: &str) -> Proof {
    let name = |what: &str| format!("{tenant}-{what}");
    let key = Some("k".to_owned());
    let keyed = h.birth(tenant, NewJob { idempotency_key: key, ..with_payload(&name("done"), 9_000) }, allow())?;
    h.commit(telling(keyed)).await??;
    h.run(&h.load(&name("done")).await?, success()).await?;
    let line = LogLine { job_id: name("done").as_str().into(), attempt: 1, at: h.clock.now(), line: "hello".into() };
    h.store.append_logs(vec![line]).await?;
    let dead = h.submit_as(tenant, new_job(&name("dead")), allow()).await?;
    h.run(&dead, fatal()).await?;
    h.submit_as(tenant, new_job(&name("denied")), deny()).await?;
    let start = RunHead { tenant: tenant.into(), ..head(h, &name("run")) };
    let key = Some(RunKey { key: "k".into(), hash: RequestHash([7; 32]) });
    let nodes = vec![node(0, NodeState::Succeeded), node(1, NodeState::Failed)];
    h.advance(RunChange { key, nodes, ..change(start.clone()) }).await??;
    h.advance(change(over(h, &start))).await??;
    put_dag(h, tenant).await?;
    let cron = schedule(tenant, "cron");
    let fresh = (1..=3).map(|n| h.slot(n, SlotOutcome::Skipped)).collect();
    h.turn(ScheduleChange { fresh, ..turn(Schedule { wakes_at: Some(h.clock.now()), ..cron }) }).await??;
    Ok(())
}

async fn put_dag(h: &StoreHarness, tenant: &str) -> Found<u32> {
    let dag = NewDag {
        tenant: tenant.into(),
        name: "etl".into(),
        snapshot: "s".into(),
        text: "nodes: []".into(),
        actor: "ann".into(),
        pins: [].into(),
        audit: audited(h, "etl"),
    };
    Ok(h.store.put_dag(dag).await?.version)
}

/// Whatever can be asked about a tenant.
async fn traces(h: &StoreHarness, tenant: &str) -> Found<String> {
    let owner: TenantId = tenant.into();
    let of = Some(owner.clone());
    let jobs = h.store.list(JobQuery { tenant: of.clone(), limit: 100, ..JobQuery::default() }).await?.items;
    let letters = DeadLetterQuery { tenant: of.clone(), limit: 100, ..DeadLetterQuery::default() };
    let letters = h.store.dead_letters(letters).await?.items;
    let runs = h.store.list_runs(RunQuery { tenant: of, limit: 100, ..RunQuery::default() }).await?.items;
    let schedules = h.store.list_schedules(&owner, None, 100).await?;
    let slots = SlotQuery { tenant: owner.clone(), schedule: "cron".into(), cursor: None, limit: 100 };
    let slots = h.store.list_slots(slots).await?.items;
    let dags = h.store.dags(&owner, None, 100).await?;
    let logs = h.store.logs(&format!("{tenant}-done").as_str().into(), 0, 10).await?;
    let outbox =
        h.store.outbox(0, Duration::ZERO, 100).await?.into_iter().filter(|row| row.job_id.as_str().starts_with(tenant));
    let outbox: Vec<_> = outbox.collect();
    let due = h.store.due_schedules(100).await?.into_iter().filter(|row| row.tenant == owner).count();
    Ok(format!("{jobs:?} {letters:?} {runs:?} {schedules:?} {slots:?} {dags:?} {logs:?} {outbox:?} {due}"))
}

pub async fn erasing_takes_all_of_one_tenant_and_nothing_of_another(h: &StoreHarness) -> Proof {
    let nothing = traces(h, "acme").await?;
    a_life_of(h, "acme").await?;
    a_life_of(h, "other").await?;
    let (others, of_others) = (traces(h, "other").await?, usage(h, "other").await?);
    let totals = h.store.totals().await?;
    assert_eq!(erase(h, "acme", 100).await?, Erased { jobs: 3, runs: 1, done: true, ..Erased::default() });
    assert_eq!(traces(h, "acme").await?, nothing);
    assert_eq!((traces(h, "other").await?, usage(h, "other").await?), (others, of_others));
    assert_eq!(everybody(&*h.store).await?, [("other".to_owned(), of_others)]);
    let half = Totals { ended: totals.ended / 2, dead_letters: totals.dead_letters.map(|n| n / 2), ..totals };
    assert_eq!(h.store.totals().await?, half);
    assert!(h.store.detail(&"acme-done".into()).await?.is_none());
    Ok(())
}

pub async fn an_erased_tenant_may_begin_anew(h: &StoreHarness) -> Proof {
    a_life_of(h, "acme").await?;
    assert!(erase(h, "acme", 100).await?.done);
    let before = h.store.audit(0, 1_000).await?.len();
    a_life_of(h, "acme").await?;
    assert_eq!(put_dag(h, "acme").await?, 1, "versions count from one, and keys are free");
    let Usage { live, ended, runs, .. } = usage(h, "acme").await?;
    assert_eq!((live, ended, runs), (0, 3, 0));
    assert!(h.store.audit(0, 1_000).await?.len() > before);
    Ok(())
}

pub async fn erasing_spares_what_goes_on_and_counts_it(h: &StoreHarness) -> Proof {
    h.submit(new_job("live")).await?;
    h.step(&h.submit(new_job("ended")).await?, cancel()).await?;
    let reborn = h.run(&h.submit(new_job("reborn")).await?, fatal()).await?;
    let reborn = h.step(&reborn, replay()).await?;
    let start = h.begin_with("run-a", &[0]).await?;
    h.step(&h.load("run-a.0").await?, cancel()).await?;
    let inner = child_of("run-a", head(h, "run-b"));
    h.advance(change(over(h, &RunHead { version: 0, ..inner }))).await??;
    put_dag(h, "acme").await?;
    let waits = Erased { live_jobs: 2, live_runs: 1, ..Erased::default() };
    assert_eq!(erase(h, "acme", 10).await?, Erased { jobs: 1, ..waits });
    assert_eq!(erase(h, "acme", 10).await?, waits, "what belongs to a run that goes on stays");
    assert_eq!(h.told(&["run-a"]).await?, ["run-a.0 CANCELLED", "run-b SUCCEEDED"]);
    assert_eq!((h.load("reborn").await?, h.store.dags(&"acme".into(), None, 10).await?.len()), (reborn.clone(), 1));
    h.advance(change(over(h, &start))).await??;
    h.step(&reborn, cancel()).await?;
    let gone = erase(h, "acme", 10).await?;
    assert_eq!(gone, Erased { jobs: 2, runs: 2, live_jobs: 1, ..Erased::default() });
    assert_eq!((erasures(h).await?, h.store.dags(&"acme".into(), None, 10).await?.len()), (0, 1));
    h.step(&h.load("live").await?, cancel()).await?;
    assert_eq!(erase(h, "acme", 10).await?, Erased { jobs: 1, done: true, ..Erased::default() });
    assert_eq!((erasures(h).await?, h.store.dags(&"acme".into(), None, 10).await?.len()), (1, 0));
    Ok(())
}

pub async fn erasing_goes_on_call_by_call(h: &StoreHarness) -> Proof {
    for n in 0..5 {
        h.step(&h.submit(with_payload(&format!("job-{n}"), 10)).await?, cancel()).await?;
        let start = head(h, &format!("run-{n}"));
        h.advance(change(RunHead { version: 1, ..over(h, &start) })).await??;
        h.submit_as("other", new_job(&format!("other-{n}")), deny()).await?;
    }
    let fresh = (1..=5).map(|n| h.slot(n, SlotOutcome::Skipped)).collect();
    h.turn(ScheduleChange { fresh, ..turn(schedule("acme", "cron")) }).await??;
    let two = Erased { jobs: 2, runs: 2, ..Erased::default() };
    assert_eq!(erase(h, "acme", 2).await?, two);
    let runs = h.store.list_runs(RunQuery { limit: 100, ..RunQuery::default() }).await?.items;
    assert_eq!((usage(h, "acme").await?.ended, runs.len()), (3, 3));
    assert_eq!((erase(h, "acme", 2).await?, usage(h, "acme").await?.stored_bytes), (two, 10));
    assert_eq!((erasures(h).await?, h.slots("cron").await?.len()), (0, 5));
    assert_eq!(erase(h, "acme", 0).await?, Erased { jobs: 1, runs: 1, ..Erased::default() }, "at least one");
    assert_eq!((h.schedule("cron").await?, h.slots("cron").await?.len()), (None, 4));
    assert_eq!(erase(h, "acme", 3).await?, Erased::default(), "slots");
    assert_eq!((erasures(h).await?, h.slots("cron").await?.len()), (0, 1));
    assert!(erase(h, "acme", 3).await?.done);
    assert_eq!((erasures(h).await?, usage(h, "other").await?.ended), (1, 5));
    Ok(())
}

pub async fn erasing_is_told_once_and_the_chain_still_verifies(h: &StoreHarness) -> Proof {
    a_life_of(h, "acme").await?;
    let sealed = h.store.audit(0, 1_000).await?;
    let block = Block::over(None, &sealed, h.clock.now()).ok_or("nothing to seal")?;
    assert!(h.store.seal(&block).await?);
    assert!(erase(h, "acme", 100).await?.done);
    let rows = h.store.audit(0, 1_000).await?;
    assert_eq!(&rows[..sealed.len()], sealed);
    block.verify(None, &rows[..sealed.len()])?;
    let told: Vec<_> = rows[sealed.len()..].iter().map(|row| row.entry.clone()).collect();
    assert_eq!(told, [erasure(h, "acme")]);
    for tenant in ["acme", "nobody"] {
        assert_eq!(erase(h, tenant, 100).await?, Erased { done: true, ..Erased::default() });
    }
    assert_eq!(h.store.audit(0, 1_000).await?, rows, "there was nothing of them");
    Ok(())
}

pub async fn what_was_pruned_while_erasing_is_told_too(h: &StoreHarness) -> Proof {
    for id in ["a", "b"] {
        h.step(&h.submit(new_job(id)).await?, cancel()).await?;
    }
    assert_eq!(erase(h, "acme", 1).await?, Erased { jobs: 1, ..Erased::default() });
    h.advance_ms(1);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    assert_eq!((erase(h, "acme", 1).await?.done, erasures(h).await?), (true, 1));
    let start = head(h, "run-a");
    h.advance(change(start.clone())).await??;
    h.advance(change(over(h, &start))).await??;
    h.advance(change(RunHead { state: start.state, ended_at: None, ..after(&over(h, &start)) })).await??;
    assert_eq!(erase(h, "acme", 1).await?, Erased { live_runs: 1, ..Erased::default() });
    Ok(())
}
