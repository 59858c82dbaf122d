//! What a verdict costs: `cargo run --release -p lockgate-core --example verdict_speed [rules [rounds]]`.
//!
//! Nine of ten rules are found by topic and tenant, one of ten is an expression over every job. No rule but the last
//! matches, so that every candidate is evaluated. With `rules` only that size is measured, for
//! `valgrind --tool=callgrind --toggle-collect='*Policy::evaluate*'`.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use lockgate_core::ids::JobId;
use lockgate_core::policy::{Policy, Subject, Velocity, VelocityWindow};
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::time::Timestamp;

const ROUNDS: usize = 40_000;

struct NoWindows;

impl Velocity for NoWindows {
    fn count(&self, _: &VelocityWindow<'_>) -> u64 {
        1
    }
}

/// What the expressions are made of: the field of a payload and a label, or sums and the topic.
const MIXES: [(&str, &str, &str); 2] =
    [("fields", "payload.amount", "job.labels.team"), ("sums", "payload.amount - 100000000", "job.topic")];

fn policy(rules: usize, number: &str, word: &str) -> String {
    let mut text = String::from("version: 1\nrules:\n");
    for i in 1..rules {
        let conditions = match i % 10 {
            0 if i % 20 == 0 => format!("when: \"{word} == 'team-{i}' && {number} > 10\""),
            0 => format!("when: \"{number} > {i}000\""),
            1..=3 => format!("topics: [job.area{i}.run], risk_tags: [x]"),
            4..=6 => format!("topics: ['job.area{}.*'], labels: {{env: e{i}}}", i % 97),
            7 | 8 => format!("tenants: [tenant-{}], labels: {{env: e{i}}}", i % 89),
            _ => format!("topics: [job.area7.run], tenants: [tenant-{i}]"),
        };
        let _ = writeln!(text, "  - {{id: r{i}, match: {{{conditions}}}, decision: deny, reason: no}}");
    }
    text + "  - {id: last, match: {}, decision: allow, reason: yes}\n"
}

fn request(i: usize) -> Option<JobRequest> {
    let labels = [("team".to_owned(), "team-x".to_owned()), ("env".to_owned(), "prod".to_owned())].into();
    let payload = Json::parse(r#"{"amount":50}"#).ok();
    let new = NewJob { topic: format!("job.area{i}.run"), labels, payload, ..NewJob::default() };
    JobRequest::check(new, &Caller::new(format!("tenant-{i}"), "ann"), || JobId::from("job")).ok()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse::<usize>().ok());
    let (only, rounds) = (arguments.next(), arguments.next().unwrap_or(ROUNDS));
    let requests: Vec<JobRequest> = (0..64).filter_map(request).collect();
    for rules in only.map_or_else(|| vec![10, 1_000, 10_000], |rules| vec![rules]) {
        for (name, number, word) in MIXES {
            let Ok(policy) = Policy::load("policy.yaml", &policy(rules, number, word)) else { continue };
            let mut nanos: Vec<u128> = requests.iter().cycle().take(rounds).map(|request| timed(&policy, request)).collect();
            nanos.sort_unstable();
            let at = |part: f64| nanos[((nanos.len() - 1) as f64 * part) as usize];
            println!("{rules:>6} rules of {name:<6}: p50 {:>7} ns, p99 {:>7} ns", at(0.5), at(0.99));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the real clock")]
fn timed(policy: &Policy, request: &JobRequest) -> u128 {
    let began = Instant::now();
    black_box(policy.evaluate(&Subject::new(request, Timestamp::ZERO), &NoWindows));
    began.elapsed().as_nanos()
}
