//! Every queue is read through its own index: a backlog must not slow a claim.

use rusqlite::Connection;

use super::jobs::OWING;
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
