//! One look at a server, and what two of them say together.

use std::time::Duration;

use lockgate_api::view;
use lockgate_proto::v1;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::CliError;
use crate::session::CliSession;

pub(super) struct Sample {
    at: Instant,
    queues: view::Queues,
    pools: view::Pools,
    workers: view::Workers,
    health: view::Health,
}

/// What a later look is compared with.
pub(super) struct Mark {
    at: Instant,
    /// Jobs that are known, and those of them that ended.
    known: u64,
    ended: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Picture {
    /// Jobs a second since the look before.
    pub(super) came_per_s: f64,
    pub(super) ended_per_s: f64,
    #[serde(flatten)]
    pub(super) queues: view::Queues,
    #[serde(flatten)]
    pub(super) pools: view::Pools,
    #[serde(flatten)]
    pub(super) workers: view::Workers,
    pub(super) health: view::Health,
}

impl Sample {
    pub(super) async fn take(session: &CliSession) -> Result<Self, CliError> {
        let (mut queues, mut workers) = (session.client.clone(), session.client.clone());
        let (mut pools, mut health) = (session.pools(), session.monitor());
        let (queues, pools, workers, health) = tokio::join!(
            queues.list_queues(v1::ListQueuesRequest {}),
            pools.list_pools(v1::ListPoolsRequest {}),
            workers.list_workers(v1::ListWorkersRequest {}),
            health.get_health(v1::GetHealthRequest {}),
        );
        Ok(Self {
            at: Instant::now(),
            queues: session.answer(queues)?.into(),
            pools: session.answer(pools)?.into(),
            workers: session.answer(workers)?.into(),
            health: session.answer(health)?.into(),
        })
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at, known: self.queues.live + self.queues.ended, ended: self.queues.ended }
    }

    pub(super) fn since(self, before: &Mark) -> Picture {
        let (now, span) = (self.mark(), self.at - before.at);
        Picture {
            came_per_s: rate(before.known, now.known, span),
            ended_per_s: rate(before.ended, now.ended, span),
            queues: self.queues,
            pools: self.pools,
            workers: self.workers,
            health: self.health,
        }
    }
}

/// Old jobs are forgotten now and then, and the count falls: that is no negative rate.
fn rate(before: u64, now: u64, span: Duration) -> f64 {
    now.saturating_sub(before) as f64 / span.as_secs_f64().max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_second_and_never_negative() {
        assert!((rate(100, 150, Duration::from_millis(500)) - 100.0).abs() < 1e-9);
        assert!(rate(150, 100, Duration::from_secs(1)).abs() < f64::EPSILON);
    }
}
