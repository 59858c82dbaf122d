//! The `Pools` service: pools and workers as operators see them, and the files that configure them.

use lockgate_core::ids::PoolName;
use lockgate_core::pools::Closed;
use lockgate_core::request::Caller;
use lockgate_engine::{Activated, ApiError, ConfigText, PoolView};
use lockgate_ports::SnapshotKind;
use lockgate_proto::v1;
use lockgate_proto::v1::pools_server::Pools;
use tonic::Request;

use super::lists::present;
use super::{GrpcResult, PoolsService, answer, caller};
use crate::configs;

#[tonic::async_trait]
impl Pools for PoolsService {
    async fn list_pools(&self, _: Request<v1::ListPoolsRequest>) -> GrpcResult<v1::ListPoolsResponse> {
        answer(self.list_all().await)
    }

    async fn set_pool_state(&self, request: Request<v1::SetPoolStateRequest>) -> GrpcResult<v1::SetPoolStateResponse> {
        let caller = caller(&request)?;
        answer(self.set_state(&caller, request.into_inner()).await)
    }

    async fn drain_worker(&self, request: Request<v1::DrainWorkerRequest>) -> GrpcResult<v1::DrainWorkerResponse> {
        let caller = caller(&request)?;
        let drained = self.0.engine.drain_worker(&caller, &request.into_inner().worker_id.into()).await;
        answer(drained.map(|sessions| v1::DrainWorkerResponse { sessions: u32::try_from(sessions).unwrap_or(u32::MAX) }))
    }

    async fn activate_config(&self, request: Request<v1::ActivateConfigRequest>) -> GrpcResult<v1::ActivateConfigResponse> {
        let caller = caller(&request)?;
        answer(self.activate(&caller, request.into_inner()).await)
    }

    async fn roll_back_config(&self, request: Request<v1::RollBackConfigRequest>) -> GrpcResult<v1::ActivateConfigResponse> {
        let caller = caller(&request)?;
        answer(self.roll_back(&caller, &request.into_inner()).await)
    }

    async fn get_config(&self, request: Request<v1::GetConfigRequest>) -> GrpcResult<v1::Config> {
        answer(self.get(&request.into_inner()).await)
    }

    async fn list_configs(&self, request: Request<v1::ListConfigsRequest>) -> GrpcResult<v1::ListConfigsResponse> {
        answer(self.list(request.into_inner().kind()).await)
    }
}

impl PoolsService {
    async fn list_all(&self) -> Result<v1::ListPoolsResponse, ApiError> {
        let in_force = configs::in_force(&self.0.engine, SnapshotKind::Pools).await?;
        let pools = self.0.engine.pools().await?.iter().map(status).collect();
        Ok(v1::ListPoolsResponse { pools, snapshot: in_force.snapshot.to_string() })
    }

    async fn set_state(&self, caller: &Caller, wire: v1::SetPoolStateRequest) -> Result<v1::SetPoolStateResponse, ApiError> {
        let state = known_state(wire.state())?;
        let name = PoolName::from(wire.pool);
        self.0.engine.set_pool_state(caller, &name, state).await?;
        Ok(v1::SetPoolStateResponse { pool: self.0.engine.pool(&name).await.as_ref().map(status) })
    }

    async fn activate(
        &self,
        caller: &Caller,
        wire: v1::ActivateConfigRequest,
    ) -> Result<v1::ActivateConfigResponse, ApiError> {
        let kind = known_kind(wire.kind())?;
        let file = present(wire.file).unwrap_or_else(|| configs::file_name(kind));
        let new = ConfigText { file, text: wire.text, expected: wire.expected_version };
        self.0.engine.activate_config(caller, kind, new).await.map(activated)
    }

    async fn roll_back(
        &self,
        caller: &Caller,
        wire: &v1::RollBackConfigRequest,
    ) -> Result<v1::ActivateConfigResponse, ApiError> {
        let kind = known_kind(wire.kind())?;
        self.0.engine.roll_back_config(caller, kind, &wire.snapshot, wire.expected_version).await.map(activated)
    }

    async fn get(&self, wire: &v1::GetConfigRequest) -> Result<v1::Config, ApiError> {
        let kind = known_kind(wire.kind())?;
        configs::named(&self.0.engine, kind, &wire.snapshot).await.map(v1::Config::from)
    }

    async fn list(&self, kind: v1::ConfigKind) -> Result<v1::ListConfigsResponse, ApiError> {
        let known = configs::all(&self.0.engine, known_kind(kind)?).await?;
        Ok(v1::ListConfigsResponse { configs: known.into_iter().map(v1::Config::from).collect() })
    }
}

fn known_kind(kind: v1::ConfigKind) -> Result<SnapshotKind, ApiError> {
    match kind {
        v1::ConfigKind::Pools => Ok(SnapshotKind::Pools),
        v1::ConfigKind::Timeouts => Ok(SnapshotKind::Timeouts),
        v1::ConfigKind::Quotas => Ok(SnapshotKind::Quotas),
        v1::ConfigKind::Unspecified => Err(ApiError::invalid("kind", "must be pools, timeouts or quotas")),
    }
}

/// None is open.
fn known_state(state: v1::PoolState) -> Result<Option<Closed>, ApiError> {
    match state {
        v1::PoolState::Open => Ok(None),
        v1::PoolState::Paused => Ok(Some(Closed::Paused)),
        v1::PoolState::Draining => Ok(Some(Closed::Draining)),
        v1::PoolState::Unspecified => Err(ApiError::invalid("state", "must be open, paused or draining")),
    }
}

fn wire_state(closed: Option<Closed>) -> v1::PoolState {
    match closed {
        None => v1::PoolState::Open,
        Some(Closed::Paused) => v1::PoolState::Paused,
        Some(Closed::Draining) => v1::PoolState::Draining,
    }
}

fn activated(activated: Activated) -> v1::ActivateConfigResponse {
    let Activated { version, snapshot, unchanged, recalled: _ } = activated;
    v1::ActivateConfigResponse { version, snapshot: snapshot.to_string(), unchanged }
}

fn status(view: &PoolView) -> v1::PoolStatus {
    let pool = &view.pool;
    v1::PoolStatus {
        name: pool.name.to_string(),
        description: pool.description.as_deref().unwrap_or_default().to_owned(),
        dispatch: pool.dispatch.as_str().to_owned(),
        state: wire_state(view.closed).into(),
        topics: view.topics.clone(),
        capabilities: pool.capabilities.iter().map(ToString::to_string).collect(),
        labels: pool.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        max_concurrent: pool.max_concurrent,
        workers: u32::try_from(view.workers).unwrap_or(u32::MAX),
        slots: view.slots,
        busy: view.busy,
        waiting: view.waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_the_wire_and_none_is_guessed() {
        for state in [None, Some(Closed::Paused), Some(Closed::Draining)] {
            assert!(matches!(known_state(wire_state(state)), Ok(same) if same == state));
        }
        assert!(known_state(v1::PoolState::Unspecified).is_err());
        assert!(known_kind(v1::ConfigKind::Unspecified).is_err());
    }
}
