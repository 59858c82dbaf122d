//! Decisions alone, without a server: a verdict, a scan, the placement on a worker.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::ids::{JobId, PoolName};
use lockgate_core::lane::Shape;
use lockgate_core::placement::{Candidate, Roster};
use lockgate_core::policy::{Policy, Subject, Velocity, VelocityWindow};
use lockgate_core::pools::{DEFAULT_POOL, Routing};
use lockgate_core::request::{Caller, JobRequest, Json, NewJob};
use lockgate_core::scan::{FindingKey, Scanners};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::{Load, WorkerProfile};
use tokio::time::Instant;

use super::report::{BenchReport, median, percentile};
use crate::error::CliError;

const VERDICTS: usize = 40_000;
/// Rules looked at in one measurement, so that a large policy takes no longer than a small one.
const RULES_ASKED: usize = 40_000_000;
const SCANS: usize = 15;
const SCANNED_BYTES: usize = 1 << 20;
const WORKERS: u32 = 10_000;
const PLACINGS: u32 = 50_000;
/// One of these many workers fits.
const FITS: u32 = 10;

pub(super) fn measure(report: &mut BenchReport) -> Result<(), CliError> {
    report.note("decisions in process: 10 to 10,000 rules, 1 MiB of JSON, 10,000 workers");
    for rules in [10, 1_000, 10_000] {
        let micros = verdicts(rules)?;
        report.add(format!("core.verdict_{rules}_rules_p50_us"), percentile(&micros, 0.5), "us");
        report.add(format!("core.verdict_{rules}_rules_p99_us"), percentile(&micros, 0.99), "us");
    }
    report.add("core.scan_clean_json_mb_per_s", scan()?, "MB/s");
    let micros = placings();
    report.add("core.placing_10000_workers_p50_us", percentile(&micros, 0.5), "us");
    report.add("core.placing_10000_workers_p99_us", percentile(&micros, 0.99), "us");
    Ok(())
}

struct NoWindows;

impl Velocity for NoWindows {
    fn count(&self, _: &VelocityWindow<'_>) -> u64 {
        1
    }
}

/// Nine of ten rules are found by topic and tenant; one of ten is an expression over every job, half of them over the
/// payload alone, over a `number` and a `word` that every job must have. None of them matches, so that every candidate is
/// evaluated, and the last rule allows.
pub(super) fn policy(rules: usize, number: &str, word: &str) -> String {
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

/// Microseconds, sorted.
fn verdicts(rules: usize) -> Result<Vec<f64>, CliError> {
    let policy = Policy::load("policy.yaml", &policy(rules, "payload.amount", "job.labels.team"))
        .map_err(|errors| CliError::Server(errors.first().map(ToString::to_string).unwrap_or_default()))?;
    let requests: Vec<JobRequest> = (0..64).filter_map(request).collect();
    let verdict = |request: &JobRequest| timed(|| policy.evaluate(&Subject::new(request, Timestamp::ZERO), &NoWindows));
    Ok(sorted(requests.iter().cycle().take(VERDICTS.min(RULES_ASKED / rules)).map(verdict)))
}

/// Megabytes a second, the median of some rounds.
fn scan() -> Result<f64, CliError> {
    let scanners = Scanners::builtin();
    let names = ["secrets", "pii", "injection"];
    let selection = scanners.select(&names).map_err(|error| CliError::Server(error.to_string()))?;
    let key = FindingKey::new([7; 32]);
    let mut text = String::from("[");
    for row in 0.. {
        if text.len() >= SCANNED_BYTES {
            break;
        }
        let _ = write!(text, "{{\"id\":\"{row:08x}\",\"name\":\"Item number {row}\",\"price\":{row}.25,\"stock\":true,");
        text.push_str("\"note\":\"Sent with the usual carrier, please check the box on arrival.\"},");
    }
    text.push_str("null]");
    let round = || timed(|| scanners.scan(&selection, &text, &key));
    #[expect(clippy::cast_precision_loss, reason = "a mebibyte")]
    let bytes = text.len() as f64;
    Ok(bytes / median((0..SCANS).map(|_| round()).collect()))
}

/// Microseconds from the call to the updated worker, sorted. Every second placement returns a job.
fn placings() -> Vec<f64> {
    let mut roster = Roster::new(Arc::new(Routing::default()));
    for n in 0..WORKERS {
        roster.insert(n, worker(n));
    }
    let shape = Arc::new(Shape { requires: BTreeSet::from(["rare".into()]), ..Shape::of("job.placed") });
    let pool = PoolName::from(DEFAULT_POOL);
    roster.plan(&shape, &pool, 1, false);
    let mut held = Vec::new();
    let place = |n: u32| {
        let taken = timed(|| {
            let chosen = roster.plan(&shape, &pool, 1, false).pop();
            if let Some((key, _)) = &chosen {
                roster.change(key, |worker| worker.active += 1);
            }
            held.extend(chosen);
        });
        if n.is_multiple_of(2)
            && let Some((key, _)) = held.pop()
        {
            roster.change(&key, |worker| worker.active -= 1);
        }
        taken
    };
    sorted((0..PLACINGS).map(place))
}

fn worker(n: u32) -> Candidate {
    let capability = if n.is_multiple_of(FITS) { "rare" } else { "common" };
    let profile = WorkerProfile {
        worker: format!("worker-{n}").into(),
        pool: DEFAULT_POOL.into(),
        topics: vec!["job.*".into()],
        capabilities: BTreeSet::from([capability.into()]),
        labels: [("host".into(), format!("host-{n}").into())].into(),
        slots: 64,
        in_process: false,
        lost_after_ms: None,
        owner: None,
    };
    let load = Load { cpu: Some(n * 7 % 101), gpu: None, memory: Some(n % 101) };
    Candidate { profile: Arc::new(profile), capacity: 64, spare: 0, active: 0, load, away: None }
}

/// Microseconds.
fn timed<R>(run: impl FnOnce() -> R) -> f64 {
    let began = Instant::now();
    black_box(run());
    let taken: Duration = began.elapsed();
    taken.as_secs_f64() * 1e6
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
