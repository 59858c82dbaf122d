//! R-1: one step of a run, all of it or none of it.

use std::sync::Arc;

use lockgate_core::dag::{
    Closing, DagRef, Items, JobTries, NodeKey, NodeRun, NodeState, NodeUndo, Run, RunHead, RunState, UndoState,
};
use lockgate_core::ids::{JobSeq, RunId};
use lockgate_core::job::{Duty, Failure, Leaving, Reason};
use lockgate_core::request::Json;
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::ApprovalTerms;

use super::runs_stage::{after, audited, change, child_of, head, job_in, job_of, node, over};
use super::stage::{Found, Proof, StoreHarness, allow, ask, cancel, deny, ids};
use lockgate_ports::store::{ChangeError, JobQuery, RunChange, RunRefusal, Totals};

const CONFLICT: Result<Vec<JobSeq>, RunRefusal> = Err(RunRefusal::Conflict);

fn full_head(h: &StoreHarness, run: &str) -> RunHead {
    RunHead {
        dag: DagRef { name: "nightly".into(), version: 7 },
        params: Json::trusted(r#"{"day":"2026-01-01","ü":[1]}"#),
        deadline_at: Some(Timestamp::from_millis(99_000)),
        timeout_ms: None,
        wakes_at: Some(Timestamp::from_millis(50_000)),
        paused: true,
        state: RunState::Paused,
        failure: Some(Failure::new(Reason::Fatal, "broken \"here\"")),
        closing: Some(Closing::CancelAndCompensate),
        tainted: true,
        output: Some(Json::trusted("[1,2]")),
        trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok(),
        fresh: true,
        reruns: 2,
        done: 1,
        total: 4,
        ..child_of("run-parent", head(h, run))
    }
}

fn full_node(long: usize) -> NodeRun {
    NodeRun {
        state: NodeState::Failed,
        round: 2,
        job: Some("run-a.1~2".into()),
        memo_of: Some("run-0.1~0".into()),
        tries: Some(JobTries { attempts: 3, losses: 2 }),
        child: Some("run-b".into()),
        began_at: Some(Timestamp::from_millis(1)),
        ended_at: Some(Timestamp::from_millis(2)),
        wakes_at: Some(Timestamp::from_millis(3)),
        output: Some(Json::trusted(format!("\"{}\"", "x".repeat(long)))),
        failure: Some(Failure::new(Reason::Failed, "no")),
        items: Some(Items { list: Json::trusted("[1,2]"), count: 2 }),
        undo: Some(NodeUndo { state: UndoState::Stuck, job: "comp-1".into(), failure: None, round: 0, resolved_by: None }),
        entry: Some(Json::trusted(r#"{"topic":"job.undo"}"#)),
        entry_no: 7,
        tainted: true,
        late: true,
        leaving: vec![Leaving { session: "session-1".into(), until: Timestamp::from_millis(99), scan: true }],
    }
}

pub async fn a_new_run_is_loaded_as_it_was_committed(h: &StoreHarness) -> Proof {
    let head = full_head(h, "run-a");
    let item = |item| NodeKey { node: 1, item: Some(item) };
    let nodes = vec![
        (item(1), full_node(100_000)),
        (NodeKey::of(1), full_node(0)),
        (item(0), NodeRun::default()),
        node(0, NodeState::Succeeded),
    ];
    assert_eq!(h.advance(RunChange { nodes: nodes.clone(), ..change(head.clone()) }).await?, Ok(Vec::new()));
    let run = h.run_of("run-a").await?;
    assert_eq!(run, Run { head, nodes: nodes.into_iter().collect() });
    let keys: Vec<NodeKey> = run.nodes.into_keys().collect();
    assert_eq!(keys, [NodeKey::of(0), NodeKey::of(1), item(0), item(1)]);
    Ok(())
}

pub async fn runs_are_loaded_in_the_order_asked(h: &StoreHarness) -> Proof {
    h.begin("run-a").await?;
    h.begin("run-b").await?;
    let asked: Vec<RunId> = ["run-b", "nobody", "run-a", "run-b"].map(RunId::from).into();
    let found = h.store.load_runs(&asked).await?;
    let names: Vec<Option<&str>> = found.iter().map(|run| run.as_ref().map(|run| run.head.id.as_str())).collect();
    assert_eq!(names, [Some("run-b"), None, Some("run-a"), Some("run-b")]);
    assert_eq!((h.store.load_runs(&[]).await?, h.store.advance(Vec::new()).await?), (Vec::new(), Vec::new()));
    assert_eq!(h.store.run_since(&"nobody".into(), 0).await?, None);
    Ok(())
}

pub async fn a_step_replaces_the_head_and_writes_its_nodes_whole(h: &StoreHarness) -> Proof {
    let first = full_head(h, "run-a");
    let nodes = vec![(NodeKey::of(0), full_node(10)), node(1, NodeState::Running)];
    h.advance(RunChange { nodes, ..change(first.clone()) }).await??;
    let plain = RunHead { version: 2, parent: None, ..head(h, "run-a") };
    let nodes = vec![node(0, NodeState::Ready), node(2, NodeState::Skipped)];
    h.advance(RunChange { nodes, ..change(plain.clone()) }).await??;
    let expected = [node(0, NodeState::Ready), node(1, NodeState::Running), node(2, NodeState::Skipped)];
    assert_eq!(h.run_of("run-a").await?, Run { head: plain, nodes: expected.into() });
    Ok(())
}

pub async fn run_since_has_the_nodes_that_changed_after_a_version(h: &StoreHarness) -> Proof {
    let mut latest = head(h, "run-a");
    for step in 0..4 {
        let nodes = vec![node(step, NodeState::Ready), node(9, NodeState::Running)];
        h.advance(RunChange { nodes, ..change(latest.clone()) }).await??;
        latest = after(&latest);
    }
    let keys = async |version| -> Found<Vec<u32>> {
        let run = h.store.run_since(&"run-a".into(), version).await?.ok_or("the run is not there")?;
        assert_eq!(run.head.version, 4);
        Ok(run.nodes.into_keys().map(|key| key.node).collect())
    };
    assert_eq!(keys(0).await?, [0, 1, 2, 3, 9]);
    assert_eq!(keys(2).await?, [2, 3, 9]);
    assert!(keys(4).await?.is_empty());
    Ok(())
}

pub async fn a_stale_step_leaves_nothing_and_its_neighbours_are_done(h: &StoreHarness) -> Proof {
    let start = h.begin_with("run-a", &[0]).await?;
    let other = h.begin("run-b").await?;
    h.step(&job_of(h, "run-a", 0).await?, cancel()).await?;
    h.advance(change(after(&start))).await??;
    let before = h.around(&["run-a"]).await?;
    let heard = h.news_of(&["run-a"]).await?.iter().map(|news| news.no).collect::<Vec<_>>();
    assert_eq!(heard.len(), 1);
    let stale = |head: RunHead, n: u32| -> Found<RunChange> {
        let (jobs, nodes) = (vec![job_in(h, "run-a", n, deny())?], vec![node(n, NodeState::Running)]);
        let (heard, audit) = (heard.clone(), vec![audited(h, "stale")]);
        Ok(RunChange { nodes, jobs, heard, audit, ..change(head) })
    };
    let ahead = RunHead { version: 4, ..start.clone() };
    let unknown = RunHead { version: 2, ..head(h, "run-unknown") };
    let changes = vec![stale(after(&start), 1)?, stale(ahead, 2)?, stale(unknown, 3)?];
    assert_eq!(h.store.advance(changes).await?, [CONFLICT; 3]);
    assert_eq!(h.around(&["run-a"]).await?, before);
    let next = RunChange { jobs: vec![job_in(h, "run-b", 0, allow())?], ..change(after(&other)) };
    let results = h.store.advance(vec![stale(after(&start), 1)?, next, stale(over(h, &start), 2)?]).await?;
    assert!(results[0] == CONFLICT && results[2] == CONFLICT, "{results:?}");
    assert_eq!(results[1], Ok(vec![job_of(h, "run-b", 0).await?.seq]));
    assert_eq!(h.run_of("run-b").await?.head.version, 2);
    Ok(())
}

pub async fn a_run_id_is_taken_once(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0]).await?;
    let before = h.around(&["run-a"]).await?;
    let twin = RunHead { tenant: "other".into(), ..head(h, "run-a") };
    let jobs = vec![job_in(h, "run-a", 1, allow())?];
    assert_eq!(h.advance(RunChange { jobs, ..change(twin) }).await?, CONFLICT);
    assert_eq!(h.around(&["run-a"]).await?, before);
    Ok(())
}

pub async fn one_call_may_take_several_steps_of_one_run(h: &StoreHarness) -> Proof {
    let first = head(h, "run-a");
    let (second, third) = (after(&first), over(h, &after(&first)));
    let steps = vec![
        RunChange { jobs: vec![job_in(h, "run-a", 0, allow())?], ..change(first.clone()) },
        RunChange { nodes: vec![node(0, NodeState::Running)], ..change(second.clone()) },
        change(second),
        RunChange { nodes: vec![node(0, NodeState::Succeeded)], ..change(third.clone()) },
        change(first),
    ];
    let results = h.store.advance(steps).await?;
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true, false], "{results:?}");
    assert_eq!(h.run_of("run-a").await?, Run { head: third, nodes: [node(0, NodeState::Succeeded)].into() });
    let first = head(h, "run-b");
    let steps = vec![
        change(first.clone()),
        RunChange { jobs: vec![job_in(h, "run-b", 0, allow())?], ..change(after(&first)) },
        RunChange { jobs: vec![job_in(h, "run-c", 0, allow())?], ..change(head(h, "run-c")) },
    ];
    let results = h.store.advance(steps).await?;
    assert!(results[1].clone()? < results[2].clone()?, "jobs are numbered in the order of the steps: {results:?}");
    Ok(())
}

