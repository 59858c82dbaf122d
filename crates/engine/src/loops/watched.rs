//! Edges of other processes, and since when their leases stand still.
//!
//! A process that was stopped, or cut off from the Store with all the others, finds every lease long over when it comes back. It
//! must see for itself that nobody renews them.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::ids::EdgeId;
use lockgate_core::time::Timestamp;
use lockgate_ports::EdgeRow;
use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct Watched(Mutex<Looks>);

#[derive(Default)]
struct Looks {
    /// Since when each lease was the same in every look.
    same: BTreeMap<(EdgeId, Timestamp), Instant>,
    last: Option<Instant>,
}

impl Watched {
    /// Takes a look. Those whose lease has been the same in every look for `span`. Looks that are more than `apart` from each other
    /// begin anew: nobody watched in between.
    pub(crate) fn still(&self, rows: Vec<EdgeRow>, apart: Duration, span: Duration) -> Vec<EdgeRow> {
        let now = Instant::now();
        let mut looks = self.0.lock();
        let mut before = std::mem::take(&mut looks.same);
        if looks.last.replace(now).is_some_and(|last| now.duration_since(last) > apart) {
            before.clear();
        }
        let mut still = Vec::new();
        for row in rows {
            let key = (row.edge.clone(), row.expires_at);
            let since = before.get(&key).copied().unwrap_or(now);
            if now.duration_since(since) >= span {
                still.push(row);
            }
            looks.same.insert(key, since);
        }
        still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Duration = Duration::from_secs(4);
    const SPAN: Duration = Duration::from_secs(6);

    fn row(edge: &str, expires_at: i64) -> EdgeRow {
        EdgeRow { edge: edge.into(), expires_at: Timestamp::from_millis(expires_at) }
    }

    async fn looks(watched: &Watched, seconds: &[u64], rows: &[EdgeRow]) -> Vec<EdgeRow> {
        let mut still = Vec::new();
        for second in seconds {
            tokio::time::advance(Duration::from_secs(*second)).await;
            still = watched.still(rows.to_vec(), APART, SPAN);
        }
        still
    }

    #[tokio::test(start_paused = true)]
    async fn an_edge_is_still_when_nobody_renewed_it_for_long_enough() {
        let watched = Watched::default();
        assert_eq!(looks(&watched, &[0, 2, 2], &[row("a", 1), row("b", 1)]).await, []);
        assert_eq!(looks(&watched, &[2], &[row("a", 2), row("b", 1)]).await, [row("b", 1)]);
        assert_eq!(looks(&watched, &[2], &[row("a", 2), row("b", 1)]).await, [row("b", 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stood_still_itself_begins_anew() {
        let watched = Watched::default();
        let all = [row("a", 1), row("b", 1)];
        assert_eq!(looks(&watched, &[0, 2, 30], &all).await, []);
        assert_eq!(looks(&watched, &[2, 2], &all).await, []);
        assert_eq!(looks(&watched, &[2], &all).await, all);
    }
}
