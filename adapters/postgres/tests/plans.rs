//! Every queue is read through its own index: neither a backlog nor history slows a claim.

mod stage;

use std::sync::Arc;

use lockgate_ports::{JobStore, Sessions};
use stage::{Stage, client, profile};
use tokio_postgres::Client;

/// As the Store's own connections plan.
const PLANNER: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_sort = off; SET jit = off";

/// Live jobs by copying one, and ended ones by copying another.
async fn fill(sql: &Client, hot: i64, done: i64) {
    let columns = "version, state, priority, lane, due_at, delayed, deadline_at, session, tenant, topic, hash, request, life, events, payload";
    let copy = format!(
        "INSERT INTO jobs_hot (job_id, seq, {columns})
         SELECT 'copy-' || n, nextval('job_seq'), {columns} FROM jobs_hot, generate_series(1, {hot}) AS n WHERE job_id = 'job-00000'"
    );
    sql.batch_execute(&copy).await.unwrap();
    let columns = "version, state, priority, ended_at, tenant, topic, hash, request, life, events, payload, result";
    let copy = format!(
        "INSERT INTO jobs_done (job_id, seq, {columns})
         SELECT 'done-' || n, nextval('job_seq'), {columns} FROM jobs_done, generate_series(1, {done}) AS n WHERE job_id = 'job-00001'"
    );
    sql.batch_execute(&copy).await.unwrap();
    sql.batch_execute("ANALYZE jobs_hot; ANALYZE jobs_done").await.unwrap();
}

async fn staged(hot: i64, done: i64) -> (Stage, Client) {
    let stage = Stage::new().await;
    let store = stage.connect().await;
    store.attach(&"s".into(), &"edge".into(), &profile()).await.unwrap().unwrap();
    store.commit(stage.births("job", 2)).await.unwrap();
    let job = store.load(&["job-00001".into()]).await.unwrap().pop().flatten().unwrap();
    store.commit(vec![stage.cancel(&job)]).await.unwrap();
    let sql = client(&stage.config).await;
    fill(&sql, hot, done).await;
    sql.batch_execute(PLANNER).await.unwrap();
    (stage, sql)
}

