//! Workflows, what they undo, and schedules.

use super::panel::{Dashboard, Panel, Row, Unit};

pub(super) fn dashboard() -> Dashboard {
    Dashboard { name: "dags", title: "Lockgate: workflows", rows: vec![runs(), undoing(), schedules()] }
}

fn runs() -> Row {
    Row {
        title: "Runs",
        panels: vec![
            Panel::lines("Not over", Unit::Count, &[("max(lockgate_dag_runs_live)", "runs")]),
            Panel::lines(
                "Begun and ended",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_dag_runs_started_total[$__rate_interval]))", "begun"),
                    ("sum by (state) (rate(lockgate_dag_runs_reached_total[$__rate_interval]))", "{{state}}"),
                ],
            ),
            Panel::lines(
                "Nodes ended",
                Unit::PerSecond,
                &[("sum by (state) (rate(lockgate_dag_nodes_ended_total[$__rate_interval]))", "{{state}}")],
            ),
            Panel::lines(
                "Time of a run, 95 of 100",
                Unit::Seconds,
                &[(
                    "histogram_quantile(0.95, sum by (le) (rate(lockgate_dag_run_seconds_bucket[$__rate_interval])))",
                    "p95",
                )],
            ),
            Panel::lines("Steps", Unit::PerSecond, &[("sum(rate(lockgate_dag_steps_total[$__rate_interval]))", "steps")]),
        ],
    }
}

fn undoing() -> Row {
    Row {
        title: "Undoing",
        panels: vec![
            Panel::number("Runs that undo their work", Unit::Count, "max(lockgate_saga_active)", Some(1.0)),
            Panel::lines(
                "Undone",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_saga_recorded_total[$__rate_interval]))", "could be undone"),
                    ("sum(rate(lockgate_saga_rollback_triggered_total[$__rate_interval]))", "runs that began to"),
                    ("sum(rate(lockgate_saga_compensation_dispatched_total[$__rate_interval]))", "jobs that undo"),
                    ("sum(rate(lockgate_saga_compensation_failed_total[$__rate_interval]))", "of them, failed"),
                ],
            ),
            Panel::lines(
                "Time it took, 95 of 100",
                Unit::Seconds,
                &[(
                    "histogram_quantile(0.95, sum by (le) (rate(lockgate_saga_rollback_seconds_bucket[$__rate_interval])))",
                    "p95",
                )],
            ),
        ],
    }
}

fn schedules() -> Row {
    Row {
        title: "Schedules",
        panels: vec![
            Panel::lines(
                "What times came to",
                Unit::PerSecond,
                &[("sum by (outcome) (rate(lockgate_schedule_slots_total[$__rate_interval]))", "{{outcome}}")],
            ),
            Panel::lines(
                "From due to started, 95 of 100",
                Unit::Seconds,
                &[(
                    "histogram_quantile(0.95, sum by (le) (rate(lockgate_schedule_lag_seconds_bucket[$__rate_interval])))",
                    "p95",
                )],
            ),
        ],
    }
}
