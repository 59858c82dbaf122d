//! Everything a Store answers about runs, as comparable text.

use std::time::Duration;

use lockgate_core::dag::RunState;
use lockgate_core::ids::RunId;

use super::runs_lists::all_runs;
use super::runs_stage::subject;
use super::snapshot::{PAGE, Snapshot, add};
use super::stage::Found;
use lockgate_ports::store::{NewsRow, RunNews, RunQuery, Store};

pub(super) async fn runs(store: &dyn Store, ids: &[RunId], parts: &mut Snapshot) -> Found<()> {
    for (id, run) in ids.iter().zip(store.load_runs(ids).await?) {
        add(parts, format!("run {id}"), run);
        add(parts, format!("run {id} since 2"), store.run_since(id, 2).await?);
        add(parts, format!("news of {id}"), told(store.news(std::slice::from_ref(id), 100).await?));
    }
    add(parts, "first news", told(store.news(ids, PAGE).await?));
    let any = || RunQuery { limit: PAGE, ..RunQuery::default() };
    add(parts, "runs", all_runs(store, any()).await?);
    let of_tenant = RunQuery { tenant: Some("other".into()), ..any() };
    add(parts, "runs of other", all_runs(store, of_tenant).await?);
    let paused = RunQuery { state: Some(RunState::Paused), ..any() };
    add(parts, "paused runs", all_runs(store, paused).await?);
    add(parts, "waking", store.waking(100).await?);
    let first = store.live_runs(None, 2).await?;
    add(parts, "live runs", (&first, store.live_runs(first.last(), 2).await?));
    for age in [0, 5] {
        add(parts, format!("unheard for {age} s"), store.unheard(Duration::from_secs(age), 2).await?);
    }
    for tenant in ["acme", "other"] {
        add(parts, format!("dags of {tenant}"), store.dags(&tenant.into(), None, 10).await?);
    }
    Ok(())
}

/// Without the numbers, which are the adapter's own.
fn told(news: Vec<NewsRow>) -> Vec<(RunId, String, Option<String>)> {
    let result = |what: &RunNews| match what {
        RunNews::Job { result, .. } => result.as_ref().map(|result| result.as_str().to_owned()),
        RunNews::Run(_) => None,
    };
    news.into_iter().map(|row| (row.run.clone(), subject(&row), result(&row.what))).collect()
}
