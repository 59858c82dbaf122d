//! Jobs that attempts of other jobs submitted, and parents that wait for them.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{JobId, JobSeq};
use lockgate_core::job::{Duty, Evidence, Input, Job, JobState, OnTimeout, Outcome, Transition, submit};
use lockgate_core::lane::ReadyKey;
use lockgate_core::output::OutputStep;
use lockgate_core::request::{JobRequest, Json, NewJob};

use super::stage::{
    Found, Proof, StoreHarness, allow, cancel, checked, deny, dispatch_to, fatal, ids, new_job, replay, report, success,
    verdict_on_output,
};
use lockgate_ports::store::{ChangeError, ChildQuery, JobQuery, Kin, StoreError};

/// A job that a worker holds.
async fn parent(h: &StoreHarness, id: &str) -> Found<Job> {
    let job = h.submit(new_job(id)).await?;
    let epoch = h.attach("s").await?;
    h.dispatch(&job, "s", epoch).await
}

fn child(h: &StoreHarness, parent: &Job, key: &str) -> Found<Transition> {
    let new = NewJob { topic: "job.echo".to_owned(), ..NewJob::default() };
    let request = JobRequest::child(parent, key, new, None).map_err(|errors| format!("{errors:?}"))?;
    let hash = request.hash();
    let mut birth = submit(Arc::new(request), hash, &h.env(allow()));
    birth.evidence = Evidence::Unchanged { job: parent.request.job_id.clone(), version: parent.version };
    Ok(birth)
}

/// Children of a parent as it is now.
async fn spawn(h: &StoreHarness, parent: &Job, keys: &[&str]) -> Found<Vec<Job>> {
    let births = keys.iter().map(|key| Ok(child(h, parent, key)?.into())).collect::<Found<Vec<_>>>()?;
    let names: Vec<JobId> = keys.iter().map(|key| JobId::from(format!("{}~{key}", parent.request.job_id))).collect();
    for seq in h.store.commit(births).await? {
        seq?;
    }
    Ok(h.store.load(&names).await?.into_iter().flatten().collect())
}

async fn kin(h: &StoreHarness, parent: &str, life: u32) -> Found<Kin> {
    Ok(h.store.family(&[(parent.into(), life)]).await?.pop().unwrap_or_default())
}

async fn owing(h: &StoreHarness, duty: Duty) -> Found<Vec<String>> {
    let jobs = h.store.owing(duty, JobSeq::default(), 100).await?;
    Ok(ids(&jobs).into_iter().map(str::to_owned).collect())
}

fn of_p(after: JobSeq, bytes: usize) -> ChildQuery {
    ChildQuery { parent: "p".into(), life: 1, after, limit: 10, bytes }
}

fn wait(timeout_ms: u64) -> Outcome {
    Outcome::AwaitChildren { timeout: Some(Duration::from_millis(timeout_ms)), on_timeout: OnTimeout::Fail }
}

pub async fn a_child_is_born_only_while_its_parent_is_unchanged(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let (early, late, again) = (child(h, &held, "a")?, child(h, &held, "b")?, child(h, &held, "a")?);
    assert!(h.commit(early).await?.is_ok());
    assert!(matches!(h.commit(again).await?, Err(ChangeError::Taken(_))), "its id is its key");
    let moved = h.step(&held, Input::Spawned { token: held.life.attempt.token.clone(), children: 1 }).await?;
    let neighbour = h.birth("acme", new_job("n"), allow())?;
    let results = h.store.commit(vec![late.into(), neighbour.into()]).await?;
    assert!(matches!(&results[..], [Err(ChangeError::Conflict), Ok(_)]), "{results:?}");
    let after_the_end = child(h, &moved, "c")?;
    h.step(&moved, cancel()).await?;
    assert_eq!(h.commit(after_the_end).await?, Err(ChangeError::Conflict));
    assert_eq!(kin(h, "p", 1).await?.total, 1);
    Ok(())
}

pub async fn a_family_tells_how_many_have_not_ended(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a", "b", "c"]).await?;
    let other = parent(h, "other").await?;
    spawn(h, &other, &["a"]).await?;
    assert_eq!(kin(h, "p", 1).await?, Kin { total: 3, live: 3, latest: Some(born[2].seq) });
    h.step(&born[2], cancel()).await?;
    assert_eq!(kin(h, "p", 1).await?, Kin { total: 3, live: 2, latest: Some(born[1].seq) });
    h.run(&born[0], success()).await?;
    let dead = h.run(&born[1], fatal()).await?;
    assert_eq!(kin(h, "p", 1).await?, Kin { total: 3, live: 0, latest: None });
    h.step(&dead, replay()).await?;
    assert_eq!(kin(h, "p", 1).await?.live, 1, "a child that lives again is under way again");
    let asked = [("p".into(), 1), ("nobody".into(), 1), ("other".into(), 1), ("p".into(), 2)];
    let families = h.store.family(&asked).await?;
    assert_eq!(families.iter().map(|kin| (kin.total, kin.live)).collect::<Vec<_>>(), [(3, 1), (0, 0), (1, 1), (0, 0)]);
    Ok(())
}

