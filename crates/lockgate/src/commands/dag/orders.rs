//! What people ask of a run.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;
use tonic::{Response, Status};

use super::runs::tone;
use super::start::params;
use crate::args;
use crate::error::{CliError, Exit};
use crate::session::CliSession;

/// Stop a run: nothing new starts, and what runs is stopped
#[derive(Args, Debug)]
pub(super) struct CancelRun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,

    /// Undo what was done
    #[arg(long)]
    compensate: bool,

    /// Why, for the records
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
}

/// Start nothing new until the run is resumed; what runs goes on
#[derive(Args, Debug)]
pub(super) struct PauseRun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,
}

/// Let a paused run go on
#[derive(Args, Debug)]
pub(super) struct ResumeRun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,
}

/// Run some nodes and all that come after them again; the outputs of the others are kept
#[derive(Args, Debug)]
pub(super) struct Rerun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,

    /// Where to begin; can be given many times
    #[arg(long = "from", required = true, value_name = "NODE")]
    from: Vec<String>,

    /// A parameter to change; can be given many times
    #[arg(long = "param", value_parser = args::pair, value_name = "NAME=VALUE")]
    param: Vec<(String, String)>,

    /// Do all of it, also what the same work done before could stand for
    #[arg(long)]
    fresh: bool,
}

/// Put an undo right that is stuck: call it done, or try it once more
#[derive(Args, Debug)]
pub(super) struct ResolveRun {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run_id: String,

    /// The node whose undo is stuck
    node: String,

    /// Which of its items, if it has some
    #[arg(long, value_name = "NUMBER")]
    item: Option<u32>,

    /// Try the undo once more instead of calling it done
    #[arg(long)]
    retry: bool,
}

impl CancelRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let Self { run_id, compensate, reason } = self;
        let request = v1::CancelDagRequest { run_id, reason, compensate };
        show(session, session.orchestrator().cancel_dag(request).await)
    }
}

impl PauseRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        show(session, session.orchestrator().pause_dag(v1::PauseDagRequest { run_id: self.run_id }).await)
    }
}

impl ResumeRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        show(session, session.orchestrator().resume_dag(v1::ResumeDagRequest { run_id: self.run_id }).await)
    }
}

impl Rerun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let Self { run_id, from, param, fresh } = self;
        let request = v1::RerunDagRequest { run_id, from, params_json: params(None, param)?, fresh };
        show(session, session.orchestrator().rerun_dag(request).await)
    }
}

impl ResolveRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let Self { run_id, node, item, retry } = self;
        let request = v1::ResolveCompensationRequest { run_id, node, item, retry };
        show(session, session.orchestrator().resolve_compensation(request).await)
    }
}

fn show(session: &CliSession, response: Result<Response<v1::DagRun>, Status>) -> Result<Exit, CliError> {
    let (run, out) = (view::Run::head(session.answer(response)?), session.out);
    if out.is_json() {
        out.json(&run)?;
    } else {
        out.line(&format!("{}  {}", run.run_id, out.paint(&run.state, tone(&run.state))))?;
    }
    Ok(Exit::Success)
}
