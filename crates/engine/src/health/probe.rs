//! Asks the Store how it is: one question at a time, however many want to know, and no longer than a person would wait.

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::{LeaseRow, StoreError};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::Inner;

/// A Store that takes longer hangs. Below the deadline of the Store's own calls, which end as if it had refused.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
/// An answer is good for so long: a question writes and waits for the disk, so many askers share one.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// Without a caller who asks, the Store is asked this often: new jobs are refused while it is known to be damaged, and a fault of it is
/// better known before a client meets it.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// The Store is asked this often what pins it. What counts is minutes.
const LOOK_FOR_PINS_EVERY: Duration = Duration::from_secs(15);
/// Longest wait of one who asks.
const PATIENCE: Duration = Duration::from_secs(2);

/// How the Store is.
#[derive(Clone, Debug)]
pub enum StoreState {
    /// Not asked yet.
    Unknown,
    /// It reads and writes.
    Answers,
    /// It takes questions and does not answer them.
    Hangs,
    Refuses(StoreError),
}

impl StoreState {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Answers => "answers",
            Self::Hangs => "hanging",
            Self::Refuses(StoreError::Full(_)) => "full",
            Self::Refuses(StoreError::Corrupt(_)) => "damaged",
            Self::Refuses(StoreError::Unavailable(_) | StoreError::UnknownOutcome(_) | StoreError::Refused(_)) => "refusing",
        }
    }
}

/// What the latest question found.
#[derive(Clone, Debug)]
pub(super) struct ProbeResult {
    pub(super) state: StoreState,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    /// Leases of the processes that share the Store.
    pub(super) leases: Arc<[LeaseRow]>,
}

pub(super) struct StoreProbe {
    asked: Notify,
    seen: watch::Sender<ProbeResult>,
}

impl Default for StoreProbe {
    fn default() -> Self {
        let now = Instant::now();
        let seen = ProbeResult { state: StoreState::Unknown, began: now, ended: now, leases: Arc::new([]) };
        Self { asked: Notify::new(), seen: watch::Sender::new(seen) }
    }
}

impl StoreProbe {
    /// What is known of the Store, asked for if that is old. Answers within two seconds whatever the Store does.
    pub(super) async fn look(&self) -> ProbeResult {
        let mut seen = self.seen.subscribe();
        let now = Instant::now();
        let is_good = |seen: &ProbeResult| {
            !matches!(seen.state, StoreState::Unknown) && (seen.ended + GOOD_FOR >= now || seen.is_hanging_still())
        };
        if !is_good(&seen.borrow_and_update()) {
            self.asked.notify_one();
            // What a question found that was on its way already is new enough.
            let _ = tokio::time::timeout(PATIENCE, seen.changed()).await;
        }
        seen.borrow().clone()
    }

    /// What the latest question found, however old that is.
    pub(super) fn known(&self) -> ProbeResult {
        self.seen.borrow().clone()
    }

    fn tell(&self, seen: ProbeResult) {
        self.seen.send_replace(seen);
    }
}

impl ProbeResult {
    /// The question is still out: asking again could only pile up.
    fn is_hanging_still(&self) -> bool {
        matches!(self.state, StoreState::Hangs) && self.began == self.ended
    }

    /// How long the Store took, or has been taking.
    pub(super) fn took(&self) -> Duration {
        if self.is_hanging_still() { self.began.elapsed() } else { self.ended.duration_since(self.began) }
    }
}

/// Asks at once, whenever a caller wants to know, and every few seconds, until `stop`.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut looked_for_pins: Option<Instant> = None;
    loop {
        let ask = async {
            inner.ask_store().await;
            if looked_for_pins.is_none_or(|at| at.elapsed() >= LOOK_FOR_PINS_EVERY) {
                looked_for_pins = Some(Instant::now());
                inner.look_for_pins().await;
            }
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = ask => {}
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = inner.watch.probe.asked.notified() => {}
            () = tokio::time::sleep(ASK_EVERY) => {}
        }
    }
}

impl Inner {
    async fn ask_store(&self) {
        let began = Instant::now();
        let known = self.watch.probe.seen.borrow().leases.clone();
        let question = self.question();
        tokio::pin!(question);
        let answer = match tokio::time::timeout(ANSWER_WITHIN, &mut question).await {
            Ok(answer) => answer,
            Err(_) => {
                self.watch.probe.tell(ProbeResult { state: StoreState::Hangs, began, ended: began, leases: known.clone() });
                question.await
            }
        };
        let ended = Instant::now();
        let late = ended.duration_since(began) >= ANSWER_WITHIN;
        let (state, leases) = match answer {
            Ok(leases) => (StoreState::Answers, leases.into()),
            // The Store's own deadline ended the call: that is how a hang looks from here.
            Err(_) if late => (StoreState::Hangs, known),
            Err(error) => (StoreState::Refuses(error), known),
        };
        self.watch.probe.tell(ProbeResult { state, began, ended, leases });
    }

    /// A Store that does not answer is told of by the question itself.
    async fn look_for_pins(&self) {
        if !matches!(self.watch.probe.known().state, StoreState::Answers) {
            return;
        }
        match tokio::time::timeout(ANSWER_WITHIN, self.ports.store.pinned()).await {
            Ok(Ok(pinned)) => {
                self.metrics.health.pinned(pinned.as_ref());
                *self.watch.pinned.lock() = pinned;
            }
            Ok(Err(error)) => tracing::debug!(%error, "the Store does not say what pins it"),
            Err(_) => tracing::debug!("the Store did not say in time what pins it"),
        }
    }

    async fn question(&self) -> Result<Vec<LeaseRow>, StoreError> {
        self.ports.store.check().await?;
        // A process that is alone leads everything and writes no leases.
        if self.settings.exclusive_store { Ok(Vec::new()) } else { self.ports.store.leases().await }
    }
}