pub async fn a_look_at_a_family_names_the_latest_child_under_way(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a", "b", "c"]).await?;
    let other = parent(h, "other").await?;
    let theirs = spawn(h, &other, &["a"]).await?;
    let asked = [("other".into(), 1), ("nobody".into(), 1), ("p".into(), 1), ("p".into(), 2)];
    assert_eq!(h.store.under_way(&asked).await?, [Some(theirs[0].seq), None, Some(born[2].seq), None]);
    h.step(&born[2], cancel()).await?;
    assert_eq!(h.store.under_way(&asked).await?[2], Some(born[1].seq));
    h.run(&born[0], success()).await?;
    let dead = h.run(&born[1], fatal()).await?;
    assert_eq!(h.store.under_way(&asked).await?[2], None);
    h.step(&dead, replay()).await?;
    assert_eq!(h.store.under_way(&asked).await?[2], Some(born[1].seq), "a child that lives again is under way again");
    assert!(h.store.under_way(&[]).await?.is_empty());
    Ok(())
}

pub async fn a_child_denied_at_birth_belongs_to_its_family(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let wanted = child(h, &held, "a")?;
    let mut denied = submit(wanted.job.request.clone(), wanted.job.hash, &h.env(deny()));
    denied.evidence = wanted.evidence;
    h.commit(denied).await??;
    assert_eq!(kin(h, "p", 1).await?, Kin { total: 1, live: 0, latest: None });
    Ok(())
}

