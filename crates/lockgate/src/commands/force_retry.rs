//! `lockgate retry`: the next attempt now, instead of after its wait.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::session::CliSession;

/// Start the next attempt of a job now that waits for it; a job that ended badly lives again by `dlq replay`
#[derive(Args, Debug)]
pub(crate) struct ForceRetry {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,

    /// Why, for the history of the job and the audit trail
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
}

impl ForceRetry {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let request = v1::RetryJobRequest { job_id: self.job_id.clone(), reason: self.reason };
        let response = session.client.retry_job(request).await;
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
