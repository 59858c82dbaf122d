//! Edges of other processes, and since when their leases are not renewed.

use std::time::Duration;

use lockgate_core::ids::EdgeId;
use lockgate_core::time::Timestamp;
use lockgate_ports::EdgeRow;

use crate::looks::Looks;

/// A lease that is renewed is another one.
#[derive(Default)]
pub(crate) struct WatchedEdges(Looks<(EdgeId, Timestamp)>);

impl WatchedEdges {
    /// Takes a look. Those whose lease has been the same in every look for `span`; see [`Looks::ages`] for `apart`.
    pub(crate) fn still(&self, rows: Vec<EdgeRow>, apart: Duration, span: Duration) -> Vec<EdgeRow> {
        let ages = self.0.ages(rows.iter().map(|row| (row.edge.clone(), row.expires_at)), apart);
        rows.into_iter().zip(ages).filter(|(_, age)| age.unwrap_or_default() >= span).map(|(row, _)| row).collect()
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

    async fn looks(watched: &WatchedEdges, seconds: &[u64], rows: &[EdgeRow]) -> Vec<EdgeRow> {
        let mut still = Vec::new();
        for second in seconds {
            tokio::time::advance(Duration::from_secs(*second)).await;
            still = watched.still(rows.to_vec(), APART, SPAN);
        }
        still
    }

    #[tokio::test(start_paused = true)]
    async fn an_edge_is_still_when_nobody_renewed_it_for_long_enough() {
        let watched = WatchedEdges::default();
        assert_eq!(looks(&watched, &[0, 2, 2], &[row("a", 1), row("b", 1)]).await, []);
        assert_eq!(looks(&watched, &[2], &[row("a", 2), row("b", 1)]).await, [row("b", 1)]);
        assert_eq!(looks(&watched, &[2], &[row("a", 2), row("b", 1)]).await, [row("b", 1)]);
    }
}