pub async fn children_come_in_order_with_results_that_are_out(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a", "b", "c", "d"]).await?;
    h.run(&born[0], success()).await?;
    let quarantine = verdict_on_output(lockgate_core::output::OutputDecision::Quarantine);
    h.run_checked(&born[1], success(), OutputStep::Decided(Arc::new(quarantine))).await?;
    h.run_checked(&born[2], success(), OutputStep::Scan { hold: true }).await?;
    let (mut after, mut seen) = (JobSeq::default(), Vec::new());
    loop {
        let page = h.store.children(ChildQuery { limit: 3, ..of_p(after, usize::MAX) }).await?;
        let told = page.items.into_iter();
        seen.extend(told.map(|child| (child.job.request.job_id.to_string(), child.job.state(), child.result)));
        let Some(next) = page.next else { break };
        after = JobSeq(next.0);
    }
    let out = Some(Json::trusted(r#"{"ok":true}"#));
    let wanted = [
        ("p~a".to_owned(), JobState::Succeeded, out),
        ("p~b".to_owned(), JobState::OutputQuarantined, None),
        ("p~c".to_owned(), JobState::Running, None),
        ("p~d".to_owned(), JobState::Scheduled, None),
    ];
    assert_eq!(seen, wanted, "G-4: what is held back does not leak to the parent");
    let of_the_next_life = ChildQuery { life: 2, ..of_p(JobSeq::default(), usize::MAX) };
    assert!(h.store.children(of_the_next_life).await?.items.is_empty());
    Ok(())
}

/// How many children each page has.
async fn pages(h: &StoreHarness, bytes: usize) -> Found<Vec<usize>> {
    let (mut after, mut pages) = (JobSeq::default(), Vec::new());
    loop {
        let page = h.store.children(of_p(after, bytes)).await?;
        pages.push(page.items.len());
        let Some(next) = page.next else { return Ok(pages) };
        after = JobSeq(next.0);
    }
}

/// A parent acts on its children's results, so a child that is left out would be a lost one: a damaged row fails the whole
/// read.
pub async fn children_are_told_of_all_or_not_at_all(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    spawn(h, &held, &["a", "b", "c"]).await?;
    h.spoil("p~b").await?;
    let told = h.store.children(of_p(JobSeq::default(), usize::MAX)).await;
    assert!(matches!(told, Err(StoreError::Corrupt(_))), "{told:?}");
    Ok(())
}

pub async fn a_page_of_children_has_no_more_bytes_than_it_may(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a", "b", "c", "d", "e"]).await?;
    let text = "x".repeat(8_000);
    for child in &born[..2] {
        h.run(child, Outcome::Succeeded { result: Json::trusted(format!("\"{text}\"")) }).await?;
    }
    for child in &born[2..4] {
        h.run(child, Outcome::FailedFatal { error: text.as_str().into() }).await?;
    }
    assert_eq!(pages(h, 20_000).await?, [2, 3], "two long texts fit, be they results or errors");
    assert_eq!(pages(h, 0).await?, [1; 5], "one is read in any case");
    assert_eq!(pages(h, usize::MAX).await?, [5]);
    Ok(())
}

pub async fn children_under_way_come_without_those_that_ended(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a", "b", "c", "d"]).await?;
    h.step(&born[1], cancel()).await?;
    let first = h.store.live_children(&"p".into(), 1, JobSeq::default(), 2).await?;
    assert_eq!(first, [(born[0].seq, JobId::from("p~a")), (born[2].seq, JobId::from("p~c"))]);
    let rest = h.store.live_children(&"p".into(), 1, born[2].seq, 2).await?;
    assert_eq!(rest, [(born[3].seq, JobId::from("p~d"))]);
    assert!(h.store.live_children(&"p".into(), 2, JobSeq::default(), 2).await?.is_empty());
    Ok(())
}

pub async fn the_list_of_jobs_is_narrowed_to_the_children_of_one(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a", "b", "c"]).await?;
    h.submit(new_job("other")).await?;
    h.step(&born[1], cancel()).await?;
    let query = |state| JobQuery { parent: Some("p".into()), state, limit: 2, ..JobQuery::default() };
    let first = h.store.list(query(None)).await?;
    assert_eq!(ids(&first.items), ["p~c", "p~b"]);
    let rest = h.store.list(JobQuery { cursor: first.next, ..query(None) }).await?;
    assert_eq!(ids(&rest.items), ["p~a"]);
    let cancelled = h.store.list(query(Some(JobState::Cancelled))).await?;
    assert_eq!(ids(&cancelled.items), ["p~b"]);
    let tenant = JobQuery { tenant: Some("nobody".into()), ..query(None) };
    assert!(h.store.list(tenant).await?.items.is_empty());
    Ok(())
}

pub async fn a_parent_that_waits_owes_it_until_its_barrier_opens(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let waits = h.step(&held, report(&held, wait(1_000))).await?;
    assert_eq!((waits.state(), owing(h, Duty::Gather).await?), (JobState::Pending, vec!["p".to_owned()]));
    assert!(h.store.held(&"s".into()).await?.is_empty(), "nobody holds it");
    let token = waits.life.attempt.token.clone();
    let open = h.step(&waits, Input::Gathered { token }).await?;
    assert_eq!((open.state(), owing(h, Duty::Gather).await?), (JobState::Scheduled, Vec::new()));
    assert_eq!(open.life.family.as_ref().map(|family| family.rounds), Some(1));
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&open, "s", epoch).await?;
    let waits = h.step(&held, report(&held, wait(1_000))).await?;
    h.advance_ms(999);
    assert!(h.store.expired(ReadyKey::default(), 10).await?.is_empty());
    h.advance_ms(1);
    assert_eq!(h.store.expired(ReadyKey::default(), 10).await?, std::slice::from_ref(&waits));
    assert_eq!(h.step(&waits, Input::Woken).await?.state(), JobState::Failed);
    assert_eq!(owing(h, Duty::Gather).await?, [""; 0]);
    Ok(())
}

pub async fn what_ended_badly_owes_its_children_an_end_until_they_have_one(h: &StoreHarness) -> Proof {
    for (id, outcome) in [("bad", fatal()), ("good", success())] {
        let held = parent(h, id).await?;
        let token = held.life.attempt.token.clone();
        let spawned = h.step(&held, Input::Spawned { token, children: 1 }).await?;
        h.step(&spawned, checked(&spawned, outcome, OutputStep::Pass)).await?;
    }
    let childless = parent(h, "childless").await?;
    h.step(&childless, report(&childless, fatal())).await?;
    assert_eq!(owing(h, Duty::Disown).await?, ["bad"]);
    let settled = h.step(&h.load("bad").await?, Input::Settled { life: 1 }).await?;
    assert_eq!((settled.state(), owing(h, Duty::Disown).await?), (JobState::Failed, Vec::new()));
    let letters = h.store.dead_letters(lockgate_ports::store::DeadLetterQuery { limit: 10, ..Default::default() }).await?;
    assert_eq!(letters.items.len(), 2, "J-4: a job that stays dead keeps its letter");
    Ok(())
}

pub async fn a_child_is_kept_until_its_parent_has_ended(h: &StoreHarness) -> Proof {
    let held = parent(h, "p").await?;
    let born = spawn(h, &held, &["a"]).await?;
    h.run(&born[0], success()).await?;
    h.advance_ms(1_000);
    assert_eq!(h.store.prune(Duration::from_millis(10), 10).await?, 0);
    h.step(&held, report(&held, success())).await?;
    h.advance_ms(1_000);
    assert_eq!(h.store.prune(Duration::from_millis(10), 10).await?, 2);
    assert_eq!(kin(h, "p", 1).await?, Kin::default(), "with all that belongs to it");
    let again = parent(h, "p").await?;
    spawn(h, &again, &["a"]).await?;
    assert_eq!(kin(h, "p", 1).await?.total, 1);
    Ok(())
}

pub async fn one_call_may_bring_a_wide_family(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("p")).await?;
    let epoch = h.attach("s").await?;
    let held = h.step(&job, dispatch_to("s", epoch)).await?;
    let births = (0..1_000).map(|n| Ok(child(h, &held, &format!("c-{n}"))?.into())).collect::<Found<Vec<_>>>()?;
    let results = h.store.commit(births).await?;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(kin(h, "p", 1).await?, Kin { total: 1_000, live: 1_000, latest: results[999].clone().ok() });
    Ok(())
}
