//! The `Pools` service: pools and workers as operators see them, and the files that configure them.

use lockgate_core::ids::PoolName;
use lockgate_core::pools::Closed;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, ConfigText};
use lockgate_ports::SnapshotKind;
use lockgate_proto::v1;
use lockgate_proto::v1::pools_server::Pools;
use tonic::Request;

use super::lists::present;
use super::{GrpcResult, PoolsService, answer, caller};
use crate::{configs, wire};

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
        answer(drained.map(wire::drained))
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
        Ok(wire::pools(&self.0.engine.pools().await?, &in_force.snapshot))
    }

    async fn set_state(
        &self,
        caller: &Caller,
        request: v1::SetPoolStateRequest,
    ) -> Result<v1::SetPoolStateResponse, ApiError> {
        let state = known_state(request.state())?;
        let name = PoolName::from(request.pool);
        self.0.engine.set_pool_state(caller, &name, state).await?;
        Ok(wire::pool_changed(self.0.engine.pool(&name).await.as_ref()))
    }

    async fn activate(
        &self,
        caller: &Caller,
        request: v1::ActivateConfigRequest,
    ) -> Result<v1::ActivateConfigResponse, ApiError> {
        let kind = known_kind(request.kind())?;
        let file = present(request.file).unwrap_or_else(|| configs::file_name(kind));
        let new = ConfigText { file, text: request.text, expected: request.expected_version };
        self.0.engine.activate_config(caller, kind, new).await.map(wire::activated)
    }

    async fn roll_back(
        &self,
        caller: &Caller,
        request: &v1::RollBackConfigRequest,
    ) -> Result<v1::ActivateConfigResponse, ApiError> {
        let kind = known_kind(request.kind())?;
        self.0.engine.roll_back_config(caller, kind, &request.snapshot, request.expected_version).await.map(wire::activated)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_guessed() {
        assert!(known_state(v1::PoolState::Unspecified).is_err());
        assert!(known_kind(v1::ConfigKind::Unspecified).is_err());
    }
}
