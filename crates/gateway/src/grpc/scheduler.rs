//! The `Scheduler` service.

use lockgate_api::{ToWire, new_job};
use lockgate_core::ids::JobId;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, Engine, Submitted};
use lockgate_proto::v1;
use lockgate_proto::v1::scheduler_server::Scheduler;
use lockgate_proto::v1::submit_jobs_response::{Item, item};
use tonic::{Request, Response};

use super::{GrpcResult, ResponseStream, SchedulerService, answer, caller, lists, told};
use crate::{errors, submit, wire};

#[tonic::async_trait]
impl Scheduler for SchedulerService {
    type WatchJobStream = ResponseStream<v1::WatchJobResponse>;
    type WatchJobLogsStream = ResponseStream<v1::WatchJobLogsResponse>;

    async fn submit_job(&self, request: Request<v1::SubmitJobRequest>) -> GrpcResult<v1::SubmitJobResponse> {
        let caller = caller(&request)?;
        answer(self.submit_one(&caller, request.into_inner()).await)
    }

    async fn submit_jobs(&self, request: Request<v1::SubmitJobsRequest>) -> GrpcResult<v1::SubmitJobsResponse> {
        let caller = caller(&request)?;
        answer(submit_many(&self.0.engine, self.0.settings.ack, &caller, request.into_inner().jobs).await)
    }

    async fn get_job(&self, request: Request<v1::GetJobRequest>) -> GrpcResult<v1::Job> {
        let caller = caller(&request)?;
        let id = JobId::from(request.into_inner().job_id);
        let found = self.0.engine.job(&caller, &id).await;
        answer(found.map(|view| wire::job_view(&view, &self.0.engine.defaults())))
    }

    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> GrpcResult<v1::ListJobsResponse> {
        let caller = caller(&request)?;
        answer(lists::jobs(&self.0.engine, caller, request.into_inner()).await)
    }

    async fn watch_job(&self, request: Request<v1::WatchJobRequest>) -> GrpcResult<Self::WatchJobStream> {
        let caller = caller(&request)?;
        let v1::WatchJobRequest { job_id, after } = request.into_inner();
        let watch = self.0.engine.watch(&caller, &job_id.into(), after).await;
        answer(watch.map(|watch| told(watch, self.0.closing.clone(), |item| wire::watch_item(&item))))
    }

    async fn cancel_job(&self, request: Request<v1::CancelJobRequest>) -> GrpcResult<v1::CancelJobResponse> {
        let caller = caller(&request)?;
        let v1::CancelJobRequest { job_id, reason } = request.into_inner();
        let note = if reason.is_empty() { None } else { Some(reason.into()) };
        let cancelled = self.0.engine.cancel(&caller, &job_id.into(), note).await;
        answer(cancelled.map(|state| v1::CancelJobResponse { state: state.to_wire().into() }))
    }

    async fn retry_job(&self, request: Request<v1::RetryJobRequest>) -> GrpcResult<v1::RetryJobResponse> {
        let caller = caller(&request)?;
        let v1::RetryJobRequest { job_id, reason } = request.into_inner();
        let note = if reason.is_empty() { None } else { Some(reason.into()) };
        let retried = self.0.engine.force_retry(&caller, &job_id.into(), note).await;
        answer(retried.map(|state| v1::RetryJobResponse { state: state.to_wire().into() }))
    }

    async fn explain_job(&self, request: Request<v1::ExplainJobRequest>) -> GrpcResult<v1::ExplainJobResponse> {
        let caller = caller(&request)?;
        let why = self.0.engine.why(&caller, &request.into_inner().job_id.into()).await;
        answer(why.map(wire::why))
    }

    async fn get_job_logs(&self, request: Request<v1::GetJobLogsRequest>) -> GrpcResult<v1::GetJobLogsResponse> {
        let caller = caller(&request)?;
        let v1::GetJobLogsRequest { job_id, after } = request.into_inner();
        let lines = self.0.engine.logs(&caller, &job_id.into(), after).await;
        answer(lines.map(|lines| wire::logs(&lines)))
    }

    async fn watch_job_logs(&self, request: Request<v1::WatchJobLogsRequest>) -> GrpcResult<Self::WatchJobLogsStream> {
        let caller = caller(&request)?;
        let v1::WatchJobLogsRequest { job_id, after } = request.into_inner();
        let watch = self.0.engine.watch_logs(&caller, &job_id.into(), after).await;
        let message = |line| v1::WatchJobLogsResponse { line: Some(wire::log_line(&line)) };
        answer(watch.map(|watch| told(watch, self.0.closing.clone(), message)))
    }

    async fn list_dead_letters(
        &self,
        request: Request<v1::ListDeadLettersRequest>,
    ) -> GrpcResult<v1::ListDeadLettersResponse> {
        let caller = caller(&request)?;
        answer(lists::dead_letters(&self.0.engine, caller, request.into_inner()).await)
    }

    async fn replay_dead_letters(
        &self,
        request: Request<v1::ReplayDeadLettersRequest>,
    ) -> GrpcResult<v1::ReplayDeadLettersResponse> {
        let caller = caller(&request)?;
        answer(lists::replay(&self.0.engine, caller, request.into_inner()).await)
    }

    async fn discard_dead_letter(
        &self,
        request: Request<v1::DiscardDeadLetterRequest>,
    ) -> GrpcResult<v1::DiscardDeadLetterResponse> {
        let caller = caller(&request)?;
        let v1::DiscardDeadLetterRequest { job_id, reason } = request.into_inner();
        let state = self.0.engine.discard(&caller, &job_id.into(), reason.into()).await;
        answer(state.map(|state| v1::DiscardDeadLetterResponse { state: state.to_wire().into() }))
    }

    async fn list_workers(&self, _: Request<v1::ListWorkersRequest>) -> GrpcResult<v1::ListWorkersResponse> {
        Ok(Response::new(wire::workers(&self.0.engine.workers())))
    }

    async fn list_queues(&self, _: Request<v1::ListQueuesRequest>) -> GrpcResult<v1::ListQueuesResponse> {
        answer(self.0.engine.queues().await.map(wire::queues))
    }
}

impl SchedulerService {
    async fn submit_one(&self, caller: &Caller, request: v1::SubmitJobRequest) -> Result<v1::SubmitJobResponse, ApiError> {
        let job = request.job.ok_or_else(|| ApiError::invalid("job", "must be set"))?;
        submit::one(&self.0.engine, caller, new_job(job))
            .await
            .map(|submitted| wire::accepted(&submitted, self.0.settings.ack))
    }
}

/// Shared by gRPC SubmitJobs and the NATS ingress.
pub(crate) async fn submit_many(
    engine: &Engine,
    ack: &str,
    caller: &Caller,
    jobs: Vec<v1::NewJob>,
) -> Result<v1::SubmitJobsResponse, ApiError> {
    let answers = submit::many(engine, caller, jobs.into_iter().map(new_job)).await?;
    Ok(answered(answers, ack))
}

/// One answer for each job, in the order sent.
pub(super) fn answered(answers: Vec<Result<Submitted, ApiError>>, ack: &str) -> v1::SubmitJobsResponse {
    let item = |answer: Result<Submitted, ApiError>| Item {
        item: Some(match answer {
            Ok(submitted) => item::Item::Job(wire::accepted(&submitted, ack)),
            Err(error) => item::Item::Error(v1::ItemError {
                code: error.code().into(),
                message: error.to_string(),
                retry_after_ms: errors::retry_after_ms(&error),
            }),
        }),
    };
    v1::SubmitJobsResponse { jobs: answers.into_iter().map(item).collect() }
}
