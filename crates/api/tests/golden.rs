//! The JSON of the contract, one sample of each entity: REST answers with it and the command line prints it, so what differs
//! here differs for clients.
//!
//! Samples name every field and no default, so that a message with a new field does not compile until its sample has it.
//! `UPDATE_EXPECT=1` rewrites the files; read the difference before you commit it.

mod samples;

use std::path::Path;

use lockgate_api::view;
use serde::Serialize;

use samples::{access, dags, governance, jobs, overview, schedules};

#[track_caller]
fn is_golden(name: &str, view: &impl Serialize) {
    let json = serde_json::to_string_pretty(view).expect("serializable") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name).with_extension("json");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &json).expect("written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(json, expected, "{name}.json differs; UPDATE_EXPECT=1 rewrites it");
}

#[test]
fn jobs_read_as_before() {
    is_golden("submitted", &view::Submitted::from(jobs::submitted()));
    is_golden("job", &view::Job::full(jobs::job()));
    is_golden("jobs", &view::Jobs::from(jobs::listed()));
    is_golden("event", &view::Event::from(jobs::event()));
    is_golden("logs", &view::Logs::from(jobs::logs()));
    is_golden("why", &view::Why::new("a".to_owned(), jobs::why()));
}

#[test]
fn dead_letters_and_approvals_read_as_before() {
    is_golden("dead_letters", &view::DeadLetters::from(jobs::dead_letters()));
    is_golden("replayed", &view::Replayed::from(jobs::replayed()));
    is_golden("approvals", &view::Approvals::from(jobs::approvals()));
    is_golden("answered", &view::Answered::from(jobs::answered()));
    is_golden("explained", &view::Explained::from(jobs::explained()));
}

#[test]
fn runs_read_as_before() {
    is_golden("stored_dag", &view::StoredDag::from(dags::stored()));
    is_golden("dags", &view::Dags::from(dags::listed()));
    is_golden("started_run", &view::StartedRun::from(dags::started()));
    is_golden("run", &view::Run::from(dags::run()));
    is_golden("runs", &view::Runs::from(dags::runs()));
}

#[test]
fn schedules_read_as_before() {
    is_golden("applied_schedules", &view::AppliedSchedules::from(schedules::applied()));
    is_golden("schedules", &view::Schedules::from(schedules::listed()));
    is_golden("slots", &view::Slots::from(schedules::slots()));
}

#[test]
fn governance_reads_as_before() {
    is_golden("policies", &view::Policies::from(governance::policies()));
    is_golden("configs", &view::Configs::from(governance::configs()));
    is_golden("activated_policy", &view::Activated::from(governance::activated_policy()));
    is_golden("activated_config", &view::Activated::from(governance::activated_config()));
    is_golden("audit", &view::AuditRows::from(governance::audit()));
    is_golden("verified", &view::Verified::from(governance::verified()));
    is_golden("breakers", &view::Breakers::from(governance::breakers()));
}

#[test]
fn the_state_of_the_whole_reads_as_before() {
    is_golden("workers", &view::Workers::from(overview::workers()));
    is_golden("queues", &view::Queues::from(overview::queues()));
    is_golden("pools", &view::Pools::from(overview::pools()));
    is_golden("tenants", &view::Tenants::from(overview::tenants()));
    is_golden("erased_tenant", &view::ErasedTenant::from(overview::erased()));
    is_golden("health", &view::Health::from(overview::health()));
}

#[test]
fn credentials_read_as_before() {
    is_golden("made_key", &view::MadeKey::from(access::made_key()));
    is_golden("credentials", &view::Credentials::from(access::credentials()));
    is_golden("who_am_i", &view::WhoAmI::from(access::who_am_i()));
}
