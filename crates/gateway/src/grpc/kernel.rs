//! The `SafetyKernel` and `OutputPolicy` services: verdicts for schedulers elsewhere, for people, for running attempts.

use std::sync::Arc;

use lockgate_api::{explanation_to_wire, json, judged, output_verdict_to_wire, subject_from_wire, verdict_to_wire};
use lockgate_core::access::Permission;
use lockgate_core::ids::JobId;
use lockgate_core::job::{Action, ActionKind, Job};
use lockgate_core::limits::BATCH_JOBS_MAX;
use lockgate_core::policy::FailMode;
use lockgate_core::request::{Caller, FieldError, JobRequest};
use lockgate_core::verdict::{Decision, Verdict};
use lockgate_engine::ApiError;
use lockgate_ports::{OutputContent, SnapshotKind};
use lockgate_proto::v1;
use lockgate_proto::v1::check_request::What;
use lockgate_proto::v1::output_policy_server::OutputPolicy;
use lockgate_proto::v1::safety_kernel_server::SafetyKernel;
use tonic::Request;

use super::lists::{invalid, present};
use super::{GrpcResult, KernelService, answer, caller};
use crate::auth::Authenticated;
use crate::configs;

/// Denies what cannot be judged because it is no job.
const NO_JOB_RULE: &str = "invalid-subject";

#[tonic::async_trait]
impl SafetyKernel for KernelService {
    async fn check(&self, request: Request<v1::CheckRequest>) -> GrpcResult<v1::Verdict> {
        let caller = caller(&request)?;
        let admitted = request.extensions().get::<Authenticated>();
        let judges = admitted.is_none_or(|admitted| admitted.identity.grant.allows(Permission::Judge));
        let verdict = match request.into_inner().what {
            // A worker asks about acts of the attempts it holds, and about nothing else.
            Some(What::Subject(_)) if !judges => Err(ApiError::Forbidden("workers may ask about actions only".into())),
            Some(What::Subject(subject)) => self.check_job(&caller, subject).await,
            Some(What::Action(action)) => self.check_action(&caller, action).await,
            None => Err(ApiError::invalid("subject", "must be set, or action")),
        };
        answer(verdict.map(|verdict| verdict_to_wire(&verdict)))
    }

    async fn check_batch(&self, request: Request<v1::CheckBatchRequest>) -> GrpcResult<v1::CheckBatchResponse> {
        let caller = caller(&request)?;
        let verdicts = self.check_jobs(&caller, request.into_inner().subjects).await;
        answer(verdicts.map(|verdicts| v1::CheckBatchResponse { verdicts }))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> GrpcResult<v1::ExplainResponse> {
        let caller = caller(&request)?;
        let explained = match asked(request.into_inner().subject, &caller) {
            Ok(job) => self.0.engine.explain_policy(&job).await,
            Err(error) => Err(error),
        };
        answer(explained.map(|explanation| explanation_to_wire(&explanation)))
    }

    async fn simulate(&self, request: Request<v1::SimulateRequest>) -> GrpcResult<v1::SimulateResponse> {
        let caller = caller(&request)?;
        answer(self.simulate(&caller, request.into_inner()).await)
    }

    async fn list_snapshots(&self, request: Request<v1::ListSnapshotsRequest>) -> GrpcResult<v1::ListSnapshotsResponse> {
        answer(self.snapshots(&request.into_inner().known).await)
    }
}

#[tonic::async_trait]
impl OutputPolicy for KernelService {
    async fn check_output(&self, request: Request<v1::CheckOutputRequest>) -> GrpcResult<v1::CheckOutputResponse> {
        let caller = caller(&request)?;
        let v1::CheckOutputRequest { subject, result_json } = request.into_inner();
        let verdict = match content(subject, &result_json, &caller) {
            Ok(content) => self.0.engine.check_output(&content).await,
            Err(error) => Err(error),
        };
        answer(verdict.map(|verdict| output_verdict_to_wire(&verdict)))
    }
}

impl KernelService {
    /// What is in force, and its text unless it is the one that the caller has.
    async fn snapshots(&self, callers: &str) -> Result<v1::ListSnapshotsResponse, ApiError> {
        let known = configs::all(&self.0.engine, SnapshotKind::Policy).await?;
        let in_force = known.iter().find(|known| known.in_force).filter(|known| &*known.snapshot != callers);
        let text = match in_force {
            Some(new) if new.activation.is_some() => {
                self.0.engine.config_text(SnapshotKind::Policy, &new.snapshot).await?.to_string()
            }
            _ => String::new(),
        };
        let input = self.0.engine.input_policy();
        Ok(v1::ListSnapshotsResponse {
            snapshots: known.iter().map(|known| known.snapshot.to_string()).collect(),
            fail_open: input.mode == FailMode::Open,
            fail_open_until_ms: input.until.map(|until| until.as_millis()),
            policy_text: text,
        })
    }

    async fn check_job(&self, caller: &Caller, subject: v1::Subject) -> Result<Arc<Verdict>, ApiError> {
        let job = counted(subject, caller).map_err(ApiError::Invalid)?;
        let mut verdicts = self.0.engine.check(&[Arc::new(job)]).await?;
        verdicts.pop().ok_or_else(|| ApiError::Internal("a check was not answered".into()))
    }

