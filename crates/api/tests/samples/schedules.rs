use lockgate_proto::v1;

use super::{at, text};

pub(crate) fn applied() -> v1::PutSchedulesResponse {
    let applied = v1::put_schedules_response::Applied { name: text("s"), revision: 2, change: text("updated") };
    v1::PutSchedulesResponse { schedules: vec![applied] }
}

pub(crate) fn listed() -> v1::ListSchedulesResponse {
    let schedule = v1::Schedule {
        name: text("s"),
        revision: 2,
        description: text("nightly"),
        rhythm: text("0 2 * * *"),
        time_zone: text("Europe/Berlin"),
        misfire: text("latest"),
        overlap: text("skip"),
        topic: text("job.x"),
        dag: text("etl@2"),
        paused: true,
        actor: text("ann"),
        open: vec![slot()],
        backfills: vec![v1::Backfill { id: text("b"), done_until_ms: at(1), until_ms: at(2), concurrency: 3 }],
        upcoming_ms: vec![at(3), at(4)],
        fault: text("no such zone"),
    };
    v1::ListSchedulesResponse { schedules: vec![schedule], next_after: text("s") }
}

pub(crate) fn slots() -> v1::ListSlotsResponse {
    let bare = v1::Slot { reason: text(""), job_id: text(""), run_id: text(""), ..slot() };
    v1::ListSlotsResponse { slots: vec![slot(), bare], next_cursor: text("5") }
}

fn slot() -> v1::Slot {
    v1::Slot {
        nominal_ms: at(0),
        series: text("manual"),
        outcome: v1::SlotOutcome::Started.into(),
        reason: text("late"),
        job_id: text("cron-1"),
        run_id: text("run-1"),
        decided_at_ms: at(1),
    }
}