pub async fn jobs_of_a_step_are_jobs_like_any_other(h: &StoreHarness) -> Proof {
    let births = [
        job_in(h, "run-a", 0, allow())?,
        job_in(h, "run-a", 1, ask(ApprovalTerms::default()))?,
        job_in(h, "run-a", 2, deny())?,
        job_in(h, "run-a", 3, allow())?,
    ];
    let seqs = h.advance(RunChange { jobs: births.to_vec(), ..change(head(h, "run-a")) }).await??;
    assert!(seqs.len() == 4 && seqs.is_sorted(), "{seqs:?}");
    for (birth, seq) in births.iter().zip(&seqs) {
        let mut expected = birth.job.clone();
        expected.seq = *seq;
        let detail = h.store.detail(&expected.request.job_id).await?.ok_or("no detail")?;
        assert_eq!((detail.job, detail.events), (expected, birth.events.clone()));
    }
    let ready = h.store.ready(&births[0].job.lane(), None, 10).await?;
    assert_eq!(ids(&ready), ["run-a.0", "run-a.3"]);
    let listed = h.store.list(JobQuery { limit: 10, ..JobQuery::default() }).await?.items;
    assert_eq!(ids(&listed), ["run-a.3", "run-a.2", "run-a.1", "run-a.0"]);
    assert_eq!(ids(&h.store.owing(Duty::Approve, JobSeq::default(), 10).await?), ["run-a.1"]);
    assert_eq!(h.store.totals().await?, Totals { live: [0, 0, 3, 0], dead_letters: [0, 0, 1, 0], ended: 1 });
    let audit: Vec<_> = births.iter().flat_map(lockgate_core::job::Transition::audit).collect();
    assert_eq!(h.store.audit(0, 10).await?.into_iter().map(|row| row.entry).collect::<Vec<_>>(), audit);
    let again = job_in(h, "run-a", 0, allow())?;
    assert!(matches!(h.commit(again).await?, Err(ChangeError::Taken(taken)) if taken.job_id.as_str() == "run-a.0"));
    Ok(())
}

