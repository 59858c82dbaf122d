//! What policy says, what it could not say, and what is still owed.

use super::panel::{Dashboard, Panel, Row, Unit};

pub(super) fn dashboard() -> Dashboard {
    Dashboard { name: "governance", title: "Lockgate: governance", rows: vec![verdicts(), bypasses(), outputs(), owed()] }
}

fn verdicts() -> Row {
    Row {
        title: "Verdicts",
        panels: vec![
            Panel::lines(
                "Verdicts",
                Unit::PerSecond,
                &[("sum by (decision) (rate(lockgate_policy_verdicts_total[$__rate_interval]))", "{{decision}}")],
            ),
            Panel::lines(
                "Denied",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_safety_denied_total[$__rate_interval]))", "{{topic}}")],
            ),
            Panel::lines(
                "Not to be had",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_safety_unavailable_total[$__rate_interval]))", "{{topic}}")],
            ),
            Panel::lines(
                "Circuit breakers: 2 is open",
                Unit::Count,
                &[("max by (breaker) (lockgate_breaker_state)", "{{breaker}}")],
            ),
            Panel::lines(
                "For how long the oldest job has had no verdict",
                Unit::Seconds,
                &[("max(lockgate_pending_oldest_seconds)", "oldest")],
            ),
            Panel::lines(
                "Judged when looked at again",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_orphan_replayed_total[$__rate_interval]))", "{{topic}}")],
            ),
        ],
    }
}

fn bypasses() -> Row {
    Row {
        title: "Without a verdict",
        panels: vec![
            Panel::lines(
                "Let through",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_scheduler_input_fail_open_total[$__rate_interval]))", "{{topic}}")],
            ),
            Panel::lines(
                "Refused afterwards",
                Unit::PerSecond,
                &[("sum(rate(lockgate_bypass_refused_total[$__rate_interval]))", "refused")],
            ),
            Panel::lines(
                "Results that came out unchecked",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_output_policy_skipped_total[$__rate_interval]))", "{{topic}}")],
            ),
        ],
    }
}

fn outputs() -> Row {
    Row {
        title: "Results",
        panels: vec![
            Panel::lines(
                "Looked at",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_output_policy_checked_total[$__rate_interval]))", "{{topic}}")],
            ),
            Panel::lines(
                "Held back",
                Unit::PerSecond,
                &[("sum by (topic) (rate(lockgate_output_policy_quarantined_total[$__rate_interval]))", "{{topic}}")],
            ),
            Panel::lines(
                "Verdicts on content",
                Unit::PerSecond,
                &[("sum by (decision) (rate(lockgate_output_verdicts_total[$__rate_interval]))", "{{decision}}")],
            ),
            Panel::quantiles("Time of a check, 95 of 100", "lockgate_output_check_latency_seconds", "phase", "{{phase}}"),
        ],
    }
}

fn owed() -> Row {
    Row {
        title: "Owed",
        panels: vec![
            Panel::lines("Still to be done", Unit::Count, &[("max by (duty) (lockgate_duties_owed)", "{{duty}}")]),
            Panel::lines("Oldest", Unit::Seconds, &[("max by (duty) (lockgate_duties_oldest_seconds)", "{{duty}}")]),
            Panel::lines(
                "Oldest audit row without a seal",
                Unit::Seconds,
                &[("max(lockgate_audit_unsealed_seconds)", "oldest")],
            ),
            Panel::number("Approvals", Unit::Count, "max(lockgate_approvals_waiting)", Some(100.0)),
        ],
    }
}
