//! Queues and their order.

use lockgate_core::ids::{JobId, SessionId};
use lockgate_core::job::{Input, Job, JobState, Outcome};
use lockgate_core::lane::{Priority, ReadyKey};
use lockgate_core::request::NewJob;
use lockgate_core::verdict::{BUILTIN_ALLOW, Decision, Judgement, Verdict};
use std::sync::Arc;
use std::time::Duration;

use super::runs_stage::{change, head, job_in};
use super::stage::{Proof, StoreHarness, allow, fatal, ids, new_job, replay, report};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::RunChange;

const START: ReadyKey = ReadyKey { due_at: lockgate_core::time::Timestamp::ZERO, seq: lockgate_core::ids::JobSeq(0) };

fn later(h: &StoreHarness, id: &str, ms: u64) -> NewJob {
    NewJob { not_before: Some(h.clock.now() + Duration::from_millis(ms)), ..new_job(id) }
}

pub async fn ready_jobs_come_in_ready_order_by_lane(h: &StoreHarness) -> Proof {
    let slow = h.submit(later(h, "slow", 10)).await?;
    h.submit(new_job("a")).await?;
    h.submit(NewJob { priority: Some(Priority::Low), ..new_job("low") }).await?;
    h.submit_as("other", new_job("foreign"), allow()).await?;
    h.submit(NewJob { requires: ["gpu".to_owned()].into(), ..new_job("gpu") }).await?;
    h.submit(NewJob { topic: "job.other".to_owned(), ..new_job("topic") }).await?;
    h.advance_ms(5);
    h.submit(new_job("b")).await?;
    h.advance_ms(20);
    h.submit(new_job("c")).await?;
    let ready = h.store.ready(&slow.lane(), None, 10).await?;
    assert_eq!(ids(&ready), ["a", "b", "slow", "c"]);
    let lanes = h.store.ready_lanes().await?;
    assert_eq!(lanes.len(), 5);
    assert_eq!(lanes.iter().find(|(lane, _)| *lane == slow.lane()).map(|(_, n)| *n), Some(4));
    assert_eq!(lanes.iter().map(|(_, n)| n).sum::<u64>(), 8);
    assert!(lanes.is_sorted_by(|a, b| a.0 < b.0), "lanes come in the order of their keys");
    Ok(())
}

pub async fn ready_pages_go_on_after_a_key(h: &StoreHarness) -> Proof {
    let mut last: Option<Job> = None;
    for n in 0..7 {
        last = Some(h.submit(new_job(&format!("job-{n}"))).await?);
        if n % 3 == 0 {
            h.advance_ms(1);
        }
    }
    let lane = last.ok_or("no job")?.lane();
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = h.store.ready(&lane, after, 2).await?;
        let Some(end) = page.last() else { break };
        after = Some(end.ready_key());
        seen.extend(page);
    }
    assert_eq!(ids(&seen), ["job-0", "job-1", "job-2", "job-3", "job-4", "job-5", "job-6"]);
    Ok(())
}

pub async fn delayed_jobs_become_ready_when_due(h: &StoreHarness) -> Proof {
    let job = h.submit(later(h, "one", 100)).await?;
    h.advance_ms(99);
    assert_eq!(h.store.ready(&job.lane(), None, 10).await?, []);
    assert_eq!(h.store.ready_lanes().await?, []);
    assert_eq!(h.store.due(START, 10).await?, []);
    h.advance_ms(1);
    assert_eq!(h.store.ready(&job.lane(), None, 10).await?, std::slice::from_ref(&job));
    assert_eq!(h.store.ready_lanes().await?, [(job.lane(), 1)]);
    assert_eq!(h.store.due(START, 10).await?, [job]);
    Ok(())
}