pub async fn a_taken_job_id_refuses_the_whole_step(h: &StoreHarness) -> Proof {
    let start = h.begin_with("run-a", &[0, 1]).await?;
    h.step(&job_of(h, "run-a", 1).await?, cancel()).await?;
    let heard: Vec<i64> = h.news_of(&["run-a"]).await?.iter().map(|news| news.no).collect();
    let before = h.around(&["run-a", "run-b"]).await?;
    // Live, ended, and twice in one step.
    for taken in [[5, 0], [1, 5], [5, 5]] {
        let jobs = vec![job_in(h, "run-a", taken[0], deny())?, job_in(h, "run-a", taken[1], deny())?];
        let refused = RunChange {
            jobs,
            heard: heard.clone(),
            nodes: vec![node(5, NodeState::Running)],
            audit: vec![audited(h, "refused")],
            ..change(over(h, &child_of("run-b", start.clone())))
        };
        assert_eq!(h.advance(refused.clone()).await?, CONFLICT, "{taken:?}");
        let newborn = RunChange { head: RunHead { version: 1, ..head(h, "run-b") }, ..refused };
        assert_eq!(h.advance(newborn).await?, CONFLICT, "{taken:?}");
        assert_eq!(h.around(&["run-a", "run-b"]).await?, before);
    }
    assert!(h.store.load(&["run-a.5".into()]).await? == [None]);
    Ok(())
}

