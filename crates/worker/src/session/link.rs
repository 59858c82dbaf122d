//! Maintains the single stream to the server: attaches, listens, beats, and attaches again when the stream ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use lockgate_proto::v1::{ServerMessage, Welcome};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};
use tonic::Status;
use tonic::transport::Endpoint;

use super::backoff::{self, Backoff};
use super::dial::{ANSWER_WITHIN, Dial, Inbound, Over, late};
use super::execute::launch;
use super::lease::{StopAt, stop_after};
use super::state::SessionState;
use crate::error::WorkerError;

/// The beat interval if the server names none.
const BEAT_EVERY_DEFAULT: Duration = Duration::from_secs(3);
const LOST_AFTER_DEFAULT: Duration = Duration::from_secs(10);
/// The pause between two tries to attach while attempts are about to be stopped because no server answers. A server restart
/// that ends this long before the lease does stops nothing.
const HURRY: Duration = Duration::from_secs(1);

pub(crate) struct Connector {
    pub session_state: Arc<SessionState>,
    pub addresses: Vec<Endpoint>,
    pub dial: Arc<dyn Dial>,
    pub stop_at: watch::Sender<StopAt>,
}

impl Connector {
    /// Ends when the session closes, or when the credential is refused, because results would be refused too. Any other
    /// refusal ends it only before the first welcome: later it more likely comes from a server in the middle of a change,
    /// and must not end running work.
    pub(crate) async fn keep(self) -> Result<(), WorkerError> {
        let mut backoff = Backoff::new();
        let mut known = false;
        for endpoint in self.addresses.iter().cycle() {
            let began = Instant::now();
            let over = self.attach(endpoint, &mut known).await;
            self.session_state.close_stream();
            if self.session_state.is_closing() {
                return Ok(());
            }
            match over {
                Over::Barred(status) => return Err(WorkerError::Refused(Box::new(status))),
                Over::Refused(status) if !known => return Err(WorkerError::Refused(Box::new(status))),
                Over::Refused(status) => {
                    tracing::warn!(address = %endpoint.uri(), %status, "the server refuses this worker");
                }
                Over::Lost(why) => tracing::warn!(address = %endpoint.uri(), why, "not attached to the server"),
            }
            if began.elapsed() > backoff::LONGEST + ANSWER_WITHIN {
                backoff.reset();
            }
            sleep(backoff.next(self.longest_wait())).await;
        }
        Err(WorkerError::Setup("no server address".to_owned()))
    }

    /// Reattaching before the lease ends saves the attempts that would have to stop then.
    fn longest_wait(&self) -> Duration {
        let lease_lasts = self.stop_at.borrow().is_some_and(|at| Instant::now() < at);
        if lease_lasts && self.session_state.holds_leased() { HURRY } else { backoff::LONGEST }
    }

    async fn attach(&self, endpoint: &Endpoint, known: &mut bool) -> Over {
        match self.greet(endpoint).await {
            Ok((mut inbound, welcome, greeted_at)) => {
                *known = true;
                tracing::info!(address = %endpoint.uri(), epoch = welcome.epoch, server = %welcome.server_version, "attached");
                self.converse(&mut inbound, &welcome, greeted_at).await
            }
            Err(over) => over,
        }
    }

    async fn greet(&self, endpoint: &Endpoint) -> Result<(Inbound, Welcome, Instant), Over> {
        let (mut inbound, greeted_at) = self.dial.open(&self.session_state, endpoint).await?;
        let first = timeout(ANSWER_WITHIN, inbound.next()).await.map_err(|_| late())?.transpose()?;
        let Some(mut message) = first else { return Err(Over::Lost("the server ended the stream".to_owned())) };
        let Some(welcome) = message.welcome.take() else {
            return Err(Over::Lost("the server's first message is no welcome".to_owned()));
        };
        self.session_state.welcomed();
        self.take_in(message);
        Ok((inbound, welcome, greeted_at))
    }

