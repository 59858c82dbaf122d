//! Every key of the schedule language, by section. The loader refuses all other keys; a test compares the published schema
//! with these lists.

use crate::config::Section;

pub(super) static FILE: Section = Section { name: "the file", keys: &["version", "schedules"] };
pub(super) static SCHEDULE: Section = Section {
    name: "the schedule",
    keys: &[
        "description",
        "cron",
        "every",
        "time_zone",
        "start_at",
        "end_at",
        "jitter",
        "grace",
        "misfire",
        "misfire_window",
        "overlap",
        "queue",
        "paused",
        "job",
        "dag",
    ],
};
pub(super) static JOB: Section = Section {
    name: "job",
    keys: &[
        "topic",
        "payload",
        "priority",
        "labels",
        "env",
        "max_attempts",
        "timeout",
        "deadline",
        "requires",
        "capability",
        "risk_tags",
        "concurrency_key",
    ],
};
pub(super) static DAG: Section = Section { name: "dag", keys: &["name", "version", "params"] };