pub async fn audit_rows_come_with_the_step(h: &StoreHarness) -> Proof {
    let (first, second) = (audited(h, "first"), audited(h, "second"));
    let denied = job_in(h, "run-a", 0, deny())?;
    let mut expected = vec![first.clone(), second.clone()];
    expected.extend(denied.audit());
    let step = RunChange { jobs: vec![denied], audit: vec![first, second], ..change(head(h, "run-a")) };
    h.advance(step).await??;
    assert_eq!(h.store.audit(0, 10).await?.into_iter().map(|row| row.entry).collect::<Vec<_>>(), expected);
    Ok(())
}

pub async fn a_wide_step_is_written_whole(h: &StoreHarness) -> Proof {
    let start = h.begin("run-a").await?;
    let jobs = (0..600).map(|n| job_in(h, "run-a", n, allow())).collect::<Result<Vec<_>, _>>()?;
    let nodes: Vec<_> = (0..600).map(|n| node(n, NodeState::Running)).collect();
    let seqs = h.advance(RunChange { jobs, nodes: nodes.clone(), ..change(after(&start)) }).await??;
    assert_eq!(seqs.len(), 600);
    assert_eq!(h.run_of("run-a").await?.nodes, nodes.into_iter().collect());
    assert_eq!(h.store.totals().await?.live.iter().sum::<u64>(), 600);
    Ok(())
}

pub async fn concurrent_steps_of_one_version_have_one_winner(h: &StoreHarness) -> Proof {
    let start = h.begin("run-a").await?;
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..16 {
        // Two and two want the same job.
        let jobs = vec![job_in(h, "run-a", n / 2, allow())?];
        let step = RunChange { jobs, nodes: vec![node(n / 2, NodeState::Running)], ..change(after(&start)) };
        let store = Arc::clone(&h.store);
        racers.spawn(async move { store.advance(vec![step]).await });
    }
    let mut winners = 0;
    while let Some(result) = racers.join_next().await {
        match result??.as_slice() {
            [Ok(jobs)] => winners += jobs.len(),
            other => assert_eq!(other, [CONFLICT]),
        }
    }
    let run = h.run_of("run-a").await?;
    assert_eq!((winners, run.head.version, run.nodes.len()), (1, 2, 1));
    assert_eq!(h.store.totals().await?.live.iter().sum::<u64>(), 1);
    Ok(())
}
