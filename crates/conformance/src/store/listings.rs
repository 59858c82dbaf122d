//! Lists for people: newest first, filtered, in pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::job::{DeadLetter, Input, Job, JobState, Reason};
use lockgate_core::lane::Priority;
use lockgate_core::request::{Json, NewJob};
use lockgate_core::verdict::{BUILTIN_ALLOW, Judgement, Verdict};

use super::stage::{Found, Proof, StoreHarness, allow, cancel, fatal, ids, new_job, replay, success};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{DeadLetterQuery, JobQuery, LOG_LINES_MAX, LogLine, Store, StoreError};

/// Follows the cursor to the end.
pub(super) async fn all_jobs(store: &dyn Store, mut query: JobQuery) -> Found<Vec<Job>> {
    let mut jobs = Vec::new();
    loop {
        let page = store.list(query.clone()).await?;
        assert!(page.items.len() <= query.limit.max(1), "a page longer than asked");
        jobs.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(jobs);
        }
    }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(super) async fn all_letters(store: &dyn Store, mut query: DeadLetterQuery) -> Found<Vec<DeadLetter>> {
    let mut letters = Vec::new();
    loop {
        let page = store.dead_letters(query.clone()).await?;
        assert!(page.items.len() <= query.limit.max(1), "a page longer than asked");
        letters.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(letters);
        }
    }
}

/// Five jobs, live and ended by turns.
async fn mixed(h: &StoreHarness) -> Proof {
    let labelled = |id: &str, team: &str| NewJob { labels: labels(&[("team", team), ("app", "x")]), ..new_job(id) };
    let a = h.submit(labelled("a", "blue")).await?;
    h.submit(labelled("b", "red")).await?;
    let c = h.submit(NewJob { topic: "job.other".to_owned(), ..labelled("c", "blue") }).await?;
    h.submit_as("other", new_job("d"), allow()).await?;
    h.submit(new_job("e")).await?;
    h.run(&a, success()).await?;
    h.step(&c, cancel()).await?;
    Ok(())
}

pub async fn jobs_are_listed_newest_first_over_pages(h: &StoreHarness) -> Proof {
    mixed(h).await?;
    for limit in [1, 2, 5, 100] {
        let jobs = all_jobs(&*h.store, JobQuery { limit, ..JobQuery::default() }).await?;
        assert_eq!(ids(&jobs), ["e", "d", "c", "b", "a"], "in pages of {limit}");
    }
    let first = h.store.list(JobQuery { limit: 2, ..JobQuery::default() }).await?;
    h.submit(new_job("newer")).await?;
    let second = h.store.list(JobQuery { limit: 2, cursor: first.next, ..JobQuery::default() }).await?;
    assert_eq!(ids(&second.items), ["c", "b"], "a new job does not shift the pages");
    Ok(())
}

pub async fn each_filter_narrows_the_list(h: &StoreHarness) -> Proof {
    mixed(h).await?;
    let any = || JobQuery { limit: 2, ..JobQuery::default() };
    let cases: Vec<(JobQuery, &[&str])> = vec![
        (JobQuery { tenant: Some("other".into()), ..any() }, &["d"]),
        (JobQuery { topic: Some("job.other".into()), ..any() }, &["c"]),
        (JobQuery { state: Some(JobState::Scheduled), ..any() }, &["e", "d", "b"]),
        (JobQuery { state: Some(JobState::Succeeded), ..any() }, &["a"]),
        (JobQuery { state: Some(JobState::Cancelled), ..any() }, &["c"]),
        (JobQuery { labels: labels(&[("team", "blue")]), ..any() }, &["c", "a"]),
        (JobQuery { labels: labels(&[("team", "blue"), ("app", "y")]), ..any() }, &[]),
        (JobQuery { labels: labels(&[("team", "blue")]), state: Some(JobState::Succeeded), ..any() }, &["a"]),
        (JobQuery { tenant: Some("acme".into()), topic: Some("job.echo".into()), ..any() }, &["e", "b", "a"]),
        (JobQuery { tenant: Some("nobody".into()), ..any() }, &[]),
    ];
    for (query, expected) in cases {
        let jobs = all_jobs(&*h.store, query.clone()).await?;
        assert_eq!(ids(&jobs), expected, "{query:?}");
    }
    Ok(())
}

