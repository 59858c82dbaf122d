//! Writes edges, sessions and leases.

use std::time::Duration;

use lockgate_core::ids::{EdgeId, SessionId};
use lockgate_core::worker::WorkerProfile;
use lockgate_ports::store::LEASE_AHEAD_MAX;
use lockgate_ports::{AttachedSession, EdgeRow, Unattached};
use rusqlite::params;

use super::WriteTx;
use crate::error::StatementError;

impl WriteTx<'_> {
    pub(crate) fn renew_edge(&mut self, edge: &EdgeId, ttl: Duration) -> Result<bool, StatementError> {
        let expires_at = (self.now + ttl).as_millis();
        let mut renew = self.conn.prepare_cached(include_str!("../../queries/renew_edge.sql"))?;
        Ok(renew.execute(params![edge.as_str(), expires_at])? == 1)
    }

    pub(crate) fn close_edges(&mut self, seen: &[EdgeRow], grace: Duration) -> Result<Vec<EdgeId>, StatementError> {
        let mut close = self.conn.prepare_cached(include_str!("../../queries/close_edge.sql"))?;
        let (now, over) = (self.now.as_millis(), (self.now - grace).as_millis());
        let ahead = (self.now + LEASE_AHEAD_MAX).as_millis();
        let mut closed = Vec::new();
        for EdgeRow { edge, expires_at } in seen {
            if close.execute(params![edge.as_str(), expires_at.as_millis(), now, over, ahead])? == 1 {
                closed.push(edge.clone());
            }
        }
        closed.sort_unstable();
        Ok(closed)
    }

    pub(crate) fn attach(
        &mut self,
        session: &SessionId,
        edge: &EdgeId,
        profile: &WorkerProfile,
    ) -> Result<Result<AttachedSession, Unattached>, StatementError> {
        // Inserts the edge, so that one which never renews its lease is still found and closed.
        let mut known =
            self.conn.prepare_cached("INSERT INTO edges (edge, expires_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        known.execute(params![edge.as_str(), self.now.as_millis()])?;
        let mut closed = self.conn.prepare_cached("SELECT 1 FROM edges WHERE edge = ?1 AND closed_at IS NOT NULL")?;
        if closed.exists([edge.as_str()])? {
            return Ok(Err(Unattached::EdgeClosed));
        }
        let profile = serde_json::to_string(profile)?;
        let mut attach = self.conn.prepare_cached(include_str!("../../queries/attach.sql"))?;
        let mut rows = attach.query(params![session.as_str(), edge.as_str(), profile])?;
        let mut attached = Err(Unattached::AnotherOwner);
        // All rows are stepped through, as RETURNING requires.
        while let Some(row) = rows.next()? {
            attached = Ok(AttachedSession { epoch: row.get::<_, i64>(0)?.unsigned_abs(), sent_away: row.get(1)? });
        }
        drop(rows);
        drop(attach);
        self.session_changed(session);
        Ok(attached)
    }

    pub(crate) fn send_away(&mut self, sessions: &[SessionId]) -> Result<(), StatementError> {
        let sql = "UPDATE sessions SET sent_away_at = ?2 WHERE session = ?1 AND closed_at IS NULL";
        let mut send = self.conn.prepare_cached(sql)?;
        for session in sessions {
            send.execute(params![session.as_str(), self.now.as_millis()])?;
        }
        Ok(())
    }

    pub(crate) fn keep_tries(&mut self, text: &str) -> Result<(), StatementError> {
        let sql = "INSERT INTO placing_tries (only, tries) VALUES (1, ?1)
            ON CONFLICT (only) DO UPDATE SET tries = excluded.tries";
        self.conn.prepare_cached(sql)?.execute(params![text])?;
        Ok(())
    }

    pub(crate) fn close_session(&mut self, session: &SessionId, epoch: u64) -> Result<bool, StatementError> {
        let sql = "UPDATE sessions SET closed_at = ?3 WHERE session = ?1 AND epoch = ?2 AND closed_at IS NULL";
        let epoch = i64::try_from(epoch).unwrap_or(i64::MAX);
        let closed = self.conn.prepare_cached(sql)?.execute(params![session.as_str(), epoch, self.now.as_millis()])?;
        self.session_changed(session);
        Ok(closed == 1)
    }

    pub(crate) fn acquire(&mut self, name: &str, holder: &str, ttl: Duration) -> Result<Option<u64>, StatementError> {
        let until = self.now + ttl;
        let ahead = (until + LEASE_AHEAD_MAX).as_millis();
        let params = params![name, holder, self.now.as_millis(), until.as_millis(), ahead];
        let epoch = self.number(include_str!("../../queries/acquire_lease.sql"), params)?;
        Ok(epoch.map(i64::unsigned_abs))
    }

    pub(crate) fn release(&mut self, name: &str, holder: &str) -> Result<(), StatementError> {
        let sql = "UPDATE leases SET holder = NULL WHERE name = ?1 AND holder = ?2";
        self.conn.prepare_cached(sql)?.execute([name, holder])?;
        Ok(())
    }
}
