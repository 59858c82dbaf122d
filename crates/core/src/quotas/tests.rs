//! Quotas as their operators write them, and what they let in.

use proptest::prelude::*;

use super::*;
use crate::config::schema_check::same_keys;
use crate::time::Timestamp;

const EXAMPLE: &str = include_str!("../../../../examples/config/quotas.yaml");

fn load(text: &str) -> Quotas {
    Quotas::load("quotas.yaml", text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn limited<T: std::fmt::Debug>(answer: Result<T, Limited>) -> LimitedBy {
    answer.expect_err("it was let in").by
}

#[test]
fn without_a_file_only_the_ceiling_of_all_holds() {
    let quotas = Quotas::default();
    assert_eq!(*quotas.of(&"acme".into()), Quota::default());
    assert!(!quotas.of(&"acme".into()).counts());
    assert_eq!((quotas.ceilings.jobs, quotas.ceilings.wait), (Some(10_000_000), None));
}

#[test]
fn what_an_entry_leaves_out_is_as_in_the_defaults() {
    let quotas = load(EXAMPLE);
    let (batch, other) = (quotas.of(&"batch".into()), quotas.of(&"other".into()));
    assert_eq!((batch.jobs, other.jobs), (Some(1_000_000), Some(100_000)));
    assert_eq!((batch.payload_bytes, other.stored_bytes), (Some(256 << 10), Some(10 << 30)));
    assert_eq!(batch.submit_rate.map(|rate| rate.to_string()).as_deref(), Some("5000/s"));
    assert_eq!(quotas.ceilings.wait, Some(Duration::from_secs(600)));
}

#[test]
fn every_fault_is_refused_at_its_line() {
    for (text, expected) in [
        ("{}\n", &["1: the quotas file is empty; remove it or name at least one"][..]),
        ("default: {jobs: 1}\n", &["1: unknown key \"default\" in the quotas file; did you mean \"defaults\"?"]),
        (
            "defaults:\n  jobs: -1\n  submit_rate: 5\n  payload_bytes: 2MiB\n  stored_bytes: 5GB\n",
            &[
                "2: jobs must be a whole number between 0 and 1000000000000",
                "3: submit_rate must be text; put it in quotes: \"5\"",
                "4: payload_bytes must be 2 to 1048576 bytes, such as 4096, 256KiB, 5MiB or 10GiB",
                "5: stored_bytes must be 0 to 1152921504606846976 bytes, such as 4096, 256KiB, 5MiB or 10GiB",
            ],
        ),
        ("tenants:\n  a b: {jobs: 1}\n  c: {}\n", &["2: tenant \"a b\" must not contain", "3: the entry of \"c\" is empty"]),
        (
            "ceilings:\n  wait: 10ms\n  pools: {}\n  shares: {critical: 50}\n",
            &[
                "2: wait must be between 1s and 366d",
                "3: pools is empty; remove it or name at least one",
                "4: shares must not grow from critical over high and default to low",
            ],
        ),
    ] {
        let errors = Quotas::load("quotas.yaml", text).expect_err("broken quotas were loaded");
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), expected.len(), "{shown:?}");
        for (shown, expected) in shown.iter().zip(expected) {
            assert!(shown.starts_with(&format!("quotas.yaml:{expected}")), "{shown}");
        }
    }
}

#[test]
fn a_tenant_is_refused_exactly_at_its_quota() {
    let (quotas, tenant) = (load("defaults: {jobs: 3, runs: 1, stored_bytes: 100}\n"), TenantId::from("acme"));
    let quota = quotas.of(&tenant);
    let room = |jobs, runs, stored_bytes| Room { jobs, runs, stored_bytes };
    assert_eq!(quota.admit_job(&tenant, &room(2, 9, 60), 40), Ok(()));
    assert_eq!(limited(quota.admit_job(&tenant, &room(3, 0, 0), 1)), LimitedBy::Quota);
    assert_eq!(limited(quota.admit_job(&tenant, &room(0, 0, 60), 41)), LimitedBy::Quota);
    assert_eq!(quota.admit_run(&tenant, &room(2, 0, 100)), Ok(()));
    assert_eq!(limited(quota.admit_run(&tenant, &room(3, 0, 0))), LimitedBy::Quota, "its first job has no room");
    assert_eq!(limited(quota.admit_run(&tenant, &room(0, 1, 0))), LimitedBy::Quota);
}

