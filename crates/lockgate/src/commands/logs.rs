//! `lockgate logs`: what a job's attempts wrote.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::follow::Patience;
use crate::output::{Output, Tone, clock_time};
use crate::session::CliSession;

/// Print the log lines of a job
#[derive(Args, Debug)]
pub(crate) struct LogsArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,

    /// Print lines as they come, until the job ends
    #[arg(long, short)]
    follow: bool,

    /// Only lines after this number, which --json shows
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "NUMBER")]
    after: u64,
}

impl LogsArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        if self.follow {
            return follow(session, &self.job_id, self.after).await;
        }
        let request = v1::GetJobLogsRequest { job_id: self.job_id, after: self.after };
        let response = session.client.get_job_logs(request).await;
        let logs = view::Logs::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&logs)?;
            return Ok(Exit::Success);
        }
        logs.lines.iter().try_for_each(|line| show(line, session.out))?;
        Ok(Exit::Success)
    }
}

/// Over restarts of the server: what was seen is not printed again.
async fn follow(session: &mut CliSession, job_id: &str, mut after: u64) -> Result<Exit, CliError> {
    let mut patience = Patience::default();
    loop {
        match follow_once(session, job_id, &mut after).await {
            // A stream also ends when its server leaves.
            Ok(()) if has_ended(session, job_id).await? => return Ok(Exit::Success),
            Ok(()) => patience = Patience::default(),
            Err(error) => patience.bear(error)?,
        }
        patience.pause().await;
    }
}

async fn follow_once(session: &mut CliSession, job_id: &str, after: &mut u64) -> Result<(), CliError> {
    let request = v1::WatchJobLogsRequest { job_id: job_id.to_owned(), after: *after };
    let response = session.client.watch_job_logs(request).await;
    let mut stream = session.answer(response)?;
    while let Some(message) = stream.message().await.map_err(|status| session.broken(&status))? {
        let Some(line) = message.line else { continue };
        let line = view::LogLine::from(line);
        *after = line.no;
        show(&line, session.out)?;
    }
    Ok(())
}

async fn has_ended(session: &mut CliSession, job_id: &str) -> Result<bool, CliError> {
    let mut patience = Patience::default();
    loop {
        let response = session.client.get_job(v1::GetJobRequest { job_id: job_id.to_owned() }).await;
        match session.answer(response) {
            Ok(job) => return Ok(job.ended_at_ms.is_some()),
            Err(error) => patience.bear(error)?,
        }
        patience.pause().await;
    }
}

fn show(line: &view::LogLine, out: Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json_line(line);
    }
    let prefix = out.paint(&format!("#{} {}", line.attempt, clock_time(line.at)), Tone::Faint);
    out.line(&format!("{prefix}  {}", line.line))
}
