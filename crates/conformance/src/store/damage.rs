//! Undecodable rows do not affect other rows.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{JobId, JobSeq, RunId};
use lockgate_core::job::{Duty, EventKind, Input, Job, Outcome};
use lockgate_core::lane::ReadyKey;
use lockgate_core::output::OutputStep;
use lockgate_core::request::NewJob;
use lockgate_core::verdict::{BUILTIN_ALLOW, Decision, Judgement, Verdict};

use super::runs_stage::{job_of, subject};
use super::schedules_stage::{TENANT, names, schedule, turn, waking};
use super::stage::{Found, Proof, StoreHarness, cancel, ids, new_job, report, success};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{JobQuery, StoreError};

/// In a rolling upgrade a process of this version reads rows with fields that it does not know.
pub async fn what_a_newer_version_wrote_is_read_and_kept(h: &StoreHarness) -> Proof {
    h.submit(new_job("a")).await?;
    let verdict = Verdict::plain(Decision::AllowWithConstraints, "few", "not many", BUILTIN_ALLOW.into())
        .but(|verdict| verdict.constraints.max_concurrent = Some(2));
    let judged = h.load("a").await?.next(Input::Judged, &h.env(Judgement::Decided(Arc::new(verdict))))?;
    h.commit(judged).await??;
    h.rewrite("a", "\"submitted\"", "\"foreseen\"").await?;
    h.rewrite("a", r#""max_concurrent":2"#, r#""max_concurrent":2,"moon":{"phase":[1,"new"]}"#).await?;
    let kinds = async || -> Found<Vec<String>> {
        let events = h.store.events(&"a".into(), 0).await?.ok_or("no job")?.events;
        Ok(events.iter().map(|event| event.kind.as_str().to_owned()).collect())
    };
    assert_eq!(kinds().await?, ["foreseen", "scheduled", "scheduled"]);
    let moon = |job: &Job| job.constraints().unknown.get("moon").map(ToString::to_string);
    let read = h.load("a").await?;
    assert_eq!((moon(&read).as_deref(), read.constraints().max_concurrent), (Some(r#"{"phase":[1,"new"]}"#), Some(2)));
    // Written again by a change of something else.
    let epoch = h.attach("s").await?;
    h.dispatch(&read, "s", epoch).await?;
    assert_eq!(moon(&h.load("a").await?).as_deref(), Some(r#"{"phase":[1,"new"]}"#));
    h.step(&h.load("a").await?, cancel()).await?;
    assert_eq!(kinds().await?, ["foreseen", "scheduled", "scheduled", "dispatched", "cancelled"]);
    assert_eq!(moon(&h.load("a").await?).as_deref(), Some(r#"{"phase":[1,"new"]}"#), "in history too");
    Ok(())
}

pub async fn what_a_newer_version_decided_is_read_and_kept(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("a")).await?;
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&job, "s", epoch).await?;
    let failed = Outcome::FailedRetryable { error: "no".into(), code: None, retry_after: None };
    let again = h.step(&held, report(&held, failed)).await?;
    h.rewrite("a", "\"failed\"", "\"tired\"").await?;
    h.rewrite("a", r#""decision":"allow""#, r#""decision":"allow_on_mars""#).await?;
    let words = async || -> Found<[Option<String>; 3]> {
        let life = h.load("a").await?.life;
        let events = h.store.events(&"a".into(), 0).await?.ok_or("no job")?.events;
        let of_event = events.iter().find(|event| event.kind == EventKind::AttemptFailed).and_then(|event| event.reason);
        let of_attempt = life.attempt.verdict.map(|verdict| verdict.decision.as_str().to_owned());
        let [of_life, of_event] = [life.last_error.map(|error| error.reason), of_event]
            .map(|reason| reason.map(|reason| reason.as_str().to_owned()));
        Ok([of_attempt, of_life, of_event])
    };
    let foreseen = ["allow_on_mars", "tired", "tired"].map(|word| Some(word.to_owned()));
    assert_eq!(words().await?, foreseen);
    // Written again by changes of something else.
    h.clock.advance(again.life.due_at.since(h.clock.now()));
    h.dispatch(&h.load("a").await?, "s", epoch).await?;
    assert_eq!(words().await?, foreseen);
    h.step(&h.load("a").await?, cancel()).await?;
    let [decision, _, event] = words().await?;
    assert_eq!([&decision, &event], [&foreseen[0], &foreseen[2]], "in history too");
    Ok(())
}

const START: ReadyKey = ReadyKey { due_at: lockgate_core::time::Timestamp::ZERO, seq: JobSeq(0) };

/// The second and the last of five.
const NAMES: [&str; 5] = ["a", "bad", "b", "c", "worse"];

async fn spoilt(h: &StoreHarness) -> Proof {
    h.spoil("bad").await?;
    h.spoil("worse").await
}

pub async fn ready_jobs_are_read_past_a_spoilt_one(h: &StoreHarness) -> Proof {
    let mut jobs: Vec<Job> = Vec::new();
    for id in NAMES {
        jobs.push(h.submit(new_job(id)).await?);
        h.advance_ms(1);
    }
    spoilt(h).await?;
    let lane = jobs[0].lane();
    assert_eq!(ids(&h.store.ready(&lane, None, 10).await?), ["a", "b", "c"]);
    assert_eq!(ids(&h.store.ready(&lane, None, 2).await?), ["a", "b"], "a page is filled with what lies behind");
    assert_eq!(ids(&h.store.ready(&lane, Some(jobs[0].ready_key()), 1).await?), ["b"]);
    assert_eq!(h.store.ready(&lane, Some(jobs[3].ready_key()), 1).await?, []);
    let met = h.store.unreadable();
    assert!(met.rows >= 3, "{met:?}");
    assert!(met.latest.is_some_and(|latest| latest.contains("job worse")));
    Ok(())
}

pub async fn a_lane_is_known_although_its_head_is_spoilt(h: &StoreHarness) -> Proof {
    let head = h.submit(new_job("bad")).await?;
    h.advance_ms(1);
    h.submit(new_job("a")).await?;
    h.spoil("bad").await?;
    let lanes = h.store.ready_lanes().await?;
    assert_eq!(lanes.iter().map(|(lane, _)| lane).collect::<Vec<_>>(), [&head.lane()]);
    Ok(())
}

pub async fn jobs_that_wait_for_a_time_are_read_past_a_spoilt_one(h: &StoreHarness) -> Proof {
    let at = h.clock.now() + Duration::from_millis(10);
    for id in NAMES {
        h.submit(NewJob { not_before: Some(at), deadline_ms: Some(20), ..new_job(id) }).await?;
    }
    spoilt(h).await?;
    h.advance_ms(30);
    let due = h.store.due(START, 2).await?;
    assert_eq!(ids(&due), ["a", "b"]);
    assert_eq!(ids(&h.store.due(due[1].ready_key(), 2).await?), ["c"]);
    let expired = h.store.expired(START, 2).await?;
    assert_eq!(ids(&expired), ["a", "b"]);
    let after = expired[1].deadline_key().ok_or("it has no deadline")?;
    assert_eq!(ids(&h.store.expired(after, 2).await?), ["c"]);
    Ok(())
}

pub async fn jobs_that_wait_for_a_verdict_are_read_past_a_spoilt_one(h: &StoreHarness) -> Proof {
    for id in NAMES {
        h.submit_as("acme", new_job(id), Judgement::UNASKED).await?;
    }
    spoilt(h).await?;
    h.advance_ms(10_000);
    let pending = h.store.pending(START, 2).await?;
    assert_eq!(ids(&pending), ["a", "b"]);
    assert_eq!(ids(&h.store.pending(pending[1].ready_key(), 2).await?), ["c"]);
    Ok(())
}

pub async fn what_a_session_holds_is_read_past_a_spoilt_job(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    for id in NAMES {
        let job = h.submit(new_job(id)).await?;
        h.dispatch(&job, "s", epoch).await?;
    }
    spoilt(h).await?;
    assert_eq!(ids(&h.store.held(&"s".into()).await?), ["a", "b", "c"]);
    assert_eq!(h.store.bound(&["s".into()]).await?.len(), 5, "names can be read");
    Ok(())
}

pub async fn what_is_owed_is_read_past_a_spoilt_job(h: &StoreHarness) -> Proof {
    for id in NAMES {
        let job = h.submit(new_job(id)).await?;
        h.run_checked(&job, success(), OutputStep::Scan { hold: false }).await?;
    }
    spoilt(h).await?;
    let owing = h.store.owing(Duty::Scan, JobSeq::default(), 2).await?;
    assert_eq!(ids(&owing), ["a", "b"]);
    assert_eq!(ids(&h.store.owing(Duty::Scan, owing[1].seq, 2).await?), ["c"]);
    Ok(())
}

pub async fn schedules_are_read_past_pages_of_spoilt_ones(h: &StoreHarness) -> Proof {
    let now = h.clock.now().as_millis();
    // One time has many schedules: pages go on within it.
    for (name, at) in [("bad", 10), ("worse", 10), ("worst", 10), ("z", 10), ("a", 20), ("b", 20)] {
        h.turn(turn(waking(schedule(TENANT, name), now + at))).await??;
    }
    for name in ["bad", "worse", "worst"] {
        h.spoil_schedule(name).await?;
    }
    h.advance_ms(20);
    let readable = ["z", "a", "b"];
    for limit in [1, 2, 3, 10] {
        let due = h.store.due_schedules(limit).await?;
        assert_eq!(names(&due), readable[..limit.min(3)], "a page of {limit}");
    }
    let met = h.store.unreadable();
    assert!(met.latest.as_ref().is_some_and(|latest| latest.contains("schedule worst of acme")), "{met:?}");
    Ok(())
}

pub async fn lists_of_schedules_leave_spoilt_ones_out_and_a_call_that_names_one_is_told(h: &StoreHarness) -> Proof {
    for name in ["a", "b", "bad", "c", "worse", "worst", "z"] {
        h.put(name).await?;
    }
    for name in ["bad", "worse", "worst"] {
        h.spoil_schedule(name).await?;
    }
    let readable = ["a", "b", "c", "z"];
    let tenant = TENANT.into();
    for limit in [1, 2, 3, 10] {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = h.store.list_schedules(&tenant, after.as_deref(), limit).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.name.to_string());
            seen.extend(page);
        }
        assert_eq!(names(&seen), readable, "pages of {limit}");
    }
    let met = h.store.unreadable();
    assert!(met.latest.as_ref().is_some_and(|latest| latest.contains("schedule worst of acme")), "{met:?}");
    for named in [&["bad"][..], &["a", "bad"]] {
        let keys: Vec<_> = named.iter().map(|name| (tenant.clone(), (*name).into())).collect();
        let told = h.store.load_schedules(&keys).await;
        assert!(matches!(told, Err(StoreError::Corrupt(_))), "{told:?}");
    }
    assert!(h.schedule("a").await?.is_some());
    Ok(())
}

pub async fn news_are_read_past_pages_of_spoilt_jobs(h: &StoreHarness) -> Proof {
    h.begin_with("run-a", &[0, 1, 2, 3]).await?;
    h.begin_with("run-b", &[0]).await?;
    for (run, node) in [("run-a", 0), ("run-b", 0), ("run-a", 1), ("run-a", 2), ("run-a", 3)] {
        h.step(&job_of(h, run, node).await?, cancel()).await?;
    }
    for id in ["run-a.0", "run-b.0", "run-a.1"] {
        h.spoil(id).await?;
    }
    let both = ["run-a", "run-b"].map(RunId::from);
    let readable = ["run-a.2 CANCELLED", "run-a.3 CANCELLED"];
    for limit in [1, 2, 10] {
        let news = h.store.news(&both, limit).await?;
        assert_eq!(news.iter().map(subject).collect::<Vec<_>>(), readable[..limit.min(2)], "a page of {limit}");
    }
    Ok(())
}

pub async fn lists_for_people_leave_a_spoilt_job_out(h: &StoreHarness) -> Proof {
    for id in NAMES {
        h.submit(new_job(id)).await?;
    }
    spoilt(h).await?;
    let (mut query, mut seen) = (JobQuery { limit: 2, ..JobQuery::default() }, Vec::new());
    loop {
        let page = h.store.list(query.clone()).await?;
        seen.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(ids(&seen), ["c", "b", "a"]);
    Ok(())
}

pub async fn whoever_names_a_spoilt_job_is_told(h: &StoreHarness) -> Proof {
    for id in NAMES {
        h.submit(new_job(id)).await?;
    }
    spoilt(h).await?;
    let named = |names: &[&str]| names.iter().map(|name| JobId::from(*name)).collect::<Vec<_>>();
    for names in [&["bad"][..], &["a", "bad", "b"]] {
        let told = h.store.load(&named(names)).await;
        assert!(matches!(told, Err(StoreError::Corrupt(_))), "{told:?}");
    }
    assert!(matches!(h.store.detail(&"bad".into()).await, Err(StoreError::Corrupt(_))));
    assert_eq!(h.store.load(&named(&["a", "b"])).await?.iter().flatten().count(), 2);
    Ok(())
}