pub async fn jobs_are_listed_by_labels_of_the_platform_and_by_trace(h: &StoreHarness) -> Proof {
    let traced = |id: &str, trace: &str| NewJob { trace_id: Some(trace.to_owned()), ..new_job(id) };
    let bypass = || Judgement::Decided(Arc::new(Verdict::bypass("kernel away", BUILTIN_ALLOW.into())));
    h.submit(traced("judged", "t-1")).await?;
    h.submit_as("acme", traced("unjudged", "t-1"), bypass()).await?;
    let done = h.submit_as("acme", traced("unjudged-done", "t-2"), bypass()).await?;
    h.run(&done, success()).await?;
    let any = || JobQuery { limit: 1, ..JobQuery::default() };
    let bypassed = || labels(&[("safety_bypassed", "true")]);
    let trace = |id: &str| Some(Arc::from(id));
    for (query, expected) in [
        (JobQuery { labels: bypassed(), ..any() }, &["unjudged-done", "unjudged"][..]),
        (JobQuery { labels: labels(&[("safety_bypassed", "false")]), ..any() }, &[]),
        (
            JobQuery {
                labels: labels(&[("safety_bypass_reason", "fail-open: safety unavailable -- kernel away")]),
                ..any()
            },
            &["unjudged-done", "unjudged"],
        ),
        (JobQuery { trace_id: trace("t-1"), ..any() }, &["unjudged", "judged"]),
        (JobQuery { trace_id: trace("t-2"), state: Some(JobState::Succeeded), ..any() }, &["unjudged-done"]),
        (JobQuery { trace_id: trace("t-1"), labels: bypassed(), ..any() }, &["unjudged"]),
        (JobQuery { trace_id: trace("t-3"), ..any() }, &[]),
    ] {
        let jobs = all_jobs(&*h.store, query.clone()).await?;
        assert_eq!(ids(&jobs), expected, "{query:?}");
    }
    Ok(())
}

pub async fn listed_jobs_have_no_payload(h: &StoreHarness) -> Proof {
    let live = h.submit(NewJob { payload: Some(Json::trusted("[1]")), ..new_job("live") }).await?;
    let done = h.submit(NewJob { payload: Some(Json::trusted("[2]")), ..new_job("done") }).await?;
    h.run(&done, success()).await?;
    let jobs = all_jobs(&*h.store, JobQuery { limit: 10, ..JobQuery::default() }).await?;
    assert!(jobs.iter().all(|job| job.request.payload == Json::null()));
    // What is listed can be decided on: a commit leaves the payload alone.
    h.step(&jobs[1], cancel()).await?;
    assert_eq!(h.load("live").await?.request, live.request);
    Ok(())
}

