//! How a process is.

use lockgate_proto::v1;
use serde::Serialize;

use super::Breakers;
use super::convert::present;

#[derive(Debug, Serialize)]
pub(crate) struct Health {
    pub(crate) status: String,
    pub(crate) findings: Vec<HealthFinding>,
    pub(crate) roles: Vec<String>,
    pub(crate) up_for_ms: u64,
    pub(crate) components: Vec<HealthComponent>,
    pub(crate) loops: Vec<HealthLoop>,
    pub(crate) leaders: Vec<HealthLeader>,
    #[serde(flatten)]
    pub(crate) breakers: Breakers,
}

#[derive(Debug, Serialize)]
pub(crate) struct HealthFinding {
    pub(crate) code: String,
    pub(crate) serious: bool,
    pub(crate) detail: String,
    pub(crate) advice: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct HealthComponent {
    pub(crate) name: String,
    pub(crate) state: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct HealthLoop {
    pub(crate) name: String,
    pub(crate) stuck: bool,
    pub(crate) moved_ago_ms: u64,
    pub(crate) leads: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HealthLeader {
    pub(crate) lease: String,
    pub(crate) role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<String>,
    pub(crate) epoch: u64,
    pub(crate) vacant_ms: u64,
    pub(crate) nobody: bool,
}

impl From<v1::Health> for Health {
    fn from(wire: v1::Health) -> Self {
        let finding = |wire: v1::HealthFinding| {
            let v1::HealthFinding { code, serious, detail, advice } = wire;
            HealthFinding { code, serious, detail, advice }
        };
        let component = |wire: v1::HealthComponent| {
            let v1::HealthComponent { name, state, detail } = wire;
            HealthComponent { name, state, detail }
        };
        let looped = |wire: v1::HealthLoop| {
            let v1::HealthLoop { name, stuck, moved_ago_ms, leads, epoch } = wire;
            HealthLoop { name, stuck, moved_ago_ms, leads, epoch }
        };
        let leader = |wire: v1::HealthLeader| {
            let v1::HealthLeader { lease, role, holder, epoch, vacant_ms, nobody } = wire;
            HealthLeader { lease, role, holder: present(holder), epoch, vacant_ms, nobody }
        };
        Self {
            status: wire.status,
            findings: wire.findings.into_iter().map(finding).collect(),
            roles: wire.roles,
            up_for_ms: wire.up_for_ms,
            components: wire.components.into_iter().map(component).collect(),
            loops: wire.loops.into_iter().map(looped).collect(),
            leaders: wire.leaders.into_iter().map(leader).collect(),
            breakers: Breakers::from(v1::ListBreakersResponse { breakers: wire.breakers }),
        }
    }
}
