//! The `Monitor` service: how this process is.

use lockgate_proto::v1;
use lockgate_proto::v1::monitor_server::Monitor;
use tonic::{Request, Response};

use super::{GrpcResult, MonitorService};
use crate::wire;

#[tonic::async_trait]
impl Monitor for MonitorService {
    async fn get_health(&self, _: Request<v1::GetHealthRequest>) -> GrpcResult<v1::Health> {
        Ok(Response::new(wire::health(&self.0.engine.health().await)))
    }
}
