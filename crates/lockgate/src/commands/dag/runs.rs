//! Looking at runs.

use clap::Args;
use lockgate_api::ToWire;
use lockgate_api::view;
use lockgate_core::dag::RunState;
use lockgate_proto::v1;

use super::draw;
use crate::args;
use crate::error::{CliError, Exit};
use crate::output::{TableCell, Tone};
use crate::session::CliSession;

/// List runs, newest first
#[derive(Args, Debug)]
pub(super) struct ListRuns {
    /// Only runs of this workflow
    #[arg(long, value_parser = args::name, value_name = "NAME")]
    dag: Option<String>,

    /// Only runs in this state, such as RUNNING or COMPENSATION_STUCK
    #[arg(long)]
    state: Option<RunState>,

    /// Most runs of the page
    #[arg(long, default_value_t = 50)]
    limit: u32,

    /// Where the page before ended
    #[arg(long, default_value = "", hide_default_value = true)]
    cursor: String,
}

/// Show a run with its nodes
#[derive(Args, Debug)]
pub(super) struct GetRun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,
}

impl ListRuns {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let state = self.state.map_or(v1::RunState::Unspecified, |state| state.to_wire());
        let request = v1::ListDagRunsRequest {
            dag: self.dag.unwrap_or_default(),
            state: state.into(),
            cursor: self.cursor,
            limit: self.limit,
            sagas: false,
        };
        let response = session.orchestrator().list_dag_runs(request).await;
        let runs = view::Runs::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&runs)?;
            return Ok(Exit::Success);
        }
        let row = |run: &view::Run| {
            vec![
                TableCell::text(&run.run_id),
                TableCell::text(&run.dag),
                TableCell::text(&run.state).toned(tone(&run.state)),
                TableCell::number(&format!("{}/{}", run.done, run.total)),
                TableCell::text(out.relative(run.began_at)),
                TableCell::clipped(run.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default()),
            ]
        };
        let rows: Vec<_> = runs.runs.iter().map(row).collect();
        out.line(&out.table(&["run", "dag", "state", "nodes", "began", "error"], &rows))?;
        if let Some(cursor) = &runs.next_cursor {
            out.remark(&format!("more: --cursor {cursor}"));
        }
        Ok(Exit::Success)
    }
}

impl GetRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let run = fetch(session, &self.run_id).await?;
        if session.out.is_json() {
            session.out.json(&run)?;
        } else {
            session.out.line(&draw::run(&run, session.out, None))?;
        }
        Ok(Exit::Success)
    }
}

pub(in crate::commands) async fn fetch(session: &CliSession, run_id: &str) -> Result<view::Run, CliError> {
    let response = session.orchestrator().get_dag_run(v1::GetDagRunRequest { run_id: run_id.to_owned() }).await;
    Ok(view::Run::from(session.answer(response)?))
}

/// What the end of a run means for a script that waited for it.
pub(super) fn end_of(run: &view::Run) -> Exit {
    if run.state == RunState::Succeeded.as_str() { Exit::Success } else { Exit::JobEndedBadly }
}

pub(in crate::commands) fn tone(state: &str) -> Tone {
    match state {
        "SUCCEEDED" => Tone::Good,
        "RUNNING" | "COMPENSATING" => Tone::Busy,
        "PAUSED" | "PENDING" | "READY" | "SUCCEEDED_WITH_FAILURES" => Tone::Waiting,
        "CANCELED" | "SKIPPED" => Tone::Faint,
        _ => Tone::Bad,
    }
}
