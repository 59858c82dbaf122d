//! Schedules, for both doors.

use lockgate_core::schedule::{Rhythm, ScheduledWork, Spec};
use lockgate_engine::AppliedAs;

/// Named in errors when the client names no file.
pub(crate) const FILE: &str = "schedules.yaml";

pub(crate) const fn change(applied: AppliedAs) -> &'static str {
    match applied {
        AppliedAs::Created => "created",
        AppliedAs::Updated => "updated",
        AppliedAs::Unchanged => "unchanged",
    }
}

/// When, as a person wrote it.
pub(crate) fn rhythm(spec: &Spec) -> String {
    match &spec.rhythm {
        Rhythm::Cron(text) => text.to_string(),
        Rhythm::EveryMs(ms) => format!("every {}", span(*ms)),
    }
}

/// What each time starts: a topic, or a DAG.
pub(crate) fn work(spec: &Spec) -> (Option<String>, Option<String>) {
    match &spec.work {
        ScheduledWork::Job(job) => (Some(job.topic.to_string()), None),
        ScheduledWork::Dag(dag) => {
            (None, Some(dag.version.map_or_else(|| dag.name.to_string(), |v| format!("{}@{v}", dag.name))))
        }
    }
}

/// In the largest unit that fits evenly.
fn span(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fit = units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit));
    fit.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_largest_even_unit() {
        for (ms, text) in [(900_000, "15m"), (90_000, "90s"), (86_400_000, "1d"), (1_500, "1500ms")] {
            assert_eq!(span(ms), text);
        }
    }
}
