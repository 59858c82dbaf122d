//! Who does the work, and who gets how much of it?

use super::panel::{Dashboard, Panel, Row, Unit};

pub(super) fn dashboard() -> Dashboard {
    Dashboard { name: "pools", title: "Lockgate: pools", rows: vec![pools(), tenants(), losses()] }
}

fn pools() -> Row {
    Row {
        title: "Pools",
        panels: vec![
            Panel::lines("Waiting", Unit::Count, &[("lockgate:pool_queue_depth", "{{pool}}")]),
            Panel::lines("Places in use", Unit::Ratio, &[("lockgate:pool_busy_ratio", "{{pool}}")]),
            Panel::lines("Workers", Unit::Count, &[("sum by (pool) (lockgate_pool_workers)", "{{pool}}")]),
            Panel::lines("Places", Unit::Count, &[("sum by (pool) (lockgate_pool_slots)", "{{pool}}")]),
            Panel::lines("Attempts held", Unit::Count, &[("lockgate:inflight", "{{priority}}")]),
            Panel::lines(
                "Attempts dispatched by topic",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_jobs_dispatched_total[$__rate_interval]))", "{{topic}}")],
            ),
        ],
    }
}

fn tenants() -> Row {
    Row {
        title: "Tenants",
        panels: vec![
            Panel::lines(
                "Beyond the fair share, as a part of it",
                Unit::Ratio,
                &[("max by (tenant) (lockgate_tenant_share_error_ratio)", "{{tenant}}")],
            ),
            Panel::lines(
                "Wait of the oldest ready job",
                Unit::Seconds,
                &[("max by (tenant) (lockgate_tenant_oldest_wait_seconds)", "{{tenant}}")],
            ),
        ],
    }
}

fn losses() -> Row {
    Row {
        title: "Losses",
        panels: vec![
            Panel::lines(
                "Attempts taken from workers",
                Unit::PerSecond,
                &[("sum by (reason) (rate(lockgate_reaped_total[$__rate_interval]))", "{{reason}}")],
            ),
            Panel::lines(
                "Attempts that limits counted after their end",
                Unit::PerSecond,
                &[("sum(rate(lockgate_limits_leaked_total[$__rate_interval]))", "leaked")],
            ),
        ],
    }
}
