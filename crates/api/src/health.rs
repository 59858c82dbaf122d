//! How a process is.

use lockgate_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use crate::governance::{Breaker, Breakers};
use crate::name_set::LoopLeadName;
use crate::present;

#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// ready, degraded (calls are served, something is late) or not_ready (send calls elsewhere)
    pub status: String,
    /// The most serious first; none when all is well.
    pub findings: Vec<HealthFinding>,
    /// gateway, scheduler, orchestrator
    pub roles: Vec<String>,
    pub up_for_ms: u64,
    pub components: Vec<HealthComponent>,
    pub loops: Vec<HealthLoop>,
    /// Who leads what one process does for all. None where a process is alone: it leads everything.
    pub leaders: Vec<HealthLeader>,
    /// The circuit breakers before a remote safety kernel.
    #[serde(flatten)]
    pub breakers: Breakers,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct HealthFinding {
    /// Stable name for programs.
    pub code: String,
    /// Not ready because of it.
    pub serious: bool,
    pub detail: String,
    /// What to do next.
    pub advice: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct HealthComponent {
    /// store, coordination, bus or kernel
    pub name: String,
    pub state: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct HealthLoop {
    pub name: String,
    pub stuck: bool,
    pub moved_ago_ms: u64,
    /// own (every process has it), leads or follows
    #[schema(value_type = LoopLeadName)]
    pub leads: String,
    /// Of its leadership, while it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct HealthLeader {
    pub lease: String,
    /// What a process must be started as to lead.
    pub role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    pub epoch: u64,
    pub vacant_ms: u64,
    /// Vacant for longer than it takes another process to take over.
    pub nobody: bool,
}

impl From<v1::Health> for Health {
    fn from(wire: v1::Health) -> Self {
        Self {
            status: wire.status,
            findings: wire.findings.into_iter().map(HealthFinding::from).collect(),
            roles: wire.roles,
            up_for_ms: wire.up_for_ms,
            components: wire.components.into_iter().map(HealthComponent::from).collect(),
            loops: wire.loops.into_iter().map(HealthLoop::from).collect(),
            leaders: wire.leaders.into_iter().map(HealthLeader::from).collect(),
            breakers: Breakers { breakers: wire.breakers.into_iter().map(Breaker::from).collect() },
        }
    }
}

impl From<v1::HealthFinding> for HealthFinding {
    fn from(v1::HealthFinding { code, serious, detail, advice }: v1::HealthFinding) -> Self {
        Self { code, serious, detail, advice }
    }
}

impl From<v1::HealthComponent> for HealthComponent {
    fn from(v1::HealthComponent { name, state, detail }: v1::HealthComponent) -> Self {
        Self { name, state, detail }
    }
}

impl From<v1::HealthLoop> for HealthLoop {
    fn from(v1::HealthLoop { name, stuck, moved_ago_ms, leads, epoch }: v1::HealthLoop) -> Self {
        Self { name, stuck, moved_ago_ms, leads, epoch }
    }
}

impl From<v1::HealthLeader> for HealthLeader {
    fn from(wire: v1::HealthLeader) -> Self {
        let v1::HealthLeader { lease, role, holder, epoch, vacant_ms, nobody } = wire;
        Self { lease, role, holder: present(holder), epoch, vacant_ms, nobody }
    }
}
