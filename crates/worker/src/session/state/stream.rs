//! The sending half of a session: one stream at a time, numbered, so that an older stream sends nothing more.

use std::task::{Context, Poll};
use std::time::Duration;

use lockgate_contract::Load;
use lockgate_proto::v1::{Beat, Hello, WorkerMessage};
use tokio::time::Instant;

use super::{LockedState, SessionState};
use crate::session::uplink::StreamPhase;
use lockgate_tls::grpc::BearerChannel;

/// A result without an answer for this long is sent again on the same stream.
const RESEND_AFTER: Duration = Duration::from_secs(5);

impl SessionState {
    pub(crate) fn channel(&self) -> Option<BearerChannel> {
        self.state.lock().channel.clone()
    }

    pub(crate) fn connected(&self, channel: BearerChannel) {
        self.state.lock().channel = Some(channel);
    }

    /// Begins a new stream and returns its number.
    pub(crate) fn open_stream(&self) -> u64 {
        let mut state = self.state.lock();
        state.stream += 1;
        state.phase = StreamPhase::Greeting;
        state.stream
    }

    /// The server welcomed the session: everything unacknowledged is sent again.
    pub(crate) fn welcomed(&self) {
        {
            let mut state = self.state.lock();
            let LockedState { held, outbox, draining, dismissed, phase, .. } = &mut *state;
            outbox.rewind(held, *draining);
            *dismissed = false;
            *phase = StreamPhase::Open;
        }
        self.outgoing.wake();
    }

    pub(crate) fn close_stream(&self) {
        self.state.lock().phase = StreamPhase::Away;
        self.outgoing.wake();
    }

    /// Sends a beat, and repeats unanswered results, because the server may have failed to store them. Beats of different
    /// workers are not in step, so neither are the repeats.
    pub(crate) fn beat(&self, number: u64) {
        {
            let LockedState { held, outbox, busy, slots, load, .. } = &mut *self.state.lock();
            outbox.push_beat(Beat {
                number,
                active_jobs: u32::try_from(*busy).unwrap_or(u32::MAX),
                cpu_load: load.cpu,
                gpu_utilization: load.gpu,
                memory_load: load.memory,
                slots: u32::try_from(*slots).ok(),
                ..Beat::default()
            });
            if let Some(then) = Instant::now().checked_sub(RESEND_AFTER) {
                outbox.push_results(held.unanswered_since(then));
            }
        }
        self.outgoing.wake();
        self.beaten.notify_one();
    }

    /// Completes after the next beat.
    pub(crate) async fn beaten(&self) {
        self.beaten.notified().await;
    }

    /// Sets the load that the beats report from now on.
    pub(crate) fn measured(&self, load: Load) {
        self.state.lock().load = load;
    }

    pub(crate) fn poll_outgoing(&self, stream: u64, cx: &mut Context<'_>) -> Poll<Option<WorkerMessage>> {
        let mut state = self.state.lock();
        if state.stream != stream {
            return Poll::Ready(None);
        }
        // After the check, because an old stream must not replace the waker of the new one.
        self.outgoing.register(cx.waker());
        let LockedState { held, outbox, phase, closing, slots, .. } = &mut *state;
        match phase {
            StreamPhase::Away => Poll::Ready(None),
            StreamPhase::Greeted => Poll::Pending,
            StreamPhase::Greeting => {
                *phase = StreamPhase::Greeted;
                let (inventory, highest_assignment) = (held.inventory(), held.highest());
                let slots = u32::try_from(*slots).unwrap_or(u32::MAX);
                let hello = Hello { inventory, highest_assignment, slots, ..self.profile.clone() };
                Poll::Ready(Some(WorkerMessage { hello: Some(hello), ..WorkerMessage::default() }))
            }
            StreamPhase::Open => match outbox.next_message(held) {
                None if *closing => Poll::Ready(None),
                None => Poll::Pending,
                message => Poll::Ready(message),
            },
        }
    }
}
