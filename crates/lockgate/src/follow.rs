//! Following jobs to their ends, over server restarts.

use std::time::Duration;

use lockgate_proto::v1;
use tokio::time::Instant;
use v1::watch_job_response::Item;

use crate::error::CliError;
use crate::session::CliSession;

/// How long a server may be unreachable before following gives up. A restart takes a second or two.
const AWAY_MAX: Duration = Duration::from_secs(30);
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Calls `seen` for each event after number `after`, without gaps or doubles, and each progress report, until the job ends.
/// Returns the ended job.
pub(crate) async fn follow(
    session: &mut CliSession,
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

/// Repeats an idempotent call while the server is unreachable or busy.
pub(crate) async fn repeat<T>(
    session: &mut CliSession,
    call: impl AsyncFnMut(&mut CliSession) -> Result<T, CliError>,
) -> Result<T, CliError> {
    repeat_with(Patience::default(), session, call).await
}

pub(crate) async fn repeat_with<T>(
    mut patience: Patience,
    session: &mut CliSession,
    mut call: impl AsyncFnMut(&mut CliSession) -> Result<T, CliError>,
) -> Result<T, CliError> {
    loop {
        match call(session).await {
            Ok(answer) => return Ok(answer),
            Err(error) => patience.bear(error)?,
        }
        patience.pause().await;
    }
}

/// Since when the server has been unreachable or full, and when to ask again.
pub(crate) struct Patience {
    /// How long the server may refuse for lack of room.
    busy_max: Duration,
    since: Option<Instant>,
    /// The pause that the server asked for.
    asked: Option<Duration>,
}

impl Default for Patience {
    fn default() -> Self {
        Self::with_busy(AWAY_MAX)
    }
}

impl Patience {
    /// Tolerates refusals with a retry time for this long.
    pub(crate) const fn with_busy(busy_max: Duration) -> Self {
        Self { busy_max, since: None, asked: None }
    }

    /// Returns the error if waiting does not help, or has not helped for too long.
    pub(crate) fn bear(&mut self, error: CliError) -> Result<(), CliError> {
        let asked = match &error {
            CliError::Busy { again_in, .. } => *again_in,
            _ => None,
        };
        if self.asked.is_some() != asked.is_some() {
            self.since = None;
        }
        self.asked = asked;
        let since = *self.since.get_or_insert_with(Instant::now);
        let limit = if asked.is_some() { self.busy_max } else { AWAY_MAX };
        // If the server asks for a longer pause than is left, waiting would be useless.
        let in_time = since.elapsed().saturating_add(asked.unwrap_or_default()) <= limit;
        if is_passing(&error) && in_time { Ok(()) } else { Err(error) }
    }

    /// Waits as long as the server asked for.
    pub(crate) async fn pause(&self) {
        tokio::time::sleep(self.asked.unwrap_or(RETRY_AFTER)).await;
    }
}

async fn watch_once(
    session: &mut CliSession,
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

async fn final_state(session: &mut CliSession, job_id: &str) -> Result<Option<v1::Job>, CliError> {
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
        assert!(Patience { since: long_ago, ..Patience::default() }.bear(busy()).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_when_to_come_back_is_left_alone_until_then() {
        let told = |seconds| CliError::Busy { message: "no room".to_owned(), again_in: Some(Duration::from_secs(seconds)) };
        let mut patience = Patience::with_busy(Duration::from_secs(60));
        let began = Instant::now();
        for _ in 0..3 {
            patience.bear(told(20)).expect("within the limit");
            patience.pause().await;
        }
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        assert!(patience.bear(told(20)).is_err(), "the limit is reached");
        assert!(Patience::default().bear(told(31)).is_err(), "waiting would be in vain");
        let away = || CliError::Unreachable { server: "s".to_owned(), cause: "gone".to_owned() };
        patience.bear(away()).expect("away since now, busy before");
    }
}