/// The plan of a query file whose parameters are all NULL, as the generic plan does not look at them.
async fn plan(sql: &Client, query: &str, parameters: usize) -> String {
    let nulls = vec!["NULL"; parameters].join(", ");
    let arguments = if parameters == 0 { String::new() } else { format!("({nulls})") };
    sql.batch_execute(&format!("PREPARE asked AS {query}")).await.unwrap();
    let rows = sql.query(&format!("EXPLAIN EXECUTE asked {arguments}"), &[]).await.unwrap();
    sql.batch_execute("DEALLOCATE asked").await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn queues_are_read_through_their_index_without_sorting() {
    let (_stage, sql) = staged(5_000, 5_000).await;
    let queues = [
        (include_str!("../queries/ready.sql"), 5, "jobs_ready"),
        (include_str!("../queries/due.sql"), 4, "jobs_due"),
        (include_str!("../queries/pending.sql"), 4, "jobs_pending"),
        (include_str!("../queries/expired.sql"), 4, "jobs_deadline"),
        (include_str!("../queries/held.sql"), 1, "jobs_held"),
        (include_str!("../queries/bound.sql"), 1, "jobs_held"),
        (include_str!("../queries/list_jobs.sql"), 6, "jobs_done_seq"),
        (include_str!("../queries/list_letters.sql"), 6, "dead_letters_pkey"),
        (include_str!("../queries/load.sql"), 1, "jobs_done_pkey"),
        (include_str!("../queries/taken.sql"), 4, "idempotency_pkey"),
        (include_str!("../queries/owing.sql"), 3, "duties_pkey"),
        (include_str!("../queries/family.sql"), 2, "children_pkey"),
        (include_str!("../queries/under_way.sql"), 2, "Scan Backward using children_pkey"),
        (include_str!("../queries/children.sql"), 5, "children_pkey"),
        (include_str!("../queries/live_children.sql"), 4, "children_pkey"),
        (include_str!("../queries/list_children.sql"), 6, "children_pkey"),
        (include_str!("../queries/waking.sql"), 2, "runs_waking"),
        (include_str!("../queries/live_runs.sql"), 2, "runs_live"),
        (include_str!("../queries/list_runs.sql"), 6, "runs_listed"),
        (include_str!("../queries/load_runs.sql"), 2, "run_nodes"),
        (include_str!("../queries/news.sql"), 3, "run_news_run"),
        (include_str!("../queries/unheard.sql"), 4, "run_news_age"),
        (include_str!("../queries/due_schedules.sql"), 5, "schedules_waking"),
        (include_str!("../queries/next_schedule.sql"), 1, "Index Only Scan using schedules_waking"),
        (include_str!("../queries/list_schedules.sql"), 3, "schedules_pkey"),
        (include_str!("../queries/load_schedules.sql"), 2, "schedules_pkey"),
        (include_str!("../queries/list_slots.sql"), 4, "slots_listed"),
        (include_str!("../queries/slots_of_times.sql"), 4, "slots_listed"),
        (include_str!("../queries/prune_slots.sql"), 3, "slots_decided"),
        (include_str!("../queries/usage.sql"), 1, "tallies_pkey"),
        (include_str!("../queries/list_tenants.sql"), 2, "tallies_pkey"),
        (include_str!("../queries/jobs_to_erase.sql"), 4, "jobs_done_seq"),
    ];
    for (query, parameters, index) in queues {
        let plan = plan(&sql, query, parameters).await;
        assert!(plan.contains(index), "{query}\n{plan}");
        assert!(!plan.contains("Seq Scan on"), "{query}\n{plan}");
        // These put a page in order that is bounded before, or the names they were asked for.
        let sorts_few = ["both_tables", "WITH ORDINALITY", "AS told", "AS placed"].iter().any(|word| query.contains(word));
        assert!(sorts_few || !plan.contains("Sort"), "{query}\n{plan}");
    }
    let lanes = plan(&sql, include_str!("../queries/ready_lanes.sql"), 1).await;
    assert!(lanes.contains("Index Only Scan using jobs_ready"), "{lanes}");
}

#[tokio::test]
async fn moves_find_their_rows_by_key() {
    let (_stage, sql) = staged(5_000, 5_000).await;
    let proof = include_str!("../queries/proof.sql");
    let (tally, count) = (include_str!("../queries/tally.sql"), include_str!("../queries/count.sql"));
    let changed = include_str!("../queries/changed.sql");
    for (name, body, answer, parameters, index) in [
        ("move", include_str!("../queries/move.sql"), changed, 20, "jobs_hot_pkey"),
        ("end", include_str!("../queries/end.sql"), count, 18, "jobs_hot_pkey"),
        ("end again", include_str!("../queries/end_again.sql"), changed, 18, "jobs_done_pkey on jobs_done before"),
    ] {
        let plan = plan(&sql, &format!("{proof}{body}{tally}{answer}"), parameters).await;
        assert!(plan.contains(index), "{name}\n{plan}");
        assert!(!plan.contains("Seq Scan on"), "{name}\n{plan}");
    }
    let (forget, untold) = (include_str!("../queries/forget_jobs.sql"), include_str!("../queries/forget_untold.sql"));
    for (body, parameters, index) in [
        (format!("{}{forget}{tally}", include_str!("../queries/prune_jobs.sql")), 4, "jobs_ended"),
        (format!("{}{forget}{untold}{tally}", include_str!("../queries/erase_jobs.sql")), 3, "outbox_job"),
    ] {
        let plan = plan(&sql, &format!("{body}SELECT count(*) FROM gone"), parameters).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan on"), "{plan}");
    }
    let erase = format!("{} SELECT run_id FROM old", include_str!("../queries/runs_to_erase.sql"));
    let plan = plan(&sql, &erase, 2).await;
    assert!(plan.contains("runs_over") && !plan.contains("Sort") && !plan.contains("Seq Scan on"), "{plan}");
}

#[tokio::test]
async fn turns_find_their_rows_by_key() {
    let stage = Stage::new().await;
    let sql = client(&stage.config).await;
    sql.batch_execute(PLANNER).await.unwrap();
    for (query, parameters, index) in [
        (include_str!("../queries/lock_schedules.sql"), 2, "schedules_pkey"),
        (include_str!("../queries/move_schedules.sql"), 6, "schedules_pkey"),
        (include_str!("../queries/drop_schedules.sql"), 2, "schedules_pkey"),
    ] {
        let plan = plan(&sql, query, parameters).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan on"), "{query}\n{plan}");
        // Each name is looked up, and not held against every schedule there is.
        assert!(!plan.contains("Join Filter"), "{query}\n{plan}");
    }
}

#[tokio::test]
async fn history_does_not_change_what_a_claim_reads() {
    let mut read = Vec::new();
    for done in [10, 20_000] {
        let (stage, sql) = staged(2_000, done).await;
        let store = Arc::new(stage.connect().await);
        let job = store.load(&["job-00000".into()]).await.unwrap().pop().flatten().unwrap();
        assert_eq!(store.ready(&job.lane(), None, 100).await.unwrap().len(), 100);
        let lane: i64 = sql.query_one("SELECT lane FROM jobs_hot LIMIT 1", &[]).await.unwrap().get(0);
        sql.batch_execute(&format!("PREPARE asked AS {}", include_str!("../queries/ready.sql"))).await.unwrap();
        let now = "9000000000000";
        let explain = format!(
            "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, COSTS OFF, SUMMARY OFF) EXECUTE asked ({now}, {lane}, 0, 0, 100)"
        );
        let rows = sql.query(&explain, &[]).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(plan[0].contains("rows=100"), "{plan:?}");
        let buffers = plan.iter().find(|line| line.contains("Buffers")).unwrap();
        let pages: u64 = buffers.split(['=', ' ']).filter_map(|word| word.parse::<u64>().ok()).sum();
        read.push(pages);
    }
    assert!(read[1] <= read[0] + 3, "pages read with little and with much history: {read:?}");
}
