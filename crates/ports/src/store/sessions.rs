//! Edges and worker sessions.
//!
//! An edge holds one renewed lease. A session is bound to one edge; each attach raises its epoch, so a statement with an
//! older epoch no longer applies.

use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::clock_guard::SKEW_MAX;
use lockgate_core::ids::{EdgeId, SessionId};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;

use super::StoreError;

/// A lease that lasts longer than its time by more than this was written while the Store's clock was ahead. Its holder
/// corrects it with the next renewal; if the holder is gone, the lease must not block others until that time. Longer than
/// any lease of an edge lasts.
pub const LEASE_AHEAD_MAX: Duration = SKEW_MAX;

#[async_trait]
pub trait Sessions: Send + Sync {
    /// Creates or renews the edge's lease, by the Store's clock. False if the edge was closed: it must stop.
    async fn renew_edge(&self, edge: &EdgeId, ttl: Duration) -> Result<bool, StoreError>;

    /// Edges that are not closed, in the order of their ids.
    async fn open_edges(&self) -> Result<Vec<EdgeRow>, StoreError>;

    /// Closes those of these edges whose lease is unchanged since it was seen, and expired at least `grace` ago by the
    /// Store's clock, or lies further ahead of it than [`LEASE_AHEAD_MAX`]. Returns their ids.
    async fn close_edges(&self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StoreError>;

    /// Binds a session to an edge and opens it, or returns why not; then nothing is changed.
    async fn attach(
        &self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StoreError>;

    /// Marks sessions that an operator drains, wherever they attach from now on. Sessions that are not open are ignored.
    async fn send_away(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// Closes a session that still has this epoch. False if it was attached again or closed before.
    async fn close_session(&self, session: &SessionId, epoch: u64) -> Result<bool, StoreError>;

    /// Open sessions, without those that cannot be decoded.
    async fn open_sessions(&self) -> Result<Vec<SessionRow>, StoreError>;

    /// Closed sessions that jobs are still bound to, without those that cannot be decoded.
    async fn closed_holding(&self) -> Result<Vec<SessionRow>, StoreError>;
}

/// A session that has attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedSession {
    /// 1 for a new session, and one more with each attach.
    pub epoch: u64,
    /// Whether an operator drains it.
    pub sent_away: bool,
}

/// Why a session did not attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unattached {
    /// C-2: it belongs to another owner.
    #[error("the session belongs to a worker with another credential")]
    AnotherOwner,
    /// Another process closed the edge, so the session would have no gateway.
    #[error("the edge was closed")]
    EdgeClosed,
}

/// An edge with its lease when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    pub edge: EdgeId,
    /// By the Store's clock; only to be compared with a later reading.
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub session: SessionId,
    pub epoch: u64,
    pub edge: EdgeId,
    /// Whether the edge was closed, so that the session has no gateway any more.
    pub edge_closed: bool,
    pub profile: WorkerProfile,
    /// Whether an operator drains it.
    pub sent_away: bool,
}
