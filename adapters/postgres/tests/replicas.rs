//! Several processes on one database: of competing writes exactly one wins.

mod stage;
mod tenants;

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::JobState;
use lockgate_ports::{ChangeError, JobStore, Sessions, Snapshots, Upkeep};
use lockgate_postgres::{PostgresStore, UnusableDatabase, migrate};
use stage::{Stage, client, place, profile, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_dispatch_the_same_jobs_at_once_have_one_winner_each() {
    let stage = Arc::new(Stage::new().await);
    let stores = [Arc::new(stage.connect().await), Arc::new(stage.connect().await)];
    let epoch = stores[0].attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    let births = stage.births("job", 10_000);
    let ids: Vec<JobId> = births.iter().map(|birth| birth.transition.job.request.job_id.clone()).collect();
    assert!(stores[0].commit(births).await.unwrap().iter().all(Result::is_ok));
    let jobs = Arc::new(stores[0].load(&ids).await.unwrap().into_iter().flatten().collect::<Vec<_>>());
    let racers = stores.clone().map(|store| {
        let (stage, jobs) = (Arc::clone(&stage), Arc::clone(&jobs));
        tokio::spawn(async move {
            let mut won = 0;
            for batch in jobs.chunks(25) {
                let changes = batch.iter().map(|job| stage.dispatch(job, epoch)).collect();
                for result in store.commit(changes).await.unwrap() {
                    match result {
                        Ok(_) => won += 1,
                        Err(error) => assert_eq!(error, ChangeError::Conflict),
                    }
                }
            }
            won
        })
    });
    let mut won = 0;
    for racer in racers {
        won += racer.await.unwrap();
    }
    assert_eq!(won, 10_000);
    let stored = stores[1].load(&ids).await.unwrap();
    assert!(stored.iter().flatten().all(|job| (job.version, job.state()) == (2, JobState::Dispatched)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_dispatch_under_the_policy_before_is_committed_after_an_activation() {
    let stage = Arc::new(Stage::new().await);
    let stores = [Arc::new(stage.connect().await), Arc::new(stage.connect().await)];
    let epoch = stores[0].attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    let births = stage.births("job", 600);
    let ids: Vec<JobId> = births.iter().map(|birth| birth.transition.job.request.job_id.clone()).collect();
    stores[0].commit(births).await.unwrap();
    let jobs = stores[0].load(&ids).await.unwrap().into_iter().flatten().collect::<Vec<_>>();
    let (started, mut heard) = tokio::sync::watch::channel(0);
    let dispatching = stores.clone().into_iter().zip(jobs.chunks(300)).map(|(store, jobs)| {
        let (stage, started, jobs) = (Arc::clone(&stage), started.clone(), jobs.to_vec());
        tokio::spawn(async move {
            for batch in jobs.chunks(3) {
                let changes = batch.iter().map(|job| stage.dispatch(job, epoch)).collect();
                store.commit(changes).await.unwrap();
                started.send_modify(|count| *count += 1);
            }
        })
    });
    let dispatching: Vec<_> = dispatching.collect();
    heard.wait_for(|count| *count > 20).await.unwrap();
    stores[0].activate(stage.activation("p1", 0)).await.unwrap().unwrap();
    let sent = |jobs: Vec<Option<lockgate_core::job::Job>>| {
        jobs.into_iter().flatten().filter(|job| job.state() == JobState::Dispatched).count()
    };
    let at_activation = sent(stores[1].load(&ids).await.unwrap());
    for racer in dispatching {
        racer.await.unwrap();
    }
    assert_eq!(sent(stores[1].load(&ids).await.unwrap()), at_activation);
    assert!(at_activation >= 60, "{at_activation} were sent before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_that_migrate_at_once_do_it_once() {
    let config = place(server().url()).await;
    let mut replicas = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let config = config.clone();
        replicas.spawn(async move { migrate(&lockgate_postgres::ConnectOptions::new(config)).await });
    }
    while let Some(migrated) = replicas.join_next().await {
        migrated.unwrap().unwrap();
    }
    let rows = client(&config).await.query("SELECT version FROM migrations ORDER BY version", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), (1..=17).collect::<Vec<i64>>());
    PostgresStore::connect(lockgate_postgres::ConnectOptions::new(config)).await.unwrap().check().await.unwrap();
}

#[tokio::test]
async fn a_database_that_does_not_fit_is_refused_with_what_to_do() {
    let config = place(server().url()).await;
    let options = || lockgate_postgres::ConnectOptions::new(config.clone());
    let Err(older) = PostgresStore::connect(options()).await else { panic!("there is no schema") };
    assert!(
        matches!(older, UnusableDatabase::Older { found: 0, .. }) && older.to_string().contains("lockgate migrate"),
        "{older}"
    );
    migrate(&options()).await.unwrap();
    let sql = client(&config).await;
    sql.batch_execute("UPDATE migrations SET checksum = 'other' WHERE version = 2").await.unwrap();
    assert!(matches!(PostgresStore::connect(options()).await, Err(UnusableDatabase::Changed { version: 2 })));
    sql.batch_execute("INSERT INTO migrations (version, checksum) VALUES (99, 'x')").await.unwrap();
    assert!(matches!(PostgresStore::connect(options()).await, Err(UnusableDatabase::Newer { found: 99, .. })));
    assert!(matches!(migrate(&options()).await, Err(UnusableDatabase::Newer { found: 99, .. })));
}

#[tokio::test]
async fn a_plain_life_is_few_rows_and_one_round_trip_a_step() {
    let stage = Stage::new().await;
    let store = PostgresStore::connect(lockgate_postgres::ConnectOptions { writers: 1, ..stage.options() }).await.unwrap();
    let epoch = store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap().epoch;
    let minted = |n: u8| {
        let id = lockgate_core::ids::uuid_v7(lockgate_core::time::Timestamp::from_millis(1), [n; 10]);
        let new = lockgate_core::request::NewJob { topic: "job.echo".to_owned(), ..Default::default() };
        stage.birth(new, &id)
    };
    let mut costs = Vec::new();
    // The second round: statements are prepared in the first.
    for round in 0..2 {
        let births: Vec<_> = (0..100).map(|n| minted(round * 100 + n)).collect();
        let ids: Vec<JobId> = births.iter().map(|birth| birth.transition.job.request.job_id.clone()).collect();
        for step in 0..3 {
            let jobs = store.load(&ids).await.unwrap().into_iter().flatten();
            let changes = match step {
                0 => births.clone(),
                1 => jobs.map(|job| stage.dispatch(&job, epoch)).collect(),
                _ => jobs.map(|job| stage.end(&job)).collect(),
            };
            let before = store.counters();
            assert!(store.commit(changes).await.unwrap().iter().all(Result::is_ok));
            let after = store.counters();
            if round == 1 {
                let trips = after.round_trips - before.round_trips;
                costs.push((after.transactions - before.transactions, trips, after.rows_written - before.rows_written));
            }
        }
    }
    // One row more when jobs are born and when they end: the tenant's tally.
    assert_eq!(costs, [(1, 1, 101), (1, 1, 100), (1, 1, 201)]);
}
