//! How long runs, and what belongs to them, are kept.

use std::time::Duration;

use lockgate_core::dag::{NodeState, RunHead, RunState};

use super::runs_stage::{after, change, child_of, head, job_in, job_of, node, over};
use super::stage::{Found, Proof, StoreHarness, allow, cancel};
use lockgate_ports::store::{RunChange, Totals};

const KEEP: Duration = Duration::from_secs(1);

async fn are_there(h: &StoreHarness, runs: &[&str]) -> Found<Vec<bool>> {
    let ids: Vec<_> = runs.iter().map(|run| (*run).into()).collect();
    Ok(h.store.load_runs(&ids).await?.iter().map(Option::is_some).collect())
}

pub async fn jobs_of_a_live_run_are_kept_until_it_is_over(h: &StoreHarness) -> Proof {
    let start = h.begin_with("run-a", &[0, 1]).await?;
    // A job of a run that does not exist: no run keeps it.
    let stray = job_in(h, "run-gone", 0, allow())?;
    h.commit(stray).await??;
    for job in [job_of(h, "run-a", 0).await?, job_of(h, "run-a", 1).await?, job_of(h, "run-gone", 0).await?] {
        h.step(&job, cancel()).await?;
    }
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 1);
    assert_eq!(h.store.totals().await?.ended, 2);
    let paused = RunHead { state: RunState::Paused, ..after(&start) };
    h.advance(change(paused.clone())).await??;
    assert_eq!(h.store.prune(KEEP, 10).await?, 0);
    h.advance(change(over(h, &paused))).await??;
    assert_eq!(h.store.prune(KEEP, 1).await?, 1, "the run ended just now, its jobs did not");
    assert_eq!((are_there(h, &["run-a"]).await?, h.store.prune(KEEP, 10).await?), (vec![true], 1));
    assert_eq!(h.store.totals().await?, Totals::default());
    Ok(())
}

pub async fn a_run_is_pruned_with_all_that_belongs_to_it(h: &StoreHarness) -> Proof {
    let start = head(h, "run-a");
    let nodes = vec![node(0, NodeState::Succeeded), node(1, NodeState::Failed)];
    let jobs = vec![job_in(h, "run-a", 0, allow())?];
    h.advance(RunChange { nodes, jobs, ..change(start.clone()) }).await??;
    h.step(&job_of(h, "run-a", 0).await?, cancel()).await?;
    h.advance(change(over(h, &start))).await??;
    h.advance_ms(1_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 0, "not longer ago than that");
    h.advance_ms(1);
    assert_eq!(h.store.prune(KEEP, 10).await?, 2, "a job and a run");
    assert_eq!(are_there(h, &["run-a"]).await?, [false]);
    assert_eq!(h.store.unheard(Duration::ZERO, 10).await?, []);
    assert_eq!(h.store.run_since(&"run-a".into(), 0).await?, None);
    h.begin("run-a").await?;
    assert_eq!((h.run_of("run-a").await?.nodes.len(), h.told(&["run-a"]).await?.len()), (0, 0), "a new one");
    Ok(())
}

pub async fn a_run_inside_of_another_is_kept_until_that_is_over(h: &StoreHarness) -> Proof {
    let parent = h.begin("run-parent").await?;
    for (run, around) in [("run-a", "run-parent"), ("run-b", "run-nobody")] {
        h.advance(change(over(h, &RunHead { version: 0, ..child_of(around, head(h, run)) }))).await??;
    }
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 1);
    assert_eq!(are_there(h, &["run-a", "run-b"]).await?, [true, false]);
    assert_eq!(h.told(&["run-parent"]).await?, ["run-a SUCCEEDED"]);
    h.advance(change(over(h, &parent))).await??;
    assert_eq!(h.store.prune(KEEP, 10).await?, 1);
    assert_eq!(are_there(h, &["run-a", "run-parent"]).await?, [false, true]);
    assert_eq!(h.told(&["run-parent"]).await?, [""; 0], "what is gone is told to nobody");
    Ok(())
}

pub async fn whole_runs_are_pruned_oldest_first_within_the_limit(h: &StoreHarness) -> Proof {
    for (run, count) in [("run-a", 0), ("run-b", 5), ("run-c", 0), ("run-d", 1)] {
        let nodes = (0..count).map(|n| node(n, NodeState::Succeeded)).collect();
        h.advance(RunChange { nodes, ..change(head(h, run)) }).await??;
    }
    for run in ["run-c", "run-b", "run-a", "run-d"] {
        h.advance_ms(10);
        h.advance(change(over(h, &head(h, run)))).await??;
    }
    h.advance_ms(5_000);
    let left = async || are_there(h, &["run-c", "run-b", "run-a", "run-d"]).await;
    assert_eq!(h.store.prune(KEEP, 0).await?, 0);
    assert_eq!((h.store.prune(KEEP, 1).await?, left().await?), (1, vec![false, true, true, true]));
    assert_eq!((h.store.prune(KEEP, 6).await?, left().await?), (1, vec![false, false, true, true]), "it and its nodes");
    assert_eq!((h.store.prune(KEEP, 2).await?, left().await?), (2, vec![false; 4]), "the last may be more than the rest");
    Ok(())
}

pub async fn a_run_that_goes_on_again_is_not_pruned(h: &StoreHarness) -> Proof {
    let done = over(h, &h.begin_with("run-a", &[0]).await?);
    h.step(&job_of(h, "run-a", 0).await?, cancel()).await?;
    h.advance(change(done.clone())).await??;
    let again = RunHead { state: RunState::Running, ended_at: None, ..after(&done) };
    h.advance(change(again.clone())).await??;
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 0);
    assert_eq!((h.run_of("run-a").await?.head, h.told(&["run-a"]).await?.len()), (again, 1));
    Ok(())
}

pub async fn news_of_a_run_that_is_gone_are_forgotten(h: &StoreHarness) -> Proof {
    let start = h.begin_with("run-a", &[0]).await?;
    h.advance(change(over(h, &start))).await??;
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 10).await?, 1);
    h.step(&job_of(h, "run-a", 0).await?, cancel()).await?;
    assert_eq!(h.store.unheard(Duration::ZERO, 10).await?, []);
    h.advance_ms(5_000);
    assert_eq!(h.store.prune(KEEP, 0).await?, 0);
    h.begin("run-a").await?;
    assert_eq!(h.told(&["run-a"]).await?, [""; 0]);
    Ok(())
}
