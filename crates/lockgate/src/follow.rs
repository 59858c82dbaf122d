//! Following jobs to their ends, over server restarts.

use std::time::Duration;

use lockgate_proto::v1;
use tokio::time::Instant;
use v1::watch_job_response::Item;

use crate::error::CliError;
use crate::session::Session;

/// How long a server may be away before following gives up. A restart takes a second or two.
const AWAY_MAX: Duration = Duration::from_secs(30);
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Calls `seen` for each event after number `after`, without gaps or doubles, and each progress report, until the job ends.
/// The job as it ended.
pub(crate) async fn follow(
    session: &mut Session,
    job_id: &str,
    mut after: u64,
    mut seen: impl FnMut(Item) -> Result<(), CliError>,
) -> Result<v1::Job, CliError> {
    let mut patience = Patience::default();
    loop {
        let lost = match watch_once(session, job_id, &mut after, &mut seen).await {
            Ok(()) => match final_state(session, job_id).await {
                Ok(Some(job)) => return Ok(job),
                Ok(None) => None,
                Err(error) => Some(error),
            },
            Err(error) => Some(error),
        };
        match lost {
            None => patience = Patience::default(),
            Some(error) => patience.bear(error)?,
        }
        patience.pause().await;
    }
}

/// Repeats a call that may be repeated until a server that is away or busy answers it.
pub(crate) async fn repeat<T>(
    session: &mut Session,
    mut call: impl AsyncFnMut(&mut Session) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut patience = Patience::default();
    loop {
        match call(session).await {
            Ok(answer) => return Ok(answer),
            Err(error) => patience.bear(error)?,
        }
        patience.pause().await;
    }
}

/// Since when the server has been away.
#[derive(Default)]
pub(crate) struct Patience(Option<Instant>);

impl Patience {
    /// Gives the error back when waiting does not help, or has not helped for long enough.
    pub(crate) fn bear(&mut self, error: CliError) -> Result<(), CliError> {
        let since = *self.0.get_or_insert_with(Instant::now);
        if is_passing(&error) && since.elapsed() <= AWAY_MAX { Ok(()) } else { Err(error) }
    }

    pub(crate) async fn pause(&self) {
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

async fn watch_once(
    session: &mut Session,
    job_id: &str,
    after: &mut u64,
    seen: &mut impl FnMut(Item) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let request = v1::WatchJobRequest { job_id: job_id.to_owned(), after: *after };
    let response = session.client.watch_job(request).await;
    let mut stream = session.answer(response)?;
    while let Some(message) = stream.message().await.map_err(|status| session.broken(&status))? {
        match message.item {
            Some(Item::Event(event)) => {
                let number = event.n;
                seen(Item::Event(event))?;
                *after = number;
            }
            Some(progress @ Item::Progress(_)) => seen(progress)?,
            None => {}
        }
    }
    Ok(())
}

async fn final_state(session: &mut Session, job_id: &str) -> Result<Option<v1::Job>, CliError> {
    let response = session.client.get_job(v1::GetJobRequest { job_id: job_id.to_owned() }).await;
    let job = session.answer(response)?;
    Ok(job.ended_at_ms.is_some().then_some(job))
}

const fn is_passing(error: &CliError) -> bool {
    matches!(error, CliError::Unreachable { .. } | CliError::Busy { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_with_time_and_at_once_where_it_does_not_help() {
        let busy = || CliError::Busy { message: "later".to_owned(), again_in: None };
        let mut patience = Patience::default();
        assert!(patience.bear(busy()).is_ok());
        assert!(patience.bear(CliError::not_found("job", "never".to_owned())).is_err());
        let long_ago = Instant::now().checked_sub(AWAY_MAX + RETRY_AFTER);
        assert!(Patience(long_ago).bear(busy()).is_err());
    }
}
