//! The `Schedules` service: what starts by itself.

use lockgate_core::schedule as core;
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApiError, BackfillSpan, ScheduleView};
use lockgate_proto::v1;
use lockgate_proto::v1::schedules_server::Schedules;
use tonic::Request;

use super::lists::{invalid, page, present};
use super::{GrpcResult, SchedulesService, answer, caller};
use crate::queries;
use crate::schedules::{FILE, change, rhythm, work};

#[tonic::async_trait]
impl Schedules for SchedulesService {
    async fn put_schedules(&self, request: Request<v1::PutSchedulesRequest>) -> GrpcResult<v1::PutSchedulesResponse> {
        let caller = caller(&request)?;
        let v1::PutSchedulesRequest { file, text } = request.into_inner();
        let file = present(file).unwrap_or_else(|| FILE.to_owned());
        let applied = self.0.engine.put_schedules(&caller, &file, &text).await;
        let wire = |applied: lockgate_engine::AppliedSchedule| v1::put_schedules_response::Applied {
            name: applied.name.to_string(),
            revision: applied.revision,
            change: change(applied.changed).to_owned(),
        };
        answer(applied.map(|all| v1::PutSchedulesResponse { schedules: all.into_iter().map(wire).collect() }))
    }

    async fn list_schedules(&self, request: Request<v1::ListSchedulesRequest>) -> GrpcResult<v1::ListSchedulesResponse> {
        let caller = caller(&request)?;
        let v1::ListSchedulesRequest { after, limit } = request.into_inner();
        let limit = page(limit);
        let found = self.0.engine.schedules(&caller, present(after).as_deref(), limit).await;
        answer(found.map(|views| v1::ListSchedulesResponse {
            next_after: queries::next_name(&views, limit),
            schedules: views.iter().map(schedule).collect(),
        }))
    }

    async fn get_schedule(&self, request: Request<v1::GetScheduleRequest>) -> GrpcResult<v1::Schedule> {
        let caller = caller(&request)?;
        let found = self.0.engine.schedule(&caller, &request.into_inner().name).await;
        answer(found.map(|view| schedule(&view)))
    }

    async fn list_slots(&self, request: Request<v1::ListSlotsRequest>) -> GrpcResult<v1::ListSlotsResponse> {
        let caller = caller(&request)?;
        answer(self.slots(&caller, request.into_inner()).await)
    }

    async fn pause_schedule(&self, request: Request<v1::PauseScheduleRequest>) -> GrpcResult<v1::Schedule> {
        let caller = caller(&request)?;
        let paused = self.0.engine.pause_schedule(&caller, &request.into_inner().name).await;
        answer(paused.map(|view| schedule(&view)))
    }

    async fn resume_schedule(&self, request: Request<v1::ResumeScheduleRequest>) -> GrpcResult<v1::Schedule> {
        let caller = caller(&request)?;
        let resumed = self.0.engine.resume_schedule(&caller, &request.into_inner().name).await;
        answer(resumed.map(|view| schedule(&view)))
    }

    async fn remove_schedule(&self, request: Request<v1::RemoveScheduleRequest>) -> GrpcResult<v1::RemoveScheduleResponse> {
        let caller = caller(&request)?;
        let removed = self.0.engine.remove_schedule(&caller, &request.into_inner().name).await;
        answer(removed.map(|()| v1::RemoveScheduleResponse {}))
    }

    async fn trigger_schedule(&self, request: Request<v1::TriggerScheduleRequest>) -> GrpcResult<v1::Slot> {
        let caller = caller(&request)?;
        let triggered = self.0.engine.trigger_schedule(&caller, &request.into_inner().name).await;
        answer(triggered.map(|fresh| slot(&fresh)))
    }

