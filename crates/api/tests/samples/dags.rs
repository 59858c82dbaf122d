use lockgate_proto::v1;

use super::{at, text, texts};

pub(crate) fn stored() -> v1::PutDagResponse {
    v1::PutDagResponse { name: text("etl"), version: 2, snapshot: text("dag:1"), uncompensated: texts(&["load"]) }
}

pub(crate) fn listed() -> v1::ListDaGsResponse {
    let dag = v1::Dag {
        name: text("etl"),
        version: 2,
        snapshot: text("dag:1"),
        description: text("moves data"),
        text: text("version: 1\n"),
        actor: text("ann"),
        stored_at_ms: at(0),
        nodes: 3,
    };
    v1::ListDaGsResponse { dags: vec![dag] }
}

pub(crate) fn started() -> v1::StartDagResponse {
    v1::StartDagResponse { run_id: text("run-1"), dag: text("etl"), version: 2, existing: true }
}

pub(crate) fn run() -> v1::DagRun {
    v1::DagRun {
        run_id: text("run-1"),
        dag: text("etl"),
        dag_version: 2,
        tenant: text("acme"),
        actor: text("ann"),
        state: v1::RunState::CompensationStuck.into(),
        params_json: r#"{"p":1}"#.into(),
        output_json: "[2]".into(),
        reason: text("failed"),
        message: text("node b"),
        began_at_ms: at(0),
        ended_at_ms: Some(at(9)),
        deadline_at_ms: Some(at(8)),
        tainted: true,
        done: 1,
        total: 3,
        version: 7,
        parent_run_id: text("run-0"),
        nodes: vec![node(), v1::DagNode { name: text("bare"), state: v1::NodeState::Pending.into(), ..Default::default() }],
        trace_id: text("t"),
    }
}

pub(crate) fn runs() -> v1::ListDagRunsResponse {
    v1::ListDagRunsResponse { runs: vec![v1::DagRun { nodes: Vec::new(), ..run() }], next_cursor: text("b") }
}

fn node() -> v1::DagNode {
    v1::DagNode {
        name: text("each"),
        item: Some(1),
        state: v1::NodeState::Failed.into(),
        needs: texts(&["a"]),
        kind: text("job"),
        topic: text("job.x"),
        job_id: text("j"),
        child_run_id: text("run-2"),
        began_at_ms: Some(at(1)),
        ended_at_ms: Some(at(2)),
        wakes_at_ms: Some(at(3)),
        reason: text("fatal"),
        message: text("boom"),
        output_json: "3".into(),
        items: Some(4),
        undo: v1::UndoState::Stuck.into(),
        undo_job_id: text("comp-1"),
        undo_message: text("nope"),
        tainted: true,
        round: 2,
        done_late: true,
        memo_job_id: text("m"),
        waits_for_worker_until_ms: Some(at(4)),
        attempts: Some(5),
        losses: Some(2),
    }
}
