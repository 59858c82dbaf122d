//! Lists of runs: for people, and for the loops that revisit runs.

use lockgate_core::dag::{DagRef, RunHead, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::time::Timestamp;

use super::runs_stage::{after, change, head, over};
use super::stage::{Found, Proof, StoreHarness};
use lockgate_ports::store::{RunQuery, Store};

/// Over all pages.
pub(super) async fn all_runs(store: &dyn Store, mut query: RunQuery) -> Found<Vec<RunHead>> {
    let mut runs = Vec::new();
    loop {
        let page = store.list_runs(query.clone()).await?;
        runs.extend(page.items);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(runs);
        }
    }
}

fn names(runs: &[RunHead]) -> Vec<&str> {
    runs.iter().map(|head| head.id.as_str()).collect()
}

pub async fn runs_are_listed_newest_first_over_pages(h: &StoreHarness) -> Proof {
    // Created in another order than that of their names.
    for run in ["run-c", "run-a", "run-d", "run-b", "run-e"] {
        h.begin(run).await?;
    }
    h.advance(change(after(&head(h, "run-a")))).await??;
    let page = h.store.list_runs(RunQuery { limit: 2, ..RunQuery::default() }).await?;
    assert_eq!((names(&page.items), page.next.is_some()), (vec!["run-e", "run-b"], true));
    let all = all_runs(&*h.store, RunQuery { limit: 2, ..RunQuery::default() }).await?;
    assert_eq!(names(&all), ["run-e", "run-b", "run-d", "run-a", "run-c"]);
    assert_eq!(all[3], h.run_of("run-a").await?.head);
    let all = all_runs(&*h.store, RunQuery::default()).await?;
    assert_eq!(all.len(), 5, "a limit of zero still moves on");
    Ok(())
}

pub async fn each_filter_narrows_the_list_of_runs(h: &StoreHarness) -> Proof {
    let theirs = RunHead { tenant: "other".into(), ..head(h, "run-theirs") };
    let nightly = RunHead { dag: DagRef { name: "nightly".into(), version: 2 }, ..head(h, "run-nightly") };
    let paused = RunHead { state: RunState::Paused, ..head(h, "run-paused") };
    for head in [theirs, nightly, paused, head(h, "run-done"), head(h, "run-live")] {
        h.advance(change(head)).await??;
    }
    h.advance(change(over(h, &head(h, "run-done")))).await??;
    let any = || RunQuery { limit: 1, ..RunQuery::default() };
    let of = async |query| -> Found<Vec<String>> {
        Ok(all_runs(&*h.store, query).await?.iter().map(|head| head.id.to_string()).collect())
    };
    assert_eq!(of(RunQuery { tenant: Some("other".into()), ..any() }).await?, ["run-theirs"]);
    assert_eq!(of(RunQuery { dag: Some("nightly".into()), ..any() }).await?, ["run-nightly"]);
    assert_eq!(of(RunQuery { state: Some(RunState::Paused), ..any() }).await?, ["run-paused"]);
    assert_eq!(of(RunQuery { state: Some(RunState::Succeeded), ..any() }).await?, ["run-done"]);
    let both = RunQuery { tenant: Some("acme".into()), state: Some(RunState::Running), ..any() };
    assert_eq!(of(both).await?, ["run-live", "run-nightly"]);
    assert_eq!(of(RunQuery { state: Some(RunState::Compensated), ..any() }).await?, [""; 0]);
    Ok(())
}

pub async fn runs_wake_by_the_stores_own_clock(h: &StoreHarness) -> Proof {
    let in_ms = |run: &str, ms| RunHead { wakes_at: Some(Timestamp::from_millis(ms)), ..head(h, run) };
    let now = lockgate_ports::clock::Clock::now(&*h.clock).as_millis();
    let heads = [
        in_ms("run-late", now + 3_000),
        in_ms("run-soon", now + 1_000),
        in_ms("run-past", now - 1_000),
        in_ms("run-also-soon", now + 1_000),
        RunHead { state: RunState::Paused, ..in_ms("run-paused", now + 2_000) },
        RunHead { state: RunState::Succeeded, ..in_ms("run-over", now - 2_000) },
        head(h, "run-never"),
    ];
    for head in heads {
        h.advance(change(head)).await??;
    }
    assert_eq!(h.store.waking(10).await?, ["run-past"].map(RunId::from));
    h.advance_ms(999);
    assert_eq!(h.store.waking(10).await?.len(), 1);
    h.advance_ms(1);
    assert_eq!(h.store.waking(10).await?, ["run-past", "run-also-soon", "run-soon"].map(RunId::from));
    assert_eq!(h.store.waking(2).await?, ["run-past", "run-also-soon"].map(RunId::from));
    h.advance_ms(5_000);
    h.advance(change(RunHead { wakes_at: None, ..after(&head(h, "run-past")) })).await??;
    h.advance(change(over(h, &in_ms("run-soon", now)))).await??;
    assert_eq!(h.store.waking(10).await?, ["run-also-soon", "run-paused", "run-late"].map(RunId::from));
    Ok(())
}

pub async fn live_runs_are_paged_by_their_ids(h: &StoreHarness) -> Proof {
    for run in ["run-b", "run-d", "run-A", "run-c", "run-a"] {
        h.begin(run).await?;
    }
    h.advance(change(over(h, &head(h, "run-c")))).await??;
    h.advance(change(RunHead { state: RunState::CompensationStuck, ..after(&head(h, "run-d")) })).await??;
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = h.store.live_runs(after.as_ref(), 2).await?;
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(last.clone());
        found.extend(page);
    }
    assert_eq!(found, ["run-A", "run-a", "run-b", "run-d"].map(RunId::from));
    Ok(())
}

pub async fn sagas_are_told_from_runs_of_dags(h: &StoreHarness) -> Proof {
    for run in ["run-a", "run-saga-a", "run-b", "run-saga-b"] {
        h.begin(run).await?;
    }
    for (sagas, expected) in [
        (None, &["run-saga-b", "run-b", "run-saga-a", "run-a"][..]),
        (Some(true), &["run-saga-b", "run-saga-a"]),
        (Some(false), &["run-b", "run-a"]),
    ] {
        let listed = h.store.list_runs(RunQuery { sagas, limit: 10, ..RunQuery::default() }).await?.items;
        assert_eq!(listed.iter().map(|head| head.id.as_str()).collect::<Vec<_>>(), expected);
    }
    Ok(())
}