    async fn converse(
        &self,
        inbound: &mut (impl Stream<Item = Result<ServerMessage, Status>> + Unpin),
        welcome: &Welcome,
        greeted_at: Instant,
    ) -> Over {
        let beat_every = millis_or(welcome.beat_every_ms, BEAT_EVERY_DEFAULT);
        let stop_after = stop_after(millis_or(welcome.lost_after_ms, LOST_AFTER_DEFAULT));
        let mut beats = interval_at(Instant::now() + beat_every, beat_every);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unanswered = UnansweredBeats::default();
        self.stop_at.send_replace(Some(greeted_at + stop_after));
        loop {
            tokio::select! {
                biased;
                _ = beats.tick() => self.session_state.beat(unanswered.ask(Instant::now())),
                message = inbound.next() => match message {
                    Some(Ok(message)) => {
                        if let Some(ack) = message.beat_ack
                            && let Some(heard_at) = unanswered.answer(ack.number)
                        {
                            // Other servers count the lease from when they last heard of this server.
                            let spent = Duration::from_millis(ack.lease_age_ms.into());
                            self.stop_at.send_replace(Some(heard_at + stop_after.saturating_sub(spent)));
                        }
                        self.take_in(message);
                    }
                    None => return Over::Lost("the server ended the stream".to_owned()),
                    Some(Err(status)) => return status.into(),
                },
                // The last branch: after a pause of this process the answer may have arrived already and only not been read
                // yet.
                () = unanswered.overdue() => return Over::Lost(format!("a beat was not answered within {ANSWER_WITHIN:?}")),
            }
        }
    }

    fn take_in(&self, message: ServerMessage) {
        launch(&self.session_state, self.session_state.receive(message));
    }
}

/// Unanswered beats, oldest first.
#[derive(Default)]
struct UnansweredBeats {
    last: u64,
    asked: VecDeque<(u64, Instant)>,
}

impl UnansweredBeats {
    fn ask(&mut self, at: Instant) -> u64 {
        self.last += 1;
        self.asked.push_back((self.last, at));
        self.last
    }

    /// Returns when the answered beat was sent: the server cannot have heard it earlier.
    fn answer(&mut self, number: u64) -> Option<Instant> {
        let mut heard_at = None;
        while let Some((_, at)) = self.asked.pop_front_if(|(asked, _)| *asked <= number) {
            heard_at = Some(at);
        }
        heard_at
    }

    async fn overdue(&self) {
        match self.asked.front() {
            Some((_, at)) => sleep_until(*at + ANSWER_WITHIN).await,
            None => std::future::pending().await,
        }
    }
}

fn millis_or(millis: u32, default: Duration) -> Duration {
    if millis == 0 { default } else { Duration::from_millis(millis.into()) }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures_util::stream::poll_fn;
    use lockgate_proto::v1::{BeatAck, Hello};

    use super::*;
    use crate::registry::Registry;
    use crate::session::dial::Grpc;
    use lockgate_tls::grpc::Bearer;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_unanswered_beat_decides() {
        let start = Instant::now();
        let mut beats = UnansweredBeats::default();
        assert_eq!((beats.ask(start), beats.ask(start + Duration::from_secs(3))), (1, 2));
        assert_eq!(beats.answer(1), Some(start));
        assert_eq!(beats.answer(1), None, "a repeated answer is no news");
        beats.overdue().await;
        assert_eq!(start.elapsed(), Duration::from_secs(8));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_waits_to_be_read_is_not_overdue() {
        let session_state = Arc::new(SessionState::new(Hello::default(), Registry::default(), None, Vec::new()));
        let (stop_at, _stops) = watch::channel(None);
        let dial = Arc::new(Grpc { bearer: Bearer::default() });
        let link = Connector { session_state, addresses: Vec::new(), dial, stop_at };
        let beat_every = Duration::from_secs(60);
        // The process is suspended while the answer arrives: it wakes up with both the answer and an expired timeout.
        let awake_at = Instant::now() + beat_every + ANSWER_WITHIN;
        let beat_ack = Some(BeatAck { number: 1, lease_age_ms: 0 });
        let mut answers = [ServerMessage { beat_ack, ..ServerMessage::default() }].into_iter();
        let mut inbound = poll_fn(|_| match Instant::now() < awake_at {
            true => Poll::Pending,
            false => Poll::Ready(answers.next().map(Ok)),
        });
        let welcome = Welcome { beat_every_ms: 60_000, ..Welcome::default() };
        let over = link.converse(&mut inbound, &welcome, Instant::now()).await;
        let Over::Lost(why) = over else { panic!("not a refusal") };
        assert_eq!(why, "the server ended the stream");
    }
}
