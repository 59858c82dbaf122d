//! `lockgate release`: let a quarantined result go.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::session::CliSession;

/// Let the quarantined result of a job go
#[derive(Args, Debug)]
pub(crate) struct Release {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,

    /// Why, for the records
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    note: String,
}

impl Release {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let request = v1::ReleaseOutputRequest { job_id: self.job_id, note: self.note };
        let response = session.approvals().release_output(request).await;
        let released = session.answer(response)?;
        let state = view::JobStateName::from(released.state());
        if session.out.is_json() {
            session.out.json(&view::Changed { job_id: released.job_id, state })?;
        } else {
            session.out.line(&format!("{}  {}", released.job_id, session.out.state(&state)))?;
        }
        Ok(Exit::Success)
    }
}
