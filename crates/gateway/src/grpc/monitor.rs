//! The `Monitor` service: how this process is.

use lockgate_engine::{HealthView, LeaderView, Leads, LoopView};
use lockgate_proto::v1;
use lockgate_proto::v1::monitor_server::Monitor;
use tonic::{Request, Response};

use super::{GrpcResult, MonitorService};
use crate::{health, wire};

#[tonic::async_trait]
impl Monitor for MonitorService {
    async fn get_health(&self, _: Request<v1::GetHealthRequest>) -> GrpcResult<v1::Health> {
        Ok(Response::new(health(&self.0.engine.health().await)))
    }
}

fn health(view: &HealthView) -> v1::Health {
    let finding = |finding: &lockgate_engine::HealthProblem| v1::HealthFinding {
        code: finding.trouble.code().to_owned(),
        serious: finding.trouble.is_serious(),
        detail: finding.detail.clone(),
        advice: finding.trouble.advice().to_owned(),
    };
    let component = |component: lockgate_engine::Component| v1::HealthComponent {
        name: component.name.to_owned(),
        state: component.state.to_owned(),
        detail: component.detail,
    };
    v1::Health {
        status: view.status().to_owned(),
        findings: view.findings.iter().map(finding).collect(),
        roles: health::roles(view).map(str::to_owned).collect(),
        up_for_ms: health::millis(view.up_for),
        components: view.components().into_iter().map(component).collect(),
        loops: view.loops.iter().map(looped).collect(),
        leaders: view.leaders.iter().map(leader).collect(),
        breakers: view.kernel.breakers.iter().map(wire::breaker).collect(),
    }
}

fn looped(view: &LoopView) -> v1::HealthLoop {
    v1::HealthLoop {
        name: view.name.to_owned(),
        stuck: view.stuck,
        moved_ago_ms: health::millis(view.moved_ago),
        leads: health::leads(view.leads).to_owned(),
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
        vacant_ms: health::millis(view.vacant),
        nobody: view.nobody,
    }
}
