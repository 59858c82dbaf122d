//! Words for the health of a process, the same on both doors.

use std::time::Duration;

use lockgate_engine::{HealthView, Leads};

pub(crate) fn roles(view: &HealthView) -> impl Iterator<Item = &'static str> {
    let roles = view.roles;
    let named = [("gateway", roles.gateway), ("scheduler", roles.scheduler), ("orchestrator", roles.orchestrator)];
    named.into_iter().filter(|(_, has)| *has).map(|(name, _)| name)
}

pub(crate) const fn leads(leads: Leads) -> &'static str {
    match leads {
        Leads::Own => "own",
        Leads::Not => "follows",
        Leads::Since(_) => "leads",
    }
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
