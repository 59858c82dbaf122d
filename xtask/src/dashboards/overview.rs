//! Is it well, and how much does it do?

use super::panel::{Dashboard, Panel, Row, Unit};

pub(super) fn dashboard() -> Dashboard {
    Dashboard { name: "overview", title: "Lockgate: overview", rows: vec![now(), flow(), time(), ends()] }
}

fn now() -> Row {
    Row {
        title: "Now",
        panels: vec![
            Panel::number("Waiting", Unit::Count, "sum(lockgate:queue_depth)", Some(10_000.0)),
            Panel::number("At work", Unit::Count, "sum(lockgate:inflight)", None),
            Panel::number("Waiting for a time or a verdict", Unit::Count, "sum(lockgate:retry_depth)", Some(10_000.0)),
            Panel::number("Dead letters", Unit::Count, "sum(lockgate:dlq_depth)", Some(100.0)),
            Panel::number("Jobs that end badly", Unit::Ratio, "lockgate:failure_ratio:10m", Some(0.2)),
            Panel::number("Requests that fail", Unit::Ratio, "lockgate:api_errors:ratio_1h", Some(0.001)),
        ],
    }
}

fn flow() -> Row {
    Row {
        title: "Flow",
        panels: vec![
            Panel::lines(
                "Jobs",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_tasks_enqueued_total[$__rate_interval]))", "accepted"),
                    ("sum(rate(lockgate_dequeued_total[$__rate_interval]))", "dispatched"),
                    ("sum(rate(lockgate_succeeded_total[$__rate_interval]))", "succeeded"),
                    ("sum(rate(lockgate_failed_total[$__rate_interval]))", "ended badly"),
                    ("sum(rate(lockgate_retried_total[$__rate_interval]))", "tried again"),
                ],
            ),
            Panel::lines("Waiting for a worker", Unit::Count, &[("lockgate:queue_depth", "{{priority}}")]),
            Panel::lines("Waiting for a time or a verdict", Unit::Count, &[("lockgate:retry_depth", "{{priority}}")]),
        ],
    }
}

fn time() -> Row {
    Row {
        title: "Time",
        panels: vec![
            Panel::lines(
                "From ready to dispatched, 95 of 100",
                Unit::Seconds,
                &[("lockgate:enqueue_to_start_seconds:p95_5m", "{{priority}}")],
            ),
            Panel::lines("Running time, 95 of 100", Unit::Seconds, &[("lockgate:task_run_seconds:p95_5m", "{{type}}")]),
            Panel::quantiles(
                "From ready to dispatched by topic, 95 of 100",
                "lockgate_dispatch_latency_seconds",
                "topic",
                "{{topic}}",
            ),
        ],
    }
}

fn ends() -> Row {
    Row {
        title: "Ends",
        panels: vec![
            Panel::lines(
                "Jobs by topic",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_jobs_received_total[$__rate_interval]))", "{{topic}}")],
            ),
            Panel::lines(
                "Ends",
                Unit::PerSecond,
                &[("sum by (status) (rate(lockgate_jobs_completed_total[$__rate_interval]))", "{{status}}")],
            ),
            Panel::lines("Dead letters", Unit::Count, &[("lockgate:dlq_depth", "{{priority}}")]),
        ],
    }
}
