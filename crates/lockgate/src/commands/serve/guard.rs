//! The guard of messages, shared by all processes over Redis.

use async_trait::async_trait;
use lockgate_nats::{DuplicateGuard, GuardAway, MessageStanding};
use lockgate_ports::CountersAway;
use lockgate_redis::{GuardMark, RedisGuard};

pub(super) struct SharedGuard(pub(super) RedisGuard);

#[async_trait]
impl DuplicateGuard for SharedGuard {
    async fn begin(&self, ids: &[String]) -> Result<Vec<MessageStanding>, GuardAway> {
        let marks = self.0.begin(ids).await.map_err(away)?;
        let standing = |mark| match mark {
            GuardMark::Ours => MessageStanding::Mine,
            GuardMark::InHand => MessageStanding::InFlight,
            GuardMark::Done => MessageStanding::Processed,
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
