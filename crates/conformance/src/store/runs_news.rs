//! R-2: messages to runs, written in the commits that they are about.

use std::time::Duration;

use lockgate_core::dag::RunState;
use lockgate_core::ids::{JobSeq, RunId};
use lockgate_core::job::{Duty, Input, Job, JobState};
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::request::{Json, NewJob, RunRef};
use lockgate_core::verdict::Decision;

use super::runs_stage::{after, change, child_of, head, job_in, job_named, job_of, over, subject};
use super::stage::{
    Found, Proof, StoreHarness, allow, cancel, checked, deny, fatal, new_job, release, replay, report, scanned, success,
    under,
};
use lockgate_ports::store::{ChangeError, NewsRow, RunChange, RunNews};

async fn job(h: &StoreHarness, node: u32) -> Found<Job> {
    job_of(h, "run-a", node).await
}

fn results(news: &[NewsRow]) -> Vec<Option<&str>> {
    news.iter()
        .map(|news| match &news.what {
            RunNews::Job { result, .. } => result.as_ref().map(Json::as_str),
            RunNews::Run(_) => None,
        })
        .collect()
}

pub async fn every_end_of_a_job_is_told_to_its_run(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0, 1, 2, 3]).await?;
    let plain = h.submit(new_job("plain")).await?;
    h.step(&plain, cancel()).await?;
    assert_eq!(h.told(&["run-a"]).await?, [""; 0], "nobody hears of jobs without a run");
    h.run(&job(h, 2).await?, success()).await?;
    h.run(&job(h, 0).await?, fatal()).await?;
    h.step(&job(h, 3).await?, cancel()).await?;
    let epoch = h.attach("s").await?;
    let sent = h.dispatch(&job(h, 1).await?, "s", epoch).await?;
    assert_eq!(h.told(&["run-a"]).await?.len(), 3, "it has not ended");
    h.step(&sent, report(&sent, success())).await?;
    let told = h.told(&["run-a"]).await?;
    assert_eq!(told, ["run-a.2 SUCCEEDED", "run-a.0 FAILED", "run-a.3 CANCELLED", "run-a.1 SUCCEEDED"]);
    let news = h.news_of(&["run-a"]).await?;
    assert_eq!(results(&news), [Some(r#"{"ok":true}"#), None, None, Some(r#"{"ok":true}"#)]);
    for row in &news {
        let RunNews::Job { job, .. } = &row.what else { return Err("it is told of a run".into()) };
        assert_eq!((row.run.as_str(), &**job), ("run-a", &h.load(job.request.job_id.as_str()).await?));
    }
    Ok(())
}

pub async fn a_job_denied_at_birth_is_told_to_its_run(h: &StoreHarness) -> Proof {
    let jobs = vec![job_in(h, "run-a", 0, deny())?, job_in(h, "run-a", 1, allow())?, job_in(h, "run-a", 2, deny())?];
    h.advance(RunChange { jobs, ..change(head(h, "run-a")) }).await??;
    assert_eq!(h.told(&["run-a"]).await?, ["run-a.0 DENIED", "run-a.2 DENIED"]);
    let unjudged = job_in(h, "run-a", 3, lockgate_core::verdict::Judgement::UNASKED)?;
    h.commit(unjudged).await??;
    let waiting = job(h, 3).await?;
    let denied = waiting.next(Input::Judged, &h.env(deny()))?;
    h.commit(denied).await??;
    assert_eq!(h.told(&["run-a"]).await?.len(), 3, "denied later");
    Ok(())
}

pub async fn a_refused_end_is_not_told(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0]).await?;
    let stale = job(h, 0).await?;
    let epoch = h.attach("s").await?;
    h.dispatch(&stale, "s", epoch).await?;
    let late = stale.next(cancel(), &h.env(allow()))?;
    assert_eq!(h.commit(late).await?, Err(ChangeError::Conflict));
    assert!(h.commit(job_in(h, "run-a", 0, deny())?).await?.is_err());
    assert_eq!(h.told(&["run-a"]).await?, [""; 0]);
    Ok(())
}

