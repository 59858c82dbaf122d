//! How long a verdict takes: `cargo run --release -p lockgate-core --example verdict_speed`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use lockgate_core::ids::JobId;
use lockgate_core::policy::{Policy, Subject, Velocity, VelocityWindow};
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::time::Timestamp;

struct NoWindows;

impl Velocity for NoWindows {
    fn count(&self, _: &VelocityWindow<'_>) -> u64 {
        1
    }
}

/// Nine of ten rules are found by topic and tenant; one of ten is an expression over every job, half of them over the
/// payload alone. None of them matches, so that every candidate is evaluated, and the last rule allows.
fn policy(rules: usize) -> String {
    let mut text = String::from("version: 1\nrules:\n");
    for i in 1..rules {
        let conditions = match i % 10 {
            0 if i % 20 == 0 => format!("when: \"job.labels.team == 'team-{i}' && payload.amount > 10\""),
            0 => format!("when: \"payload.amount > {i}000\""),
            1..=3 => format!("topics: [job.area{i}.run], risk_tags: [x]"),
            4..=6 => format!("topics: ['job.area{}.*'], labels: {{env: e{i}}}", i % 97),
            7 | 8 => format!("tenants: [tenant-{}], labels: {{env: e{i}}}", i % 89),
            _ => format!("topics: [job.area7.run], tenants: [tenant-{i}]"),
        };
        let _ = writeln!(text, "  - {{id: r{i}, match: {{{conditions}}}, decision: deny, reason: no}}");
    }
    text + "  - {id: last, match: {}, decision: allow, reason: yes}\n"
}

fn requests() -> Vec<JobRequest> {
    let request = |i: usize| {
        let labels = [("team".to_owned(), "team-x".to_owned()), ("env".to_owned(), "prod".to_owned())].into();
        let payload = Json::parse(r#"{"amount":50}"#).ok();
        let new = NewJob { topic: format!("job.area{i}.run"), labels, payload, ..NewJob::default() };
        JobRequest::check(new, &Caller::new(format!("tenant-{i}"), "ann"), || JobId::from("job"))
    };
    (0..64).filter_map(|i| request(i).ok()).collect()
}

#[expect(clippy::disallowed_methods, reason = "wall-clock time is what is measured")]
fn main() {
    let requests = requests();
    for (rules, verdicts) in [(10, 100_000), (1_000, 40_000), (10_000, 4_000)] {
        let started = Instant::now();
        let policy = match Policy::load("policy.yaml", &policy(rules)) {
            Ok(policy) => policy,
            Err(errors) => return errors.iter().for_each(|error| eprintln!("{error}")),
        };
        let loading = started.elapsed();
        let mut times: Vec<Duration> = Vec::new();
        for request in requests.iter().cycle().take(verdicts) {
            let started = Instant::now();
            let verdict = policy.evaluate(&Subject::new(request, Timestamp::ZERO), &NoWindows);
            times.push(started.elapsed());
            assert_eq!(&*verdict.rule, "last", "every rule before it was tried");
        }
        times.sort();
        let at = |share: usize| times[times.len() * share / 100];
        println!("{rules} rules: p50 {:?}, p99 {:?}, loading {loading:?}", at(50), at(99));
    }
}