pub async fn dead_letters_are_listed_newest_first_with_each_filter(h: &StoreHarness) -> Proof {
    let late = h.submit(NewJob { deadline_ms: Some(5), topic: "job.late".to_owned(), ..new_job("late") }).await?;
    let blue = labels(&[("team", "blue"), ("app", "x")]);
    let a = h.submit(NewJob { priority: Some(Priority::Critical), labels: blue, ..new_job("a") }).await?;
    let b = h.submit_as("other", new_job("b"), allow()).await?;
    let c = h.submit(new_job("c")).await?;
    for job in [&b, &a, &c] {
        h.run(job, fatal()).await?;
    }
    h.advance_ms(10);
    h.step(&late, Input::Woken).await?;
    let any = || DeadLetterQuery { limit: 2, ..DeadLetterQuery::default() };
    let cases: Vec<(DeadLetterQuery, &[&str])> = vec![
        (any(), &["late", "c", "a", "b"]),
        (DeadLetterQuery { tenant: Some("other".into()), ..any() }, &["b"]),
        (DeadLetterQuery { topic: Some("job.echo".into()), ..any() }, &["c", "a", "b"]),
        (DeadLetterQuery { priority: Some(Priority::Critical), ..any() }, &["a"]),
        (DeadLetterQuery { reason: Some(Reason::DeadlineExceeded), ..any() }, &["late"]),
        (DeadLetterQuery { labels: labels(&[("team", "blue")]), ..any() }, &["a"]),
        (DeadLetterQuery { labels: labels(&[("team", "blue"), ("app", "y")]), ..any() }, &[]),
        (DeadLetterQuery { reason: Some(Reason::Fatal), tenant: Some("acme".into()), ..any() }, &["c", "a"]),
    ];
    for (query, expected) in cases {
        let letters = all_letters(&*h.store, query.clone()).await?;
        let found: Vec<&str> = letters.iter().map(|letter| letter.job_id.as_str()).collect();
        assert_eq!(found, expected, "{query:?}");
    }
    h.step(&h.load("a").await?, replay()).await?;
    assert_eq!(all_letters(&*h.store, any()).await?.len(), 3);
    Ok(())
}

pub async fn a_limit_of_zero_still_moves_on(h: &StoreHarness) -> Proof {
    mixed(h).await?;
    assert_eq!(all_jobs(&*h.store, JobQuery::default()).await?.len(), 5);
    h.run(&h.load("b").await?, fatal()).await?;
    assert_eq!(all_letters(&*h.store, DeadLetterQuery::default()).await?.len(), 1);
    Ok(())
}

pub async fn logs_are_kept_in_order_and_bounded(h: &StoreHarness) -> Proof {
    h.submit(new_job("one")).await?;
    h.submit(new_job("two")).await?;
    let line =
        |id: &str, n: usize| LogLine { job_id: id.into(), attempt: 1, at: h.clock.now(), line: format!("line {n}").into() };
    h.store.append_logs(vec![line("one", 0), line("two", 0), line("ghost", 0), line("one", 1)]).await?;
    assert_eq!(logs(h, "one", 0, 10).await?.1, [line("one", 0), line("one", 1)]);
    assert_eq!(logs(h, "one", 0, 1).await?.1, [line("one", 1)]);
    assert_eq!(logs(h, "ghost", 0, 10).await?.1, []);
    let (seen, _) = logs(h, "one", 0, 10).await?;
    assert_eq!(logs(h, "one", seen[0], 10).await?.1, [line("one", 1)], "a reader goes on after what it has seen");
    assert_eq!(logs(h, "one", seen[1], 10).await?.1, []);
    h.store.append_logs((2..LOG_LINES_MAX + 3).map(|n| line("one", n)).collect()).await?;
    let (numbers, kept) = logs(h, "one", 0, usize::MAX).await?;
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers[0] > seen[1], "numbers grow and are never used again");
    assert_eq!(logs(h, "one", seen[1], usize::MAX).await?.1, kept, "what was dropped is not waited for");
    assert_eq!(
        (kept.len(), kept.first(), kept.last()),
        (LOG_LINES_MAX, Some(&line("one", 3)), Some(&line("one", LOG_LINES_MAX + 2)))
    );
    assert_eq!(logs(h, "two", 0, 10).await?.1, [line("two", 0)]);
    Ok(())
}

/// Numbers and lines.
async fn logs(h: &StoreHarness, id: &str, after: u64, limit: usize) -> Result<(Vec<u64>, Vec<LogLine>), StoreError> {
    let kept = h.store.logs(&id.into(), after, limit).await?;
    Ok(kept.into_iter().map(|kept| (kept.no, kept.line)).unzip())
}

pub async fn an_unknown_job_has_nothing(h: &StoreHarness) -> Proof {
    let ghost = "ghost".into();
    assert!(h.store.detail(&ghost).await?.is_none());
    assert!(h.store.events(&ghost, 0).await?.is_none());
    assert_eq!(h.store.load(std::slice::from_ref(&ghost)).await?, [None]);
    Ok(())
}
