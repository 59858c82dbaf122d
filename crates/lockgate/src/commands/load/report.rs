//! The report of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_api::known_state;
use lockgate_core::job::JobState;
use lockgate_proto::v1;
use serde::Serialize;

use super::mix::LoadKind;
use crate::output::{Output, TableCell, Tone};

/// A job of the load as it was last seen.
#[derive(Clone, Debug)]
pub(super) struct SeenJob {
    pub(super) kind: LoadKind,
    pub(super) state: &'static str,
    pub(super) attempts: u32,
    /// Submit to end; absent while the job lives.
    pub(super) took: Option<Duration>,
}

impl SeenJob {
    pub(super) fn of(job: &v1::Job) -> Option<Self> {
        let kind = LoadKind::of_topic(&job.topic)?;
        let took =
            job.ended_at_ms.map(|ended| Duration::from_millis(u64::try_from(ended - job.submitted_at_ms).unwrap_or(0)));
        Some(Self {
            kind,
            state: known_state(job.state).ok().flatten().map_or("UNKNOWN", JobState::as_str),
            attempts: job.attempts,
            took,
        })
    }
}

#[derive(Debug, Serialize)]
pub(super) struct LoadReport {
    pub(super) jobs: usize,
    pub(super) seconds: f64,
    pub(super) states: BTreeMap<&'static str, usize>,
    pub(super) kinds: Vec<KindReport>,
    /// Jobs that ended otherwise than their kind should, or not at all.
    pub(super) unexpected: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct KindReport {
    kind: &'static str,
    jobs: usize,
    succeeded: usize,
    failed: usize,
    other: usize,
    retries: u64,
    p50_ms: u64,
    p95_ms: u64,
    p99_ms: u64,
}

impl LoadReport {
    pub(super) fn new(jobs: usize, elapsed: Duration, seen: &[SeenJob]) -> Self {
        let mut states = BTreeMap::new();
        for job in seen {
            *states.entry(job.state).or_default() += 1;
        }
        let of_kind = |kind: LoadKind| seen.iter().filter(|job| job.kind == kind).collect::<Vec<_>>();
        let mut kinds: Vec<KindReport> = LoadKind::ALL
            .into_iter()
            .map(|kind| KindReport::new(kind.as_str(), &of_kind(kind)))
            .filter(|report| report.jobs > 0)
            .collect();
        kinds.push(KindReport::new("all", &seen.iter().collect::<Vec<_>>()));
        let good = seen.iter().filter(|job| job.state == job.kind.expected_end().as_str()).count();
        Self { jobs, seconds: elapsed.as_secs_f64(), states, kinds, unexpected: jobs - good.min(jobs) }
    }

    pub(super) const fn as_expected(&self) -> bool {
        self.unexpected == 0
    }

    pub(super) fn text(&self, out: Output) -> String {
        let headings = ["kind", "jobs", "succeeded", "failed", "other", "retries", "p50", "p95", "p99"];
        let rows: Vec<_> = self.kinds.iter().map(KindReport::row).collect();
        let states: Vec<String> = self.states.iter().map(|(state, count)| format!("{count} {}", out.state(state))).collect();
        let verdict = if self.as_expected() {
            out.paint("every job ended as it should", Tone::Good)
        } else {
            out.paint(&format!("{} jobs did not end as they should", self.unexpected), Tone::Bad)
        };
        format!(
            "{}\n\n{} in {:.1} s: {}\n{verdict}",
            out.table(&headings, &rows),
            if self.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", self.jobs) },
            self.seconds,
            states.join(", "),
        )
    }
}

impl KindReport {
    fn new(kind: &'static str, jobs: &[&SeenJob]) -> Self {
        let ended_as = |state: &str| jobs.iter().filter(|job| job.state == state).count();
        let (succeeded, failed) = (ended_as("SUCCEEDED"), ended_as("FAILED"));
        let mut took: Vec<u64> =
            jobs.iter().filter_map(|job| job.took).map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)).collect();
        took.sort_unstable();
        Self {
            kind,
            jobs: jobs.len(),
            succeeded,
            failed,
            other: jobs.len() - succeeded - failed,
            retries: jobs.iter().map(|job| u64::from(job.attempts.saturating_sub(1))).sum(),
            p50_ms: percentile(&took, 50),
            p95_ms: percentile(&took, 95),
            p99_ms: percentile(&took, 99),
        }
    }

    fn row(&self) -> Vec<TableCell> {
        let ms = |ms: u64| TableCell::number(&format!("{ms} ms"));
        vec![
            TableCell::text(self.kind),
            TableCell::number(&self.jobs),
            TableCell::number(&self.succeeded),
            TableCell::number(&self.failed),
            TableCell::number(&self.other),
            TableCell::number(&self.retries),
            ms(self.p50_ms),
            ms(self.p95_ms),
            ms(self.p99_ms),
        ]
    }
}

/// The smallest value that so many percent do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    fn seen(kind: LoadKind, state: &'static str, attempts: u32, ms: u64) -> SeenJob {
        SeenJob { kind, state, attempts, took: Some(Duration::from_millis(ms)) }
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!([50, 95, 99].map(|percent| percentile(&hundred, percent)), [50, 95, 99]);
        assert_eq!(percentile(&[7], 99), 7);
        assert_eq!(percentile(&[], 50), 0);
    }

    #[test]
    fn a_kind_that_should_fail_is_expected_to() {
        let list = [seen(LoadKind::AlwaysFail, "FAILED", 3, 9), seen(LoadKind::Noop, "SUCCEEDED", 1, 1)];
        assert!(LoadReport::new(2, Duration::from_secs(1), &list).as_expected());
        let list = [seen(LoadKind::AlwaysFail, "SUCCEEDED", 1, 9), seen(LoadKind::Noop, "FAILED", 1, 1)];
        assert_eq!(LoadReport::new(2, Duration::from_secs(1), &list).unexpected, 2);
    }

    #[test]
    fn a_job_that_was_never_seen_is_unexpected() {
        assert_eq!(LoadReport::new(2, Duration::from_secs(1), &[seen(LoadKind::Noop, "SUCCEEDED", 1, 1)]).unexpected, 1);
    }

    #[test]
    fn the_table_sums_up_by_kind() {
        let list = [seen(LoadKind::Noop, "SUCCEEDED", 1, 4), seen(LoadKind::Flaky, "SUCCEEDED", 3, 3_000)];
        let out = Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH);
        let expected = "KIND   JOBS  SUCCEEDED  FAILED  OTHER  RETRIES      P50      P95      P99
noop      1          1       0      0        0     4 ms     4 ms     4 ms
flaky     1          1       0      0        2  3000 ms  3000 ms  3000 ms
all       2          2       0      0        2     4 ms  3000 ms  3000 ms

2 jobs in 3.0 s: 2 SUCCEEDED
every job ended as it should";
        assert_eq!(LoadReport::new(2, Duration::from_secs(3), &list).text(out), expected);
    }
}