    async fn backfill_schedule(
        &self,
        request: Request<v1::BackfillScheduleRequest>,
    ) -> GrpcResult<v1::BackfillScheduleResponse> {
        let caller = caller(&request)?;
        let v1::BackfillScheduleRequest { name, from_ms, to_ms, concurrency } = request.into_inner();
        let (from, to) = (Timestamp::from_millis(from_ms), Timestamp::from_millis(to_ms));
        let span = BackfillSpan { from, to, concurrency: concurrency.max(1) };
        let begun = self.0.engine.backfill_schedule(&caller, &name, span).await;
        answer(begun.map(|id| v1::BackfillScheduleResponse { id: id.to_string() }))
    }

    async fn cancel_backfill(&self, request: Request<v1::CancelBackfillRequest>) -> GrpcResult<v1::CancelBackfillResponse> {
        let caller = caller(&request)?;
        let v1::CancelBackfillRequest { name, id } = request.into_inner();
        let cancelled = self.0.engine.cancel_backfill(&caller, &name, &id).await;
        answer(cancelled.map(|()| v1::CancelBackfillResponse {}))
    }
}

impl SchedulesService {
    async fn slots(
        &self,
        caller: &lockgate_core::request::Caller,
        wire: v1::ListSlotsRequest,
    ) -> Result<v1::ListSlotsResponse, ApiError> {
        let cursor = queries::cursor(&wire.cursor).map_err(invalid)?;
        let listing = self.0.engine.slots(caller, &wire.name, cursor, page(wire.limit)).await?;
        Ok(v1::ListSlotsResponse {
            slots: listing.items.iter().map(slot).collect(),
            next_cursor: listing.next.map(queries::cursor_text).unwrap_or_default(),
        })
    }
}

fn schedule(view: &ScheduleView) -> v1::Schedule {
    let (schedule, spec) = (&view.schedule, &view.schedule.spec);
    let (topic, dag) = work(spec);
    v1::Schedule {
        name: schedule.name.to_string(),
        revision: schedule.revision,
        description: spec.description.as_deref().unwrap_or_default().to_owned(),
        rhythm: rhythm(spec),
        time_zone: spec.time_zone.to_string(),
        misfire: spec.misfire.as_str().to_owned(),
        overlap: spec.overlap.as_str().to_owned(),
        topic: topic.unwrap_or_default(),
        dag: dag.unwrap_or_default(),
        paused: schedule.paused_at.is_some(),
        actor: schedule.actor.to_string(),
        open: schedule.open.iter().map(slot).collect(),
        backfills: schedule.backfills.iter().map(backfill).collect(),
        upcoming_ms: view.upcoming.iter().map(|at| at.as_millis()).collect(),
        fault: view.fault.clone().unwrap_or_default(),
    }
}

fn backfill(backfill: &core::Backfill) -> v1::Backfill {
    v1::Backfill {
        id: backfill.id.to_string(),
        done_until_ms: backfill.done_until.as_millis(),
        until_ms: backfill.until.as_millis(),
        concurrency: backfill.concurrency,
    }
}

fn slot(slot: &core::Slot) -> v1::Slot {
    let outcome = match slot.outcome {
        core::SlotOutcome::Due => v1::SlotOutcome::Due,
        core::SlotOutcome::Started => v1::SlotOutcome::Started,
        core::SlotOutcome::Queued => v1::SlotOutcome::Queued,
        core::SlotOutcome::Skipped => v1::SlotOutcome::Skipped,
        core::SlotOutcome::Missed => v1::SlotOutcome::Missed,
        core::SlotOutcome::Refused => v1::SlotOutcome::Refused,
    };
    let (job_id, run_id) = match &slot.target {
        Some(core::Target::Job(id)) => (id.to_string(), String::new()),
        Some(core::Target::Run(id)) => (String::new(), id.to_string()),
        None => Default::default(),
    };
    v1::Slot {
        nominal_ms: slot.key.nominal.as_millis(),
        series: slot.key.series.0.to_string(),
        outcome: outcome.into(),
        reason: slot.reason.as_deref().unwrap_or_default().to_owned(),
        job_id,
        run_id,
        decided_at_ms: slot.decided_at.as_millis(),
    }
}