pub async fn due_has_only_jobs_that_had_to_wait(h: &StoreHarness) -> Proof {
    h.submit(later(h, "late", 30)).await?;
    h.submit(later(h, "early", 10)).await?;
    h.submit(later(h, "early-too", 10)).await?;
    h.submit(new_job("at-once")).await?;
    let job = h.submit(new_job("retried")).await?;
    let failed =
        Outcome::FailedRetryable { error: "again".into(), code: None, retry_after: Some(Duration::from_millis(20)) };
    let retried = h.run(&job, failed).await?;
    assert_eq!(retried.state(), JobState::Scheduled);
    h.advance_ms(40);
    let all = h.store.due(START, 10).await?;
    assert_eq!(ids(&all), ["early", "early-too", "retried", "late"]);
    let rest = h.store.due(all[0].ready_key(), 2).await?;
    assert_eq!(ids(&rest), ["early-too", "retried"]);
    h.run(&all[3], Outcome::Interrupted).await?;
    assert_eq!(ids(&h.store.due(START, 10).await?), ["early", "early-too", "retried"], "it returned without waiting");
    Ok(())
}

/// Each is decided by a clock that is 9, 10 or 11 ms behind the Store's.
pub async fn due_has_all_that_the_stores_clock_had_yet_to_reach(h: &StoreHarness) -> Proof {
    let epoch = h.attach("runner").await?;
    for late in [9, 10, 11] {
        let mut held = Vec::new();
        for id in [format!("retried-{late}"), format!("replayed-{late}")] {
            let job = h.submit(new_job(&id)).await?;
            held.push(h.dispatch(&job, "runner", epoch).await?);
        }
        let failed =
            Outcome::FailedRetryable { error: "again".into(), code: None, retry_after: Some(Duration::from_millis(10)) };
        let retried = held[0].next(report(&held[0], failed), &h.env(allow()))?;
        let due_at = retried.job.life.due_at;
        let dead = h.step(&held[1], report(&held[1], fatal())).await?;
        let mut replayed = dead.next(replay(), &h.env(allow()))?;
        let born = h.birth("acme", later(h, &format!("born-{late}"), 10), allow())?;
        let run = format!("run-{late}");
        let mut part = job_in(h, &run, 0, allow())?;
        (replayed.job.life.due_at, part.job.life.due_at) = (due_at, due_at);
        h.advance_ms(late);
        for transition in [retried, replayed, born] {
            h.commit(transition).await??;
        }
        h.advance(RunChange { jobs: vec![part], ..change(head(h, &run)) }).await??;
        let (_, now) = h.store.next_schedule().await?;
        assert_eq!(due_at > now, late < 10, "{late}");
    }
    h.advance_ms(10);
    assert_eq!(ids(&h.store.due(START, 20).await?), ["retried-9", "replayed-9", "born-9", "run-9.0"]);
    Ok(())
}

pub async fn pending_jobs_wait_for_their_time(h: &StoreHarness) -> Proof {
    for id in ["a", "b", "c"] {
        h.submit_as("acme", new_job(id), Judgement::UNASKED).await?;
        h.advance_ms(1);
    }
    assert_eq!(h.store.pending(START, 10).await?, []);
    h.advance_ms(10_000);
    let all = h.store.pending(START, 10).await?;
    assert_eq!(ids(&all), ["a", "b", "c"]);
    assert_eq!(ids(&h.store.pending(all[0].ready_key(), 1).await?), ["b"]);
    h.step(&all[1], Input::Judged).await?;
    assert_eq!(ids(&h.store.pending(START, 10).await?), ["a", "c"]);
    assert_eq!(h.store.ready_lanes().await?.len(), 1);
    Ok(())
}

