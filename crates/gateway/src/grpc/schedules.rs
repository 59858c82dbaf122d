//! The `Schedules` service: what starts by itself.

use lockgate_api::ToWire;
use lockgate_core::time::Timestamp;
use lockgate_engine::{ApiError, BackfillSpan};
use lockgate_proto::v1;
use lockgate_proto::v1::schedules_server::Schedules;
use tonic::Request;

use super::lists::{invalid, page, present};
use super::{GrpcResult, SchedulesService, answer, caller};
use crate::schedules::FILE;
use crate::{queries, wire};

#[tonic::async_trait]
impl Schedules for SchedulesService {
    async fn put_schedules(&self, request: Request<v1::PutSchedulesRequest>) -> GrpcResult<v1::PutSchedulesResponse> {
        let caller = caller(&request)?;
        let v1::PutSchedulesRequest { file, text } = request.into_inner();
        let file = present(file).unwrap_or_else(|| FILE.to_owned());
        let applied = self.0.engine.put_schedules(&caller, &file, &text).await;
        answer(applied.map(wire::applied))
    }

    async fn list_schedules(&self, request: Request<v1::ListSchedulesRequest>) -> GrpcResult<v1::ListSchedulesResponse> {
        let caller = caller(&request)?;
        let v1::ListSchedulesRequest { after, limit } = request.into_inner();
        let limit = page(limit);
        let found = self.0.engine.schedules(&caller, present(after).as_deref(), limit).await;
        answer(found.map(|views| wire::schedules(&views, limit)))
    }

    async fn get_schedule(&self, request: Request<v1::GetScheduleRequest>) -> GrpcResult<v1::Schedule> {
        let caller = caller(&request)?;
        let found = self.0.engine.schedule(&caller, &request.into_inner().name).await;
        answer(found.map(|view| wire::schedule(&view)))
    }

    async fn list_slots(&self, request: Request<v1::ListSlotsRequest>) -> GrpcResult<v1::ListSlotsResponse> {
        let caller = caller(&request)?;
        answer(self.slots(&caller, request.into_inner()).await)
    }

    async fn pause_schedule(&self, request: Request<v1::PauseScheduleRequest>) -> GrpcResult<v1::Schedule> {
        let caller = caller(&request)?;
        let paused = self.0.engine.pause_schedule(&caller, &request.into_inner().name).await;
        answer(paused.map(|view| wire::schedule(&view)))
    }

    async fn resume_schedule(&self, request: Request<v1::ResumeScheduleRequest>) -> GrpcResult<v1::Schedule> {
        let caller = caller(&request)?;
        let resumed = self.0.engine.resume_schedule(&caller, &request.into_inner().name).await;
        answer(resumed.map(|view| wire::schedule(&view)))
    }

    async fn remove_schedule(&self, request: Request<v1::RemoveScheduleRequest>) -> GrpcResult<v1::RemoveScheduleResponse> {
        let caller = caller(&request)?;
        let removed = self.0.engine.remove_schedule(&caller, &request.into_inner().name).await;
        answer(removed.map(|()| v1::RemoveScheduleResponse {}))
    }

    async fn trigger_schedule(&self, request: Request<v1::TriggerScheduleRequest>) -> GrpcResult<v1::Slot> {
        let caller = caller(&request)?;
        let triggered = self.0.engine.trigger_schedule(&caller, &request.into_inner().name).await;
        answer(triggered.map(|slot| slot.to_wire()))
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
        answer(begun.map(|id| wire::begun(&id)))
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
        request: v1::ListSlotsRequest,
    ) -> Result<v1::ListSlotsResponse, ApiError> {
        let cursor = queries::cursor(&request.cursor).map_err(invalid)?;
        let listing = self.0.engine.slots(caller, &request.name, cursor, page(request.limit)).await?;
        Ok(wire::slots(&listing))
    }
}
