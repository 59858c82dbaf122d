//! How a process is.

use lockgate_engine::{Component, HealthProblem, HealthView, LeaderView, Leads, LoopView};
use serde::Serialize;
use utoipa::ToSchema;

use super::Breakers;
use crate::health::{leads, millis, roles};

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct Health {
    /// ready, degraded (calls are served, something is late) or not_ready (send calls elsewhere)
    status: &'static str,
    /// The most serious first; none when all is well.
    findings: Vec<HealthFinding>,
    /// gateway, scheduler, orchestrator
    roles: Vec<&'static str>,
    up_for_ms: u64,
    components: Vec<HealthComponent>,
    loops: Vec<HealthLoop>,
    /// Who leads what one process does for all. None where a process is alone: it leads everything.
    leaders: Vec<HealthLeader>,
    /// The circuit breakers before a remote safety kernel.
    #[serde(flatten)]
    breakers: Breakers,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct HealthFinding {
    /// Stable name for programs.
    code: &'static str,
    /// Not ready because of it.
    serious: bool,
    detail: String,
    /// What to do next.
    advice: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct HealthComponent {
    /// store, coordination, bus or kernel
    name: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct HealthLoop {
    name: &'static str,
    stuck: bool,
    moved_ago_ms: u64,
    /// own (every process has it), leads or follows
    leads: &'static str,
    /// Of its leadership, while it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct HealthLeader {
    lease: &'static str,
    /// What a process must be started as to lead.
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    epoch: u64,
    vacant_ms: u64,
    /// Vacant for longer than it takes another process to take over.
    nobody: bool,
}

impl From<HealthView> for Health {
    fn from(view: HealthView) -> Self {
        Self {
            status: view.status(),
            roles: roles(&view).collect(),
            up_for_ms: millis(view.up_for),
            components: view.components().into_iter().map(HealthComponent::from).collect(),
            findings: view.findings.into_iter().map(HealthFinding::from).collect(),
            loops: view.loops.into_iter().map(HealthLoop::from).collect(),
            leaders: view.leaders.into_iter().map(HealthLeader::from).collect(),
            breakers: Breakers::from(view.kernel.breakers),
        }
    }
}

impl From<HealthProblem> for HealthFinding {
    fn from(HealthProblem { trouble, detail }: HealthProblem) -> Self {
        Self { code: trouble.code(), serious: trouble.is_serious(), detail, advice: trouble.advice() }
    }
}

impl From<Component> for HealthComponent {
    fn from(Component { name, state, detail }: Component) -> Self {
        Self { name, state, detail }
    }
}

impl From<LoopView> for HealthLoop {
    fn from(view: LoopView) -> Self {
        let epoch = match view.leads {
            Leads::Since(epoch) => Some(epoch),
            Leads::Own | Leads::Not => None,
        };
        let LoopView { name, stuck, .. } = view;
        Self { name, stuck, moved_ago_ms: millis(view.moved_ago), leads: leads(view.leads), epoch }
    }
}

impl From<LeaderView> for HealthLeader {
    fn from(view: LeaderView) -> Self {
        let LeaderView { lease, role, holder, epoch, vacant, nobody } = view;
        Self { lease, role, holder, epoch, vacant_ms: millis(vacant), nobody }
    }
}
