//! The `Orchestrator` service: definitions of workflows, and runs of them.

use std::sync::Arc;

use lockgate_api::{known_run_state, run_event, run_head, run_whole};
use lockgate_core::dag::{Dag, Run};
use lockgate_core::ids::RunId;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, RunOrder, StartRun};
use lockgate_ports::RunQuery;
use lockgate_proto::v1;
use lockgate_proto::v1::orchestrator_server::Orchestrator;
use serde_json::{Map, Value};
use tonic::Request;

use super::lists::{invalid, page, present};
use super::{GrpcResult, OrchestratorService, ResponseStream, answer, caller, told};
use crate::dags::{self, FILE};
use crate::{errors, queries, wire};

#[tonic::async_trait]
impl Orchestrator for OrchestratorService {
    type WatchDAGRunStream = ResponseStream<v1::DagEvent>;

    async fn put_dag(&self, request: Request<v1::PutDagRequest>) -> GrpcResult<v1::PutDagResponse> {
        let caller = caller(&request)?;
        let v1::PutDagRequest { file, text } = request.into_inner();
        let file = present(file).unwrap_or_else(|| FILE.to_owned());
        let stored = self.0.engine.put_dag(&caller, &file, &text).await;
        answer(stored.map(|view| wire::stored_dag(&view)))
    }

    async fn list_da_gs(&self, request: Request<v1::ListDaGsRequest>) -> GrpcResult<v1::ListDaGsResponse> {
        let caller = caller(&request)?;
        answer(self.0.engine.dags(&caller).await.map(|known| wire::dags(&known)))
    }

    async fn get_dag(&self, request: Request<v1::GetDagRequest>) -> GrpcResult<v1::Dag> {
        let caller = caller(&request)?;
        let v1::GetDagRequest { name, version } = request.into_inner();
        answer(self.0.engine.dag(&caller, &name, version).await.map(|view| wire::dag(&view)))
    }

    async fn start_dag(&self, request: Request<v1::StartDagRequest>) -> GrpcResult<v1::StartDagResponse> {
        let caller = caller(&request)?;
        answer(self.start(&caller, request.into_inner()).await)
    }

    async fn get_dag_run(&self, request: Request<v1::GetDagRunRequest>) -> GrpcResult<v1::DagRun> {
        let caller = caller(&request)?;
        let id = RunId::from(request.into_inner().run_id);
        answer(self.0.engine.run_view(&caller, &id).await.map(|view| run_whole(&view.run, &view.dag)))
    }

    async fn list_dag_runs(&self, request: Request<v1::ListDagRunsRequest>) -> GrpcResult<v1::ListDagRunsResponse> {
        let caller = caller(&request)?;
        answer(self.list(caller, request.into_inner()).await)
    }

    async fn watch_dag_run(&self, request: Request<v1::WatchDagRunRequest>) -> GrpcResult<Self::WatchDAGRunStream> {
        let caller = caller(&request)?;
        let v1::WatchDagRunRequest { run_id, after } = request.into_inner();
        let watch = self.0.engine.watch_run(&caller, &run_id.into(), after).await;
        let event = |(run, dag): (Run, Arc<Dag>)| run_event(&run, &dag);
        answer(watch.map(|watch| told(watch, self.0.closing.clone(), event)))
    }

    async fn cancel_dag(&self, request: Request<v1::CancelDagRequest>) -> GrpcResult<v1::DagRun> {
        let caller = caller(&request)?;
        let v1::CancelDagRequest { run_id, reason, compensate } = request.into_inner();
        self.order(&caller, run_id, RunOrder::Cancel { compensate, note: present(reason).map(Into::into) }).await
    }

    async fn pause_dag(&self, request: Request<v1::PauseDagRequest>) -> GrpcResult<v1::DagRun> {
        let caller = caller(&request)?;
        self.order(&caller, request.into_inner().run_id, RunOrder::Pause).await
    }

    async fn resume_dag(&self, request: Request<v1::ResumeDagRequest>) -> GrpcResult<v1::DagRun> {
        let caller = caller(&request)?;
        self.order(&caller, request.into_inner().run_id, RunOrder::Resume).await
    }

    async fn rerun_dag(&self, request: Request<v1::RerunDagRequest>) -> GrpcResult<v1::DagRun> {
        let caller = caller(&request)?;
        let v1::RerunDagRequest { run_id, from, params_json, fresh } = request.into_inner();
        let params = map(&params_json).map_err(|error| errors::status(&error))?;
        self.order(&caller, run_id, RunOrder::Rerun { from, params, fresh }).await
    }

    async fn resolve_compensation(&self, request: Request<v1::ResolveCompensationRequest>) -> GrpcResult<v1::DagRun> {
        let caller = caller(&request)?;
        let v1::ResolveCompensationRequest { run_id, node, item, retry } = request.into_inner();
        self.order(&caller, run_id, dags::resolve(node, item, retry)).await
    }
}

impl OrchestratorService {
    async fn start(&self, caller: &Caller, request: v1::StartDagRequest) -> Result<v1::StartDagResponse, ApiError> {
        let start = StartRun {
            dag: request.dag,
            version: request.version,
            params: Value::Object(map(&request.params_json)?),
            idempotency_key: present(request.idempotency_key),
            fresh: request.fresh,
        };
        self.0.engine.start_run(caller, start).await.map(wire::started)
    }

    async fn list(&self, caller: Caller, request: v1::ListDagRunsRequest) -> Result<v1::ListDagRunsResponse, ApiError> {
        let query = RunQuery {
            tenant: Some(caller.tenant.clone()),
            dag: present(request.dag).map(Into::into),
            state: known_run_state(request.state).map_err(invalid)?,
            sagas: Some(request.sagas),
            cursor: queries::cursor(&request.cursor).map_err(invalid)?,
            limit: page(request.limit),
        };
        self.0.engine.runs(&caller, query).await.map(|listing| wire::runs(&listing))
    }

    async fn order(&self, caller: &Caller, run: String, order: RunOrder) -> GrpcResult<v1::DagRun> {
        answer(self.0.engine.order_run(caller, &RunId::from(run), order).await.map(|head| run_head(&head)))
    }
}

/// A JSON map as bytes; none at all is an empty one.
fn map(json: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if json.is_empty() {
        return Ok(Map::new());
    }
    let text =
        std::str::from_utf8(json).map_err(|error| ApiError::invalid("params", format_args!("must be UTF-8: {error}")))?;
    dags::params(text).map_err(invalid)
}
