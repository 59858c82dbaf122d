//! Tests that every queue is read through its own index: a backlog must not slow a claim.

use rusqlite::{Connection, Statement, StatementStatus};

use super::jobs::{CHILDREN, FAMILY, LIVE_CHILDREN, OWING, UNDER_WAY};
use super::lists;
use super::runs::LIVE;
use super::schedules::{NEXT, SCHEDULE, SCHEDULES};
use super::tenants::USAGE;
use super::trail::{AUDIT, BLOCKS, HEAD};
use crate::schema;

fn plan(sql: &str) -> String {
    let mut conn = Connection::open_in_memory().unwrap();
    schema::migrate(&mut conn).unwrap();
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let parameters = statement.parameter_count();
    let steps = statement.query_map(rusqlite::params_from_iter(vec![1; parameters]), |row| row.get::<_, String>(3)).unwrap();
    steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

#[test]
fn queues_are_read_through_their_index_without_sorting() {
    let queues = [
        (include_str!("../../queries/ready.sql"), "jobs_ready"),
        (include_str!("../../queries/due.sql"), "jobs_due"),
        (include_str!("../../queries/pending.sql"), "jobs_pending"),
        (include_str!("../../queries/expired.sql"), "jobs_deadline"),
        (include_str!("../../queries/held.sql"), "jobs_held"),
        (include_str!("../../queries/bound.sql"), "jobs_held"),
        (include_str!("../../queries/jobs_to_prune.sql"), "jobs_ended"),
        (include_str!("../../queries/runs_to_prune.sql"), "runs_ended"),
        (include_str!("../../queries/waking.sql"), "runs_waking"),
        (include_str!("../../queries/unheard.sql"), "run_news_age"),
        (LIVE, "runs_live"),
        (include_str!("../../queries/due_schedules.sql"), "schedules_waking"),
        (include_str!("../../queries/list_slots.sql"), "slots_listed"),
        (include_str!("../../queries/latest_place.sql"), "slots_listed"),
        (include_str!("../../queries/prune_slots.sql"), "slots_decided"),
        (include_str!("../../queries/runs_to_erase.sql"), "runs_over"),
    ];
    for (sql, index) in queues {
        let plan = plan(sql);
        assert!(plan.contains(&format!("INDEX {index} (")), "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

#[test]
fn duties_and_the_trail_are_read_by_their_keys() {
    for sql in [OWING, AUDIT, BLOCKS, HEAD, include_str!("../../queries/active.sql")] {
        let plan = plan(sql);
        assert!(!plan.contains("SCAN") || sql == HEAD, "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

#[test]
fn children_are_found_by_their_parent() {
    for sql in [&[FAMILY, UNDER_WAY, CHILDREN, LIVE_CHILDREN][..], &lists::CHILDREN].concat() {
        let plan = plan(sql);
        assert!(plan.contains("SEARCH children USING PRIMARY KEY (parent=?"), "{sql}\n{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

#[test]
fn schedules_are_found_by_name_and_the_next_one_is_the_first_of_its_index() {
    for sql in [SCHEDULE, SCHEDULES, NEXT] {
        let plan = plan(sql);
        assert!(plan.contains(if sql == NEXT { "COVERING INDEX schedules_waking" } else { "(tenant=?" }), "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

#[test]
fn tenants_are_found_by_name_and_their_jobs_by_number() {
    for (sql, way) in [
        (USAGE, "SEARCH tallies USING PRIMARY KEY (tenant=?)"),
        (include_str!("../../queries/list_tenants.sql"), "SEARCH tallies USING PRIMARY KEY (tenant>?)"),
        (include_str!("../../queries/jobs_to_erase.sql"), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (include_str!("../../queries/size_of_ended.sql"), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"),
    ] {
        let plan = plan(sql);
        assert!(plan.contains(way) && !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

#[test]
fn lanes_are_counted_in_the_index_alone() {
    let plan = plan(include_str!("../../queries/ready_lanes.sql"));
    assert!(plan.contains("COVERING INDEX jobs_ready"), "{plan}");
}

#[test]
fn lists_follow_the_sequence_without_sorting() {
    for sql in [
        include_str!("../../queries/list_hot.sql"),
        include_str!("../../queries/list_done.sql"),
        include_str!("../../queries/list_letters.sql"),
        include_str!("../../queries/list_runs.sql"),
    ] {
        let plan = plan(sql);
        assert!(plan.contains("USING INTEGER PRIMARY KEY") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}

/// A database with `live` ready jobs in one lane, and `ended` ones.
fn filled(live: u32, ended: u32) -> Connection {
    let mut conn = Connection::open_in_memory().unwrap();
    schema::migrate(&mut conn).unwrap();
    let all = live + ended;
    let numbers = |upto: u32| format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {upto})");
    conn.execute_batch(&format!(
        "INSERT INTO lanes (lane_id, key) VALUES (1, 'lane');
         {} INSERT INTO jobs (seq, job_id, tenant, topic, hash, request, payload)
            SELECT i, 'job-' || i, 'acme', 'job.echo', x'00', '{{}}', 'null' FROM n;
         {} INSERT INTO jobs_done (seq, version, state, ended_at, life, events)
            SELECT i, 4, 5, 1, '{{}}', '' FROM n;
         {} INSERT INTO jobs_hot (seq, version, state, lane_id, due_at, delayed, life, events)
            SELECT {ended} + i, 1, 2, 1, 1, i % 2, '{{}}', '' FROM n;",
        numbers(all),
        numbers(ended),
        numbers(live),
    ))
    .unwrap();
    conn
}

/// Steps of SQLite's virtual machine until the last row is read: exact, and independent of the machine's load.
fn steps(statement: &mut Statement<'_>, params: impl rusqlite::Params, rows: usize) -> i32 {
    statement.reset_status(StatementStatus::VmStep);
    let mut found = statement.query(params).unwrap();
    let mut count = 0;
    while found.next().unwrap().is_some() {
        count += 1;
    }
    drop(found);
    assert_eq!(count, rows);
    statement.get_status(StatementStatus::VmStep)
}

#[test]
fn a_claim_reads_the_same_with_a_long_history_as_without_one() {
    let cost = |ended| {
        let conn = filled(1_000, ended);
        let mut ready = conn.prepare(include_str!("../../queries/ready.sql")).unwrap();
        let mut due = conn.prepare(include_str!("../../queries/due.sql")).unwrap();
        (steps(&mut ready, ("lane", 0, 0, 9, 64), 64), steps(&mut due, (0, 0, 9, 64), 64))
    };
    let (ready, due) = cost(1);
    assert!(ready > 64 && due > 64, "the count must count");
    assert_eq!(cost(200_000), (ready, due));
}

#[test]
fn a_claim_reads_the_same_of_a_long_backlog_as_of_a_short_one() {
    let cost = |live| {
        let conn = filled(live, 1);
        steps(&mut conn.prepare(include_str!("../../queries/ready.sql")).unwrap(), ("lane", 0, 0, 9, 64), 64)
    };
    assert_eq!(cost(200_000), cost(1_000));
}

#[test]
fn a_look_at_a_large_family_costs_the_same_as_one_at_a_small_one() {
    let cost = |children| {
        let conn = filled(children, 1);
        conn.execute_batch("INSERT INTO children (parent, life, seq) SELECT 'p', 1, seq FROM jobs_hot").unwrap();
        steps(&mut conn.prepare(UNDER_WAY).unwrap(), ("p", 1), 1)
    };
    assert_eq!(cost(10_000), cost(10));
}

/// The sources of the gauges, apart from the totals in memory: duties, jobs without a verdict, and the audit trail.
#[test]
fn gauges_cost_the_same_with_a_million_jobs_as_with_a_thousand() {
    let cost = |jobs| {
        let conn = filled(jobs, 1);
        conn.execute_batch(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {jobs})
                INSERT INTO audit (at, tenant, actor, action, subject, detail) SELECT i, 't', 'a', 'x', 's', '' FROM n;
             INSERT INTO audit_blocks VALUES (1, 1, {jobs} - 1, {jobs} - 1, zeroblob(32), zeroblob(32), 1);
             INSERT INTO duties SELECT 'scan', seq FROM jobs_hot;
             UPDATE jobs_hot SET state = 0, delayed = 0;"
        ))
        .unwrap();
        let mut owing = conn.prepare(OWING).unwrap();
        let mut pending = conn.prepare(include_str!("../../queries/pending.sql")).unwrap();
        let mut unsealed = conn.prepare(AUDIT).unwrap();
        [
            steps(&mut owing, ("scan", 0, 100), 100),
            steps(&mut pending, (0, 0, 9, 1), 1),
            steps(&mut unsealed, (i64::from(jobs) - 1, 1), 1),
        ]
    };
    assert_eq!(cost(1_000_000), cost(1_000));
}
