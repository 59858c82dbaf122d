//! Lost connections, restarts and refusals: what was acknowledged is there, and what is not known is said to be.

mod proxy;
mod stage;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::JobState;
use lockgate_core::time::Timestamp;
use lockgate_ports::{ChangeError, JobStore, Pinned, Sessions, StoreError, Totals, Upkeep};
use lockgate_postgres::{ConnectOptions, PostgresStore};
use lockgate_testbed::Postgres;
use proxy::{Cut, Proxy};
use stage::{Stage, profile, server};

async fn through_proxy(stage: &Stage) -> (Proxy, PostgresStore) {
    let proxy = Proxy::start(server().port()).await;
    let options = ConnectOptions { writers: 1, config: proxy.config(&stage.config), ..stage.options() };
    let store = PostgresStore::connect(options).await.unwrap();
    (proxy, store)
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_unknown_and_there() {
    let stage = Stage::new().await;
    let (proxy, store) = through_proxy(&stage).await;
    proxy.cut(Cut::AfterCommit);
    let lost = store.commit(stage.births("job", 3)).await;
    assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
    assert!(proxy.has_cut());
    let ids = ["job-00000", "job-00001", "job-00002"].map(Into::into);
    assert!(store.load(&ids).await.unwrap().iter().all(Option::is_some));
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 3);
}

#[tokio::test]
async fn a_commit_that_never_arrived_is_unknown_and_not_there() {
    let stage = Stage::new().await;
    let (proxy, store) = through_proxy(&stage).await;
    store.commit(stage.births("before", 1)).await.unwrap();
    proxy.cut(Cut::BeforeCommit);
    let lost = store.commit(stage.births("job", 3)).await;
    assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
    let ids = ["job-00000", "before-00000"].map(Into::into);
    let found: Vec<bool> = store.load(&ids).await.unwrap().iter().map(Option::is_some).collect();
    assert_eq!(found, [false, true]);
    assert!(store.commit(stage.births("job", 3)).await.unwrap().iter().all(Result::is_ok), "it can be tried again");
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 4);
}