#[test]
fn the_less_urgent_are_refused_first() {
    let ceilings = load("ceilings: {jobs: 100, pools: {gpu: 10}}\n").ceilings;
    let now = Timestamp::from_millis(1);
    let mut open = Vec::new();
    for live in [69, 70, 89, 90, 94, 95, 99, 100] {
        let mut meter = Meter::default();
        let let_in = Priority::ALL.iter().filter(|p| ceilings.admit(**p, live, &mut meter, now).is_ok()).count();
        open.push(let_in);
    }
    assert_eq!(open, [4, 3, 3, 2, 2, 1, 1, 0]);
    let mut meter = Meter::default();
    meter.observe(now, &QueueSample { waiting: [0, 0, 8, 0], ..QueueSample::default() });
    let pool = PoolName::from("gpu");
    let to = |priority, meter: &mut Meter| ceilings.admit_to(&pool, priority, meter, now, || false);
    assert_eq!(to(Priority::Default, &mut meter), Ok(()));
    assert_eq!(limited(to(Priority::Low, &mut meter)), LimitedBy::Ceiling);
    meter.admit(now, Priority::Default, 1);
    assert_eq!(limited(to(Priority::Default, &mut meter)), LimitedBy::Ceiling);
    meter.observe(now, &QueueSample { blocked: 9, ..QueueSample::default() });
    assert_eq!(limited(to(Priority::Default, &mut meter)), LimitedBy::Ceiling, "whatever they wait for");
    assert_eq!(ceilings.admit_to(&"other".into(), Priority::Low, &mut meter, now, || false), Ok(()));
}

/// A pool that takes 100 jobs a second.
fn look(waiting: [u64; 4], second: i64) -> QueueSample {
    QueueSample { waiting, served: u64::try_from(second).unwrap() * 100, ..QueueSample::default() }
}

#[test]
fn what_would_start_too_late_is_not_promised() {
    let ceilings = load("ceilings: {wait: 10s}\n").ceilings;
    let (mut meter, pool) = (Meter::default(), PoolName::from("default"));
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    for second in 0..60 {
        meter.observe(at(second), &look([900, 0, 0, 0], second));
    }
    let now = at(59);
    let to = |priority, meter: &mut Meter, now| ceilings.admit_to(&pool, priority, meter, now, || false);
    assert_eq!(to(Priority::High, &mut meter, now), Ok(()), "9 s of 9.5");
    assert_eq!(limited(to(Priority::Low, &mut meter, now)), LimitedBy::Ceiling, "9 s of 7");
    meter.admit(now, Priority::Critical, 200);
    let away = to(Priority::Critical, &mut meter, now).expect_err("11 s of 10").retry_after;
    assert!(away >= Duration::from_secs(1) && away < Duration::from_secs(3), "{away:?}");
    let slot = ceilings.admit_to(&pool, Priority::Low, &mut meter, now, || true);
    assert_eq!(slot, Ok(()), "nobody waits for a slot that is free");
    assert_eq!(to(Priority::Critical, &mut meter, at(62)), Ok(()), "and then it is let in");
}

#[test]
fn only_too_many_critical_jobs_shut_out_a_critical_one() {
    let ceilings = load("ceilings: {wait: 10s}\n").ceilings;
    let (mut meter, pool) = (Meter::default(), PoolName::from("default"));
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    for second in 0..60 {
        meter.observe(at(second), &look([0, 0, 5_000, 5_000], second));
    }
    let mut admit = |priority: Priority, now: Timestamp| {
        ceilings.admit_to(&pool, priority, &mut meter, now, || false).map(|()| meter.admit(now, priority, 1))
    };
    let now = at(59);
    assert_eq!(limited(admit(Priority::Default, now)), LimitedBy::Ceiling);
    assert_eq!(limited(admit(Priority::Low, now)), LimitedBy::Ceiling);
    let let_in = (0..2_000).take_while(|_| admit(Priority::Critical, now).is_ok()).count();
    assert!((750..=760).contains(&let_in), "10 s at 64 of 85 turns of 100 a second: {let_in}");
    let away = admit(Priority::Critical, now).expect_err("there are too many").retry_after;
    assert_eq!(admit(Priority::Critical, now + away), Ok(()), "who comes back as told is let in");
}

#[test]
fn the_reference_names_every_key() {
    let doc = include_str!("../../../../docs/quotas.md");
    for section in [&keys::FILE, &keys::QUOTA, &keys::CEILINGS] {
        for key in section.keys {
            assert!(doc.contains(&format!("`{key}`")), "{key}");
        }
    }
}

#[test]
fn schema_and_loader_accept_the_same_keys() {
    same_keys(
        SCHEMA,
        &[
            ("", &keys::FILE),
            ("/$defs/quota", &keys::QUOTA),
            ("/$defs/ceilings", &keys::CEILINGS),
            ("/$defs/shares", &keys::SHARES),
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_loads_or_is_refused(text in "\\PC{0,200}|(defaults|tenants|ceilings|:|\\{|\\}|,| |\n|a|jobs|wait|shares|low|1s|9|5/s|1GiB){0,40}") {
        if let Err(errors) = Quotas::load("quotas.yaml", &text) {
            prop_assert!(!errors.is_empty());
        }
    }
}
