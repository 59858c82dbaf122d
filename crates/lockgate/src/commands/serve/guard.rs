//! The guard of messages, shared by all processes over Redis.

use async_trait::async_trait;
use lockgate_nats::{Guard, GuardAway, Standing};
use lockgate_ports::CountersAway;
use lockgate_redis::{Mark, RedisGuard};

pub(super) struct SharedGuard(pub(super) RedisGuard);

#[async_trait]
impl Guard for SharedGuard {
    async fn begin(&self, ids: &[String]) -> Result<Vec<Standing>, GuardAway> {
        let marks = self.0.begin(ids).await.map_err(away)?;
        let standing = |mark| match mark {
            Mark::Ours => Standing::Mine,
            Mark::InHand => Standing::InFlight,
            Mark::Done => Standing::Processed,
        };
        Ok(marks.into_iter().map(standing).collect())
    }

    async fn finish(&self, ids: &[String]) -> Result<(), GuardAway> {
        self.0.finish(ids).await.map_err(away)
    }

    async fn release(&self, ids: &[String]) -> Result<(), GuardAway> {
        self.0.release(ids).await.map_err(away)
    }
}

fn away(CountersAway(why): CountersAway) -> GuardAway {
    GuardAway(why.to_string())
}