/// What may still arrive after its outcome was read back must change nothing.
#[tokio::test]
async fn a_transaction_that_names_an_old_guard_fails_and_a_living_writer_looks_again() {
    let stage = Stage::new().await;
    let store = PostgresStore::connect(ConnectOptions { writers: 1, ..stage.options() }).await.unwrap();
    store.commit(stage.births("before", 1)).await.unwrap();
    let client = stage::client(&stage.config).await;
    client.batch_execute("UPDATE totals SET guard = guard + 1").await.unwrap();
    let late = "BEGIN; SELECT 1 / (guard = 0)::int FROM totals WHERE shard = 0 FOR UPDATE; \
                INSERT INTO job_ids VALUES ('late'); COMMIT";
    assert!(client.batch_execute(late).await.is_err());
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(client.query("SELECT 1 FROM job_ids WHERE job_id = 'late'", &[]).await.unwrap().is_empty());
    assert!(store.commit(stage.births("after", 2)).await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_refused_transaction_is_repeated_until_it_comes_through() {
    let stage = Stage::new().await;
    let (proxy, store) = through_proxy(&stage).await;
    store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap();
    proxy.refuse_every(7);
    for n in 0..30 {
        assert!(store.commit(stage.births(&format!("call-{n}"), 2)).await.unwrap().iter().all(Result::is_ok));
    }
    assert!(proxy.refused() > 5, "{} were refused", proxy.refused());
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 60);
}

#[tokio::test]
async fn a_server_that_wants_everything_repeated_is_unavailable() {
    let stage = Stage::new().await;
    let (proxy, store) = through_proxy(&stage).await;
    proxy.refuse_every(1);
    let refused = store.commit(stage.births("job", 1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(store.load(&["job-00000".into()]).await.is_err());
}

#[tokio::test]
async fn a_fault_of_one_caller_does_not_reach_its_neighbours() {
    let stage = Stage::new().await;
    let store = PostgresStore::connect(ConnectOptions { writers: 1, ..stage.options() }).await.unwrap();
    // Sent to no session: the schema refuses such a row, even if a decision contains it.
    let mut broken = stage.births("broken", 1);
    broken[0].transition.job.life.state = JobState::Dispatched;
    let (bad, good) = tokio::join!(store.commit(broken), store.commit(stage.births("good", 3)));
    assert!(matches!(bad.as_deref(), Ok([Err(ChangeError::Refused(_))])), "{bad:?}");
    assert!(good.unwrap().iter().all(Result::is_ok));
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), 3);
}

/// Where the trigger fires: with the statement, or only with COMMIT.
const TRIGGERS: [&str; 2] = [
    "CREATE TRIGGER no BEFORE UPDATE ON jobs_hot",
    "CREATE CONSTRAINT TRIGGER no AFTER UPDATE ON jobs_hot DEFERRABLE INITIALLY DEFERRED",
];

#[tokio::test]
async fn a_job_that_a_trigger_refuses_fails_alone_in_its_call() {
    for trigger in TRIGGERS {
        let stage = Stage::new().await;
        let store = PostgresStore::connect(stage.patient()).await.unwrap();
        let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
        store.commit(stage.births("job", 20)).await.unwrap();
        let ids: Vec<JobId> = (0..20).map(|n| format!("job-{n:05}").into()).collect();
        let jobs = store.load(&ids).await.unwrap().into_iter().flatten().collect::<Vec<_>>();
        let client = stage::client(&stage.config).await;
        let function =
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$";
        let when = "FOR EACH ROW WHEN (OLD.job_id = 'job-00013') EXECUTE FUNCTION no()";
        client.batch_execute(&format!("{function}; {trigger} {when}")).await.unwrap();
        let sent = store.commit(jobs.iter().map(|job| stage.dispatch(job, epoch)).collect()).await.unwrap();
        for (n, result) in sent.iter().enumerate() {
            let refused = matches!(result, Err(ChangeError::Refused(why)) if why.contains("not this one"));
            assert!(if n == 13 { refused } else { result.is_ok() }, "job {n}: {result:?}");
        }
        assert_eq!(store.held(&"s".into()).await.unwrap().len(), 19);
        client.batch_execute("DROP TRIGGER no ON jobs_hot").await.unwrap();
        assert!(store.commit(vec![stage.dispatch(&jobs[13], epoch)]).await.unwrap()[0].is_ok());
    }
}

#[tokio::test]
async fn a_call_to_a_server_that_hangs_ends_at_its_deadline() {
    let server = Postgres::start().unwrap();
    let stage = Stage::on(&server.url()).await;
    let store =
        PostgresStore::connect(ConnectOptions { deadline: Duration::from_millis(300), ..stage.options() }).await.unwrap();
    store.check().await.unwrap();
    // Another session locks the tables and never ends.
    let blocker = stage::client(&stage.config).await;
    blocker.batch_execute("BEGIN; LOCK TABLE jobs_hot, pulse").await.unwrap();
    let late = store.commit(stage.births("job", 1)).await;
    assert!(late.is_err_and(|error| error.certainly_not_applied()));
    assert!(store.check().await.is_err());
    blocker.batch_execute("ROLLBACK").await.unwrap();
    assert!(store.commit(stage.births("job", 1)).await.unwrap()[0].is_ok());
}

#[tokio::test]
async fn a_transaction_that_pins_the_horizon_is_named_with_the_dead_rows_that_it_keeps() {
    // A server of its own: other tests have transactions too.
    let server = Postgres::start().unwrap();
    let stage = Stage::on(&server.url()).await;
    let horizon = async || {
        let checks = lockgate_postgres::examine(&stage.options(), Timestamp::default).await.unwrap();
        checks.into_iter().find(|check| check.what == "xmin horizon").unwrap().found
    };
    assert!(!horizon().await.contains("report"));
    let report = stage::client(&stage.config).await;
    let begin = "SET application_name = 'report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs_hot";
    report.batch_execute(begin).await.unwrap();
    let found = horizon().await;
    assert!(found.contains("\"report\", idle in transaction"), "{found}");

    let store = stage.connect().await;
    let ends = "DELETE FROM jobs_hot";
    assert!(store.commit(stage.births("job", 20)).await.unwrap().iter().all(Result::is_ok));
    stage::client(&stage.config).await.batch_execute(ends).await.unwrap();
    let pinned = wait_for_dead_rows(&store).await;
    assert!(pinned.holder.contains("\"report\""), "{pinned:?}");
    report.batch_execute("ROLLBACK").await.unwrap();
    let pinned = store.pinned().await.unwrap();
    assert!(pinned.as_ref().is_none_or(|pinned| !pinned.holder.contains("report")), "{pinned:?}");
}

/// Sessions report what they did to the statistics a moment later.
async fn wait_for_dead_rows(store: &PostgresStore) -> Pinned {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let pinned = store.pinned().await.unwrap();
        match pinned {
            Some(pinned) if pinned.dead_rows >= 20 && pinned.held_for.is_some_and(|held_for| !held_for.is_zero()) => {
                return pinned;
            }
            _ => assert!(tokio::time::Instant::now() < deadline, "{pinned:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Clients that submit or report wait for that lock, so the answer names its holder.
#[tokio::test]
async fn a_locked_table_of_jobs_is_found_and_its_holder_named() {
    let stage = Stage::new().await;
    let store = stage.connect().await;
    store.check().await.unwrap();
    let blocker = stage::client(&stage.config).await;
    for table in ["jobs_hot", "jobs_done"] {
        blocker.batch_execute(&format!("SET application_name = 'report'; BEGIN; LOCK TABLE {table}")).await.unwrap();
        let checked = store.check().await;
        let named = |text: &str| text.contains(table) && text.contains("\"report\"");
        assert!(matches!(&checked, Err(StoreError::Unavailable(text)) if named(text)), "{checked:?}");
        blocker.batch_execute("ROLLBACK").await.unwrap();
        store.check().await.unwrap();
    }
    assert_eq!(store.totals().await.unwrap(), Totals::default());
    let left = "SELECT (SELECT count(*) FROM jobs_hot) + (SELECT count(*) FROM jobs_done)";
    assert_eq!(blocker.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_outlives_a_restart_in_the_middle_of_traffic() {
    let mut server = Postgres::start().unwrap();
    let stage = Arc::new(Stage::on(&server.url()).await);
    let store = Arc::new(stage.connect().await);
    let (acknowledged, heard) = tokio::sync::watch::channel(0_usize);
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (stage, store, acknowledged) = (Arc::clone(&stage), Arc::clone(&store), acknowledged.clone());
            tokio::spawn(async move {
                let mut kept = Vec::new();
                for n in 0..60 {
                    let births = stage.births(&format!("job-{caller}-{n}"), 5);
                    let ids: Vec<_> = births.iter().map(|birth| birth.transition.job.request.job_id.clone()).collect();
                    // A client that tries again: the ids say whether it was there before.
                    while store.commit(births.clone()).await.is_err() {
                        tokio::task::yield_now().await;
                    }
                    kept.extend(ids);
                    acknowledged.send_modify(|count| *count += 1);
                }
                kept
            })
        })
        .collect();
    let mut progress = heard.clone();
    progress.wait_for(|count| *count > 60).await.unwrap();
    server.restart().unwrap();
    let mut kept = Vec::new();
    for caller in callers {
        kept.extend(caller.await.unwrap());
    }
    assert_eq!(kept.len(), 8 * 60 * 5);
    for page in kept.chunks(500) {
        assert!(store.load(page).await.unwrap().iter().all(Option::is_some));
    }
    assert_eq!(store.totals().await.unwrap().live.iter().sum::<u64>(), kept.len() as u64);
}
