//! Edges, sessions and leases.

use std::time::Duration;

use lockgate_core::ids::{EdgeId, SessionId};
use lockgate_core::time::Timestamp;
use lockgate_core::worker::WorkerProfile;

use super::data::{Data, Lease, StoredEdge, StoredSession};
use lockgate_ports::store::{AttachedSession, EdgeRow, LEASE_AHEAD_MAX, LeaseRow, SessionRow, Unattached};

impl Data {
    pub(super) fn renew_edge(&mut self, edge: &EdgeId, expires_at: Timestamp) -> bool {
        let row = self.edges.entry(edge.clone()).or_insert(StoredEdge { expires_at, closed_at: None });
        if row.closed_at.is_none() {
            row.expires_at = expires_at;
        }
        row.closed_at.is_none()
    }

    pub(super) fn open_edges(&self) -> Vec<EdgeRow> {
        let open = self.edges.iter().filter(|(_, row)| row.closed_at.is_none());
        open.map(|(edge, row)| EdgeRow { edge: edge.clone(), expires_at: row.expires_at }).collect()
    }

    pub(super) fn close_edges(&mut self, seen: &[EdgeRow], grace: Duration, now: Timestamp) -> Vec<EdgeId> {
        let mut closed = Vec::new();
        for EdgeRow { edge, expires_at } in seen {
            let row = self.edges.get_mut(edge).filter(|row| row.closed_at.is_none() && row.expires_at == *expires_at);
            if let Some(row) = row.filter(|row| row.expires_at + grace <= now || row.expires_at > now + LEASE_AHEAD_MAX) {
                row.closed_at = Some(now);
                closed.push(edge.clone());
            }
        }
        closed.sort_unstable();
        closed
    }

    pub(super) fn attach(
        &mut self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
        now: Timestamp,
    ) -> Result<AttachedSession, Unattached> {
        // An edge that never renews must still be found and closed one day.
        let row = self.edges.entry(edge.clone()).or_insert(StoredEdge { expires_at: now, closed_at: None });
        if row.closed_at.is_some() {
            return Err(Unattached::EdgeClosed);
        }
        let before = self.sessions.get(session);
        if before.is_some_and(|row| !profile.may_follow(&row.profile)) {
            return Err(Unattached::AnotherOwner);
        }
        let (epoch, sent_away) = before.map_or((1, false), |row| (row.epoch + 1, row.sent_away));
        let row = StoredSession { epoch, edge: edge.clone(), profile: profile.clone(), closed_at: None, sent_away };
        self.sessions.insert(session.clone(), row);
        Ok(AttachedSession { epoch, sent_away })
    }

    pub(super) fn send_away(&mut self, sessions: &[SessionId]) {
        for session in sessions {
            if let Some(row) = self.sessions.get_mut(session).filter(|row| row.closed_at.is_none()) {
                row.sent_away = true;
            }
        }
    }

    pub(super) fn close_session(&mut self, session: &SessionId, epoch: u64, now: Timestamp) -> bool {
        let row = self.sessions.get_mut(session).filter(|row| row.epoch == epoch && row.closed_at.is_none());
        row.map(|row| row.closed_at = Some(now)).is_some()
    }

    pub(super) fn open_sessions(&self) -> Vec<SessionRow> {
        self.session_rows(|_, row| row.closed_at.is_none())
    }

    pub(super) fn closed_holding(&self) -> Vec<SessionRow> {
        self.session_rows(|session, row| row.closed_at.is_some() && self.holds_jobs(session))
    }

    fn session_rows(&self, wanted: impl Fn(&SessionId, &StoredSession) -> bool) -> Vec<SessionRow> {
        let rows = self.sessions.iter().filter(|(session, row)| wanted(session, row));
        rows.map(|(session, row)| SessionRow {
            session: session.clone(),
            epoch: row.epoch,
            edge: row.edge.clone(),
            edge_closed: self.edges.get(&row.edge).is_some_and(|edge| edge.closed_at.is_some()),
            profile: row.profile.clone(),
            sent_away: row.sent_away,
        })
        .collect()
    }

    pub(super) fn acquire(&mut self, name: &str, holder: &str, ttl: Duration, now: Timestamp) -> Option<u64> {
        let row =
            self.leases.entry(name.to_owned()).or_insert(Lease { holder: None, epoch: 0, expires_at: Timestamp::ZERO });
        if row.holder.as_deref() != Some(holder) {
            let ahead = now + ttl + LEASE_AHEAD_MAX;
            if row.holder.is_some() && row.expires_at > now && row.expires_at <= ahead {
                return None;
            }
            row.holder = Some(holder.to_owned());
            row.epoch += 1;
        }
        row.expires_at = now + ttl;
        Some(row.epoch)
    }

    pub(super) fn release(&mut self, name: &str, holder: &str) {
        if let Some(row) = self.leases.get_mut(name).filter(|row| row.holder.as_deref() == Some(holder)) {
            row.holder = None;
        }
    }

    pub(super) fn leases(&self, now: Timestamp) -> Vec<LeaseRow> {
        let row = |(name, lease): (&String, &Lease)| LeaseRow {
            name: name.clone(),
            holder: lease.holder.clone(),
            epoch: lease.epoch,
            left_ms: lease.expires_at.as_millis() - now.as_millis(),
        };
        self.leases.iter().map(row).collect()
    }
}
