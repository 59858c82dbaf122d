//! How a process is.

use std::time::Duration;

use lockgate_engine::{Component, HealthProblem, HealthView, LeaderView, Leads, LoopView};
use lockgate_proto::v1;

pub(crate) fn health(view: &HealthView) -> v1::Health {
    let finding = |finding: &HealthProblem| v1::HealthFinding {
        code: finding.trouble.code().to_owned(),
        serious: finding.trouble.is_serious(),
        detail: finding.detail.clone(),
        advice: finding.trouble.advice().to_owned(),
    };
    let component = |component: Component| v1::HealthComponent {
        name: component.name.to_owned(),
        state: component.state.to_owned(),
        detail: component.detail,
    };
    v1::Health {
        status: view.status().to_owned(),
        findings: view.findings.iter().map(finding).collect(),
        roles: roles(view).map(str::to_owned).collect(),
        up_for_ms: millis(view.up_for),
        components: view.components().into_iter().map(component).collect(),
        loops: view.loops.iter().map(looped).collect(),
        leaders: view.leaders.iter().map(leader).collect(),
        breakers: super::breakers(&view.kernel.breakers).breakers,
    }
}

fn looped(view: &LoopView) -> v1::HealthLoop {
    v1::HealthLoop {
        name: view.name.to_owned(),
        stuck: view.stuck,
        moved_ago_ms: millis(view.moved_ago),
        leads: leads(view.leads).to_owned(),
        epoch: match view.leads {
            Leads::Since(epoch) => Some(epoch),
            Leads::Own | Leads::Not => None,
        },
    }
}

fn leader(view: &LeaderView) -> v1::HealthLeader {
    v1::HealthLeader {
        lease: view.lease.to_owned(),
        role: view.role.to_owned(),
        holder: view.holder.clone().unwrap_or_default(),
        epoch: view.epoch,
        vacant_ms: millis(view.vacant),
        nobody: view.nobody,
    }
}

fn roles(view: &HealthView) -> impl Iterator<Item = &'static str> {
    let roles = view.roles;
    let named = [("gateway", roles.gateway), ("scheduler", roles.scheduler), ("orchestrator", roles.orchestrator)];
    named.into_iter().filter(|(_, has)| *has).map(|(name, _)| name)
}

const fn leads(leads: Leads) -> &'static str {
    match leads {
        Leads::Own => "own",
        Leads::Not => "follows",
        Leads::Since(_) => "leads",
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
