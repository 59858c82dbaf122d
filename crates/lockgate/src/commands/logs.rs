//! `lockgate logs`: what a job's attempts wrote.

use clap::Args;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Tone, clock_time};
use crate::session::Session;
use crate::view;

/// Print the log lines of a job
#[derive(Args, Debug)]
pub(crate) struct Logs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,
}

impl Logs {
    pub(crate) async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
        let response = session.client.get_job_logs(v1::GetJobLogsRequest { job_id: self.job_id }).await;
        let logs = view::Logs::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&logs)?;
            return Ok(Exit::Success);
        }
        for line in logs.lines {
            let prefix = out.paint(&format!("#{} {}", line.attempt, clock_time(line.at)), Tone::Faint);
            out.line(&format!("{prefix}  {}", line.line))?;
        }
        Ok(Exit::Success)
    }
}