    /// One bad subject must not leave its neighbours without verdicts.
    async fn check_jobs(&self, caller: &Caller, subjects: Vec<v1::Subject>) -> Result<Vec<v1::Verdict>, ApiError> {
        in_bounds(&subjects)?;
        let read: Vec<_> = subjects.into_iter().map(|subject| counted(subject, caller).map(Arc::new)).collect();
        let jobs: Vec<_> = read.iter().filter_map(|job| job.as_ref().ok().cloned()).collect();
        let mut verdicts = self.0.engine.check(&jobs).await?.into_iter();
        let one = |job: Result<_, Vec<FieldError>>| match job {
            Ok(_) => verdicts.next().map(|verdict| verdict_to_wire(&verdict)),
            Err(errors) => Some(no_job(&errors)),
        };
        let all: Option<Vec<_>> = read.into_iter().map(one).collect();
        all.ok_or_else(|| ApiError::Internal("a check was not answered".into()))
    }

    async fn check_action(&self, caller: &Caller, wire: v1::Action) -> Result<Arc<Verdict>, ApiError> {
        let kind = ActionKind::ALL.into_iter().find(|kind| kind.as_str() == wire.kind);
        let kind = kind.ok_or_else(|| ApiError::invalid("kind", "must be tool, url or command"))?;
        let detail = json("detail", &wire.detail_json).map_err(invalid)?.unwrap_or_default();
        let action = Action { kind, value: wire.value.into(), detail };
        self.0.engine.check_action(caller, &wire.job_id.into(), wire.token.into(), action).await
    }

    async fn simulate(&self, caller: &Caller, wire: v1::SimulateRequest) -> Result<v1::SimulateResponse, ApiError> {
        in_bounds(&wire.subjects)?;
        if wire.job_ids.len() > BATCH_JOBS_MAX {
            return Err(ApiError::invalid("job_ids", format_args!("must have at most {BATCH_JOBS_MAX} entries")));
        }
        let read = |(at, subject): (usize, v1::Subject)| {
            subject_from_wire(subject, caller).map(Arc::new).map_err(|errors| numbered(at, errors))
        };
        let jobs: Result<Vec<_>, _> = wire.subjects.into_iter().enumerate().map(read).collect();
        let file = present(wire.file).unwrap_or_else(|| configs::file_name(SnapshotKind::Policy));
        let verdicts = self.0.engine.simulate_policy(&file, &wire.policy_text, &jobs?).await?;
        let ids: Vec<JobId> = wire.job_ids.into_iter().map(JobId::from).collect();
        let stored = self.0.engine.simulate_stored(caller, &file, &wire.policy_text, &ids).await?;
        let verdicts = verdicts.iter().map(|verdict| verdict_to_wire(verdict)).collect();
        Ok(v1::SimulateResponse { verdicts, jobs: stored.iter().map(simulated).collect() })
    }
}

fn simulated((job, verdict): &(Job, Arc<Verdict>)) -> v1::SimulatedJob {
    v1::SimulatedJob {
        job_id: job.request.job_id.to_string(),
        topic: job.request.topic.to_string(),
        recorded: job.life.attempt.verdict.as_deref().map(verdict_to_wire),
        verdict: Some(verdict_to_wire(verdict)),
    }
}

fn in_bounds(subjects: &[v1::Subject]) -> Result<(), ApiError> {
    match subjects.len() {
        0..=BATCH_JOBS_MAX => Ok(()),
        sent => Err(ApiError::invalid("subjects", format_args!("must have at most {BATCH_JOBS_MAX} entries; has {sent}"))),
    }
}

fn asked(subject: Option<v1::Subject>, caller: &Caller) -> Result<JobRequest, ApiError> {
    let subject = subject.ok_or_else(|| ApiError::invalid("subject", "must be set"))?;
    subject_from_wire(subject, caller).map_err(ApiError::Invalid)
}

/// A subject that velocity windows count, which they do by id.
fn counted(subject: v1::Subject, caller: &Caller) -> Result<JobRequest, Vec<FieldError>> {
    if subject.job_id.is_empty() {
        return Err(vec![FieldError::new("job_id", "must be set: velocity windows count jobs by it")]);
    }
    subject_from_wire(subject, caller)
}

fn content(subject: Option<v1::Subject>, result: &[u8], caller: &Caller) -> Result<OutputContent, ApiError> {
    let request = Arc::new(asked(subject, caller)?);
    Ok(OutputContent { request, result: judged("result", result).map_err(invalid)?.unwrap_or_default() })
}

fn numbered(at: usize, errors: Vec<FieldError>) -> ApiError {
    let named = |error: FieldError| FieldError::new(format!("subjects[{at}].{}", error.field), error.message);
    ApiError::Invalid(errors.into_iter().map(named).collect())
}

fn no_job(errors: &[FieldError]) -> v1::Verdict {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let reason = format!("the subject is not a job that could be judged: {}", errors.join("; "));
    verdict_to_wire(&Verdict::plain(Decision::Deny, NO_JOB_RULE, reason, "".into()))
}
