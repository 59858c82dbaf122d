//! `lockgate cancel`: stop a job.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::session::CliSession;

/// Stop a job, whether it waits or runs
#[derive(Args, Debug)]
pub(crate) struct CancelArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,

    /// Why, for the records
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
}

impl CancelArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let request = v1::CancelJobRequest { job_id: self.job_id.clone(), reason: self.reason };
        let response = session.client.cancel_job(request).await;
        let response = session.answer(response)?;
        let state = view::JobStateName::from(response.state());
        if session.out.is_json() {
            session.out.json(&view::Changed { job_id: self.job_id, state })?;
        } else {
            session.out.line(&format!("{}  {}", self.job_id, session.out.state(&state)))?;
        }
        Ok(Exit::Success)
    }
}