pub async fn a_late_change_of_an_ended_job_is_told_again(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0]).await?;
    let done = h.run_checked(&job(h, 0).await?, success(), OutputStep::Scan { hold: false }).await?;
    assert_eq!(results(&h.news_of(&["run-a"]).await?), [Some(r#"{"ok":true}"#)]);
    let quarantined = h.step(&done, scanned(&done, OutputDecision::Quarantine, Json::trusted(r#"{"ok":true}"#))).await?;
    assert_eq!(quarantined.state(), JobState::OutputQuarantined);
    let news = h.news_of(&["run-a"]).await?;
    assert_eq!(news.iter().map(subject).collect::<Vec<_>>(), ["run-a.0 OUTPUT_QUARANTINED"; 2], "both as of now");
    assert_eq!(results(&news), [None, None], "what is held back is told to nobody");
    h.step(&quarantined, release()).await?;
    let news = h.news_of(&["run-a"]).await?;
    assert_eq!(results(&news), [Some(r#"{"ok":true}"#); 3]);
    assert!(news.is_sorted_by(|a, b| a.no < b.no));
    Ok(())
}

/// A-9: a worker finished although its job was cancelled.
pub async fn work_that_was_done_late_is_told_with_its_result(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0, 1]).await?;
    let epoch = h.attach("s").await?;
    let before = h.store.totals().await?;
    let mut late = Vec::new();
    for (node, step) in [(0, OutputStep::Pass), (1, OutputStep::Scan { hold: true })] {
        let sent = h.dispatch(&job(h, node).await?, "s", epoch).await?;
        let cancelled = h.step(&sent, cancel()).await?;
        let success = checked(&sent, success(), step);
        late.push(h.step(&cancelled, success.clone()).await?);
        assert!(late[node as usize].next(success, &h.env(allow())).is_err(), "a repeat changes nothing");
    }
    assert!(late[0].is_done_late() && !late[1].is_done_late(), "the other one waits for its scan");
    // The run also gets a message about a held result, without the result: from then on it waits for the scan.
    let all = ["run-a.0 CANCELLED", "run-a.0 CANCELLED", "run-a.1 CANCELLED", "run-a.1 CANCELLED"];
    let news = h.news_of(&["run-a"]).await?;
    assert_eq!(news.iter().map(subject).collect::<Vec<_>>(), all);
    assert_eq!(results(&news), [Some(r#"{"ok":true}"#), Some(r#"{"ok":true}"#), None, None]);
    assert_eq!(h.load("run-a.0").await?, late[0]);
    let owing = h.store.owing(Duty::Scan, JobSeq::default(), 10).await?;
    assert_eq!(owing.iter().map(|job| job.request.job_id.as_str()).collect::<Vec<_>>(), ["run-a.1"]);
    h.step(&late[1], scanned(&late[1], OutputDecision::Allow, Json::trusted(r#"{"ok":true}"#))).await?;
    let news = h.news_of(&["run-a"]).await?;
    assert_eq!(results(&news), [Some(r#"{"ok":true}"#); 5], "told once it was scanned");
    assert_eq!(h.store.owing(Duty::Scan, JobSeq::default(), 10).await?, []);
    assert_eq!((before.ended, h.store.totals().await?.ended), (0, 2), "nothing ended twice");
    Ok(())
}

pub async fn what_was_heard_is_gone_and_the_rest_stays(h: &StoreHarness) -> Proof {
    let start = h.begin_with("run-a", &[0, 1, 2]).await?;
    h.begin_with("run-b", &[0]).await?;
    for node in 0..3 {
        h.step(&job(h, node).await?, cancel()).await?;
    }
    h.step(&job_of(h, "run-b", 0).await?, cancel()).await?;
    let news = h.news_of(&["run-a", "run-b"]).await?;
    // The last message belongs to another run.
    let heard = vec![news[0].no, news[2].no, news[3].no, 999_999];
    h.advance(RunChange { heard, ..change(after(&start)) }).await??;
    assert_eq!(h.told(&["run-a", "run-b"]).await?, ["run-a.1 CANCELLED", "run-b.0 CANCELLED"]);
    h.begin_with("run-c", &[0]).await?;
    h.step(&job_of(h, "run-c", 0).await?, cancel()).await?;
    assert!(h.news_of(&["run-c"]).await?[0].no > news[3].no, "numbers are not used again");
    Ok(())
}

pub async fn news_come_in_order_and_within_the_limit(h: &StoreHarness) -> Proof {
    for run in ["run-a", "run-b", "run-c"] {
        h.begin_with(run, &[0, 1]).await?;
    }
    for (run, node) in [("run-b", 1), ("run-a", 0), ("run-c", 0), ("run-b", 0), ("run-a", 1)] {
        h.step(&job_of(h, run, node).await?, cancel()).await?;
    }
    let both: Vec<RunId> = ["run-a", "run-b"].map(RunId::from).into();
    let told = async |limit| {
        Ok::<_, lockgate_ports::StoreError>(h.store.news(&both, limit).await?.iter().map(subject).collect::<Vec<_>>())
    };
    let all = ["run-b.1 CANCELLED", "run-a.0 CANCELLED", "run-b.0 CANCELLED", "run-a.1 CANCELLED"];
    assert_eq!(told(10).await?, all);
    assert_eq!(told(3).await?, all[..3]);
    assert_eq!((h.store.news(&both, 0).await?.len(), h.store.news(&[], 10).await?.len()), (0, 0));
    Ok(())
}

pub async fn a_run_that_is_over_is_told_to_its_parent(h: &StoreHarness) -> Proof {
    h.begin("run-a").await?;
    let child = child_of("run-a", head(h, "run-b"));
    h.advance(change(child.clone())).await??;
    h.advance(change(after(&child))).await??;
    assert_eq!(h.told(&["run-a"]).await?, [""; 0], "it goes on");
    let done = over(h, &after(&child));
    h.advance(change(done.clone())).await??;
    assert_eq!(h.advance(change(done.clone())).await?, Err(lockgate_ports::store::RunRefusal::Conflict));
    let news = h.news_of(&["run-a"]).await?;
    assert!(matches!(&news[..], [NewsRow { what: RunNews::Run(told), .. }] if **told == done), "{news:?}");
    let tainted = lockgate_core::dag::RunHead { tainted: true, ..after(&done) };
    h.advance(change(tainted.clone())).await??;
    let news = h.news_of(&["run-a"]).await?;
    assert!(news.iter().all(|news| matches!(&news.what, RunNews::Run(told) if **told == tainted)), "as of now");
    assert_eq!(news.len(), 2, "told again");
    let stillborn = lockgate_core::dag::RunHead { state: RunState::Failed, ..child_of("run-a", head(h, "run-c")) };
    h.advance(change(stillborn)).await??;
    assert_eq!(h.told(&["run-a"]).await?.last().map(String::as_str), Some("run-c FAILED"));
    Ok(())
}

pub async fn runs_that_have_not_heard_are_found_by_the_age_of_their_news(h: &StoreHarness) -> Proof {
    for run in ["run-a", "run-b", "run-c", "run-d"] {
        h.begin_with(run, &[0, 1]).await?;
    }
    for (run, node) in [("run-b", 0), ("run-a", 0), ("run-b", 1), ("run-c", 0)] {
        h.step(&job_of(h, run, node).await?, cancel()).await?;
        h.advance_ms(1_000);
    }
    let unheard = async |ms, limit| h.store.unheard(Duration::from_millis(ms), limit).await;
    assert_eq!(unheard(0, 10).await?, ["run-b", "run-a", "run-c"].map(RunId::from));
    assert_eq!(unheard(3_000, 10).await?, ["run-b", "run-a"].map(RunId::from));
    assert_eq!(unheard(3_001, 10).await?, ["run-b"].map(RunId::from));
    assert_eq!(unheard(0, 2).await?, ["run-b", "run-a"].map(RunId::from));
    assert_eq!(unheard(5_000, 10).await?, []);
    let heard = h.news_of(&["run-b"]).await?.iter().map(|news| news.no).collect();
    h.advance(RunChange { heard, ..change(after(&head(h, "run-b"))) }).await??;
    assert_eq!(unheard(0, 10).await?, ["run-a", "run-c"].map(RunId::from));
    Ok(())
}

/// A plain job that is part of a saga, as a client submits it.
fn of_workflow(id: &str) -> NewJob {
    NewJob { workflow_id: Some("order-7".into()), ..new_job(id) }
}

pub async fn a_saga_hears_of_its_jobs_from_their_birth_on(h: &StoreHarness) -> Proof {
    let born = h.submit(of_workflow("a")).await?;
    let saga = born.request.run.clone().ok_or("no part of a saga")?.run;
    assert_eq!(h.told(&[saga.as_str()]).await?, ["a SCHEDULED"]);
    let dead = h.run(&born, fatal()).await?;
    assert_eq!(h.told(&[saga.as_str()]).await?, ["a FAILED"; 2], "both as of now");
    h.step(&dead, replay()).await?;
    assert_eq!(h.told(&[saga.as_str()]).await?, ["a SCHEDULED"; 3], "a new life is told too");
    let heard = h.news_of(&[saga.as_str()]).await?.iter().map(|news| news.no).collect();
    h.advance(RunChange { heard, ..change(head(h, saga.as_str())) }).await??;
    assert_eq!(h.told(&[saga.as_str()]).await?, [""; 0]);
    Ok(())
}

pub async fn a_saga_is_found_by_its_news_before_it_has_begun(h: &StoreHarness) -> Proof {
    let born = h.submit(of_workflow("a")).await?;
    let saga = born.request.run.clone().ok_or("no part of a saga")?.run;
    // A missing run of a DAG was deleted; a missing saga has not begun.
    h.commit(job_in(h, "run-gone", 0, deny())?).await??;
    assert_eq!(h.store.unheard(Duration::ZERO, 10).await?, [saga]);
    Ok(())
}

pub async fn an_undo_that_people_are_asked_about_is_told_at_birth(h: &StoreHarness) -> Proof {
    let part = |node| RunRef { run: "run-a".into(), node, item: None, round: 0, undo: true };
    let jobs = vec![
        job_named(h, "comp-0", part(0), under("p", Decision::RequireApproval))?,
        job_named(h, "comp-1", part(1), allow())?,
    ];
    h.advance(RunChange { jobs, ..change(head(h, "run-a")) }).await??;
    assert_eq!(h.told(&["run-a"]).await?, ["comp-0 APPROVAL_REQUIRED"]);
    Ok(())
}
