//! `lockgate saga`: workflows of plain jobs, and undoing them.

use clap::{Args, Subcommand};
use lockgate_api::ToWire;
use lockgate_api::view;
use lockgate_core::dag::RunState;
use lockgate_proto::v1;
use tonic::{Response, Status};

use super::dag::{draw, fetch, tone};
use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell};
use crate::session::CliSession;

/// Look after workflows of plain jobs: those that were submitted with --workflow-id
#[derive(Args, Debug)]
pub(crate) struct SagaArgs {
    #[command(subcommand)]
    command: SagaCommand,
}

#[derive(Debug, Subcommand)]
enum SagaCommand {
    List(ListSagas),
    Show(ShowSaga),
    Rollback(RollbackSaga),
    Resolve(ResolveSaga),
}

/// List workflows, newest first
#[derive(Args, Debug)]
struct ListSagas {
    /// Only those in this state, such as COMPENSATION_STUCK
    #[arg(long)]
    state: Option<RunState>,

    /// Most workflows of the page
    #[arg(long, default_value_t = 50)]
    limit: u32,

    /// Where the page before ended
    #[arg(long, default_value = "", hide_default_value = true)]
    cursor: String,
}

/// Show a workflow with its jobs, and what became of undoing them
#[derive(Args, Debug)]
struct ShowSaga {
    /// The workflow_id of its jobs
    workflow: String,
}

/// Close a workflow: its jobs are cancelled, and what they did is undone, the last first
#[derive(Args, Debug)]
struct RollbackSaga {
    /// The workflow_id of its jobs
    workflow: String,

    /// Only cancel what has not ended, and leave standing what was done
    #[arg(long)]
    keep: bool,

    /// Why, for the records
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
}

/// Put an undo right that is stuck: call it done, or try it once more
#[derive(Args, Debug)]
struct ResolveSaga {
    /// The workflow_id of its jobs
    workflow: String,

    /// The job whose undo is stuck
    job: String,

    /// Which of its lives, if it was replayed
    #[arg(long, value_name = "NUMBER")]
    life: Option<u32>,

    /// Try the undo once more instead of calling it done
    #[arg(long)]
    retry: bool,
}

impl SagaArgs {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let session = &CliSession::connect(connection, out).await?;
        match self.command {
            SagaCommand::List(command) => command.run(session).await,
            SagaCommand::Show(command) => command.run(session).await,
            SagaCommand::Rollback(command) => command.run(session).await,
            SagaCommand::Resolve(command) => command.run(session).await,
        }
    }
}

impl ListSagas {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let state = self.state.map_or(v1::RunState::Unspecified, |state| state.to_wire()).into();
        let Self { limit, cursor, .. } = self;
        let request = v1::ListDagRunsRequest { state, cursor, limit, sagas: true, ..Default::default() };
        let runs = view::Runs::from(session.answer(session.orchestrator().list_dag_runs(request).await)?);
        let out = session.out;
        if out.is_json() {
            out.json(&runs)?;
            return Ok(Exit::Success);
        }
        let row = |run: &view::Run| {
            vec![
                TableCell::text(&run.dag),
                TableCell::text(&run.state).toned(tone(&run.state)),
                TableCell::number(&format!("{}/{}", run.done, run.total)),
                TableCell::text(out.relative(run.began_at)),
                TableCell::clipped(run.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default()),
            ]
        };
        let rows: Vec<_> = runs.runs.iter().map(row).collect();
        out.line(&out.table(&["workflow", "state", "jobs", "began", "error"], &rows))?;
        if let Some(cursor) = &runs.next_cursor {
            out.remark(&format!("more: --cursor {cursor}"));
        }
        Ok(Exit::Success)
    }
}

impl ShowSaga {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let run = fetch(session, &find(session, self.workflow).await?).await?;
        if session.out.is_json() {
            session.out.json(&run)?;
        } else {
            session.out.line(&draw::run(&run, session.out, None))?;
        }
        Ok(Exit::Success)
    }
}

impl RollbackSaga {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let run_id = find(session, self.workflow).await?;
        let request = v1::CancelDagRequest { run_id, reason: self.reason, compensate: !self.keep };
        shown(session, session.orchestrator().cancel_dag(request).await)
    }
}

impl ResolveSaga {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let run_id = find(session, self.workflow).await?;
        let request = v1::ResolveCompensationRequest { run_id, node: self.job, item: self.life, retry: self.retry };
        shown(session, session.orchestrator().resolve_compensation(request).await)
    }
}

/// The run that the saga of a workflow is.
async fn find(session: &CliSession, workflow: String) -> Result<String, CliError> {
    let request = v1::ListDagRunsRequest { dag: workflow.clone(), limit: 1, sagas: true, ..Default::default() };
    // A page may end before it has looked at everything.
    let mut cursor = String::new();
    loop {
        let request = v1::ListDagRunsRequest { cursor, ..request.clone() };
        let runs = view::Runs::from(session.answer(session.orchestrator().list_dag_runs(request).await)?);
        if let Some(run) = runs.runs.into_iter().next() {
            return Ok(run.run_id);
        }
        match runs.next_cursor {
            Some(next) => cursor = next,
            None => return Err(CliError::not_found("workflow", format!("there is no workflow {workflow:?}"))),
        }
    }
}

fn shown(session: &CliSession, response: Result<Response<v1::DagRun>, Status>) -> Result<Exit, CliError> {
    let (run, out) = (view::Run::head(session.answer(response)?), session.out);
    if out.is_json() {
        out.json(&run)?;
    } else {
        out.line(&format!("{}  {}", run.dag, out.paint(&run.state, tone(&run.state))))?;
    }
    Ok(Exit::Success)
}