pub async fn expired_has_live_jobs_past_their_deadline(h: &StoreHarness) -> Proof {
    let within = |id: &str, ms| NewJob { deadline_ms: Some(ms), ..new_job(id) };
    h.submit(within("second", 20)).await?;
    h.submit(within("first", 10)).await?;
    h.submit(within("far", 5_000)).await?;
    h.submit(new_job("endless")).await?;
    h.submit_as("acme", within("pending", 30), Judgement::UNASKED).await?;
    h.advance_ms(19);
    assert_eq!(ids(&h.store.expired(START, 10).await?), ["first"]);
    h.advance_ms(11);
    assert_eq!(ids(&h.store.expired(START, 10).await?), ["first", "second", "pending"]);
    assert_eq!(ids(&h.store.expired(START, 2).await?), ["first", "second"]);
    let first = h.load("first").await?;
    assert_eq!(h.step(&first, Input::Woken).await?.state(), JobState::Timeout);
    assert_eq!(ids(&h.store.expired(START, 10).await?), ["second", "pending"]);
    Ok(())
}

pub async fn expired_pages_go_on_after_a_key(h: &StoreHarness) -> Proof {
    for (id, ms) in [("d", 20), ("a", 10), ("b", 10), ("e", 30), ("c", 10)] {
        h.submit(NewJob { deadline_ms: Some(ms), ..new_job(id) }).await?;
    }
    h.advance_ms(40);
    let (mut after, mut seen) = (START, Vec::new());
    loop {
        let page = h.store.expired(after, 2).await?;
        let Some(end) = page.last() else { break };
        after = end.deadline_key().ok_or("it has no deadline")?;
        seen.extend(page);
    }
    assert_eq!(ids(&seen), ["a", "b", "c", "d", "e"]);
    Ok(())
}

pub async fn held_has_the_jobs_of_one_session(h: &StoreHarness) -> Proof {
    let (one, two) = (h.attach("one").await?, h.attach("two").await?);
    let mut jobs = Vec::new();
    for id in ["a", "b", "c", "d"] {
        jobs.push(h.submit(new_job(id)).await?);
    }
    let a = h.dispatch(&jobs[0], "one", one).await?;
    h.dispatch(&jobs[1], "two", two).await?;
    let c = h.dispatch(&jobs[2], "one", one).await?;
    let started = Input::Started { token: c.life.attempt.token.clone(), at: h.clock.now() };
    let c = h.step(&c, started).await?;
    assert_eq!(h.store.held(&SessionId::from("one")).await?, [a.clone(), c]);
    let bound = |session: &str, id: &str| (SessionId::from(session), JobId::from(id));
    let asked = ["two", "three", "one"].map(SessionId::from);
    assert_eq!(h.store.bound(&asked).await?, [bound("two", "b"), bound("one", "a"), bound("one", "c")]);
    h.step(&a, report(&a, Outcome::Interrupted)).await?;
    assert_eq!(h.store.bound(&asked).await?, [bound("two", "b"), bound("one", "c")]);
    assert_eq!(ids(&h.store.held(&SessionId::from("one")).await?), ["c"]);
    assert_eq!(ids(&h.store.held(&SessionId::from("two")).await?), ["b"]);
    assert_eq!(h.store.held(&SessionId::from("three")).await?, []);
    Ok(())
}

pub async fn a_job_waits_in_the_lane_that_its_latest_verdict_says(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("a")).await?;
    let before = job.lane();
    let verdict = Verdict::plain(Decision::AllowWithConstraints, "few", "not many", BUILTIN_ALLOW.into())
        .but(|verdict| verdict.constraints.max_concurrent = Some(2));
    let judged = job.next(Input::Judged, &h.env(Judgement::Decided(Arc::new(verdict))))?;
    h.commit(judged).await??;
    let job = h.load("a").await?;
    assert_ne!(job.lane(), before);
    assert_eq!(ids(&h.store.ready(&job.lane(), None, 10).await?), ["a"]);
    assert!(h.store.ready(&before, None, 10).await?.is_empty());
    assert_eq!(h.store.ready_lanes().await?, [(job.lane(), 1)]);
    // What waits is still found after everything unused was forgotten.
    h.store.prune(Duration::from_secs(1), 100).await?;
    assert_eq!(h.store.ready_lanes().await?, [(job.lane(), 1)]);
    Ok(())
}
