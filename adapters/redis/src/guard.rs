//! Which messages are in hand and which are done, for all processes: it saves the work of taking one twice.

use std::time::Duration;

use lockgate_ports::CountersAway;
use redis::{ExistenceCheck, Pipeline, SetExpiry, SetOptions};

use crate::counters::{Link, Names};
use crate::error::ConnectError;
use crate::options::Options;
use crate::way::Way;

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nobody had it: it is the caller's from now on.
    Ours,
    InHand,
    Done,
}

/// How long marks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLives {
    pub in_hand: Duration,
    pub done: Duration,
}

pub struct RedisGuard {
    link: Link,
    names: Names,
    lives: MarkLives,
}

impl RedisGuard {
    /// A server that is away is no error: messages are taken without a guard until it comes.
    pub async fn connect(options: &Options, lives: MarkLives) -> Result<Self, ConnectError> {
        let names = Names::of(&options.installation)?;
        Ok(Self { link: Link::connect(Way::of(options)?, options.response_timeout).await, names, lives })
    }

    /// Takes every message that nobody has and nobody is done with. Answers in their order.
    pub async fn begin(&self, ids: &[String]) -> Result<Vec<Mark>, CountersAway> {
        let taken = SetOptions::default().conditional_set(ExistenceCheck::NX).with_expiration(expiry(self.lives.in_hand));
        let mut pipe = redis::pipe();
        for id in ids {
            let [done, in_hand] = self.names.message(id);
            // The mark of those in hand first: whoever is done sets theirs before they take that one away.
            pipe.set_options(in_hand, 1, taken.clone()).exists(done);
        }
        let answers: Vec<(Option<String>, bool)> = self.run(pipe, ids).await?;
        let mark = |(taken, done)| match (taken, done) {
            (_, true) => Mark::Done,
            (Some(_), false) => Mark::Ours,
            (None, false) => Mark::InHand,
        };
        Ok(answers.into_iter().map(mark).collect())
    }

    pub async fn finish(&self, ids: &[String]) -> Result<(), CountersAway> {
        let kept = SetOptions::default().with_expiration(expiry(self.lives.done));
        let mut pipe = redis::pipe();
        for id in ids {
            let [done, in_hand] = self.names.message(id);
            pipe.set_options(done, 1, kept.clone()).ignore().del(in_hand).ignore();
        }
        self.run(pipe, ids).await
    }

    /// No longer in hand, for others to take.
    pub async fn release(&self, ids: &[String]) -> Result<(), CountersAway> {
        let mut pipe = redis::pipe();
        for id in ids {
            let [_, in_hand] = self.names.message(id);
            pipe.del(in_hand).ignore();
        }
        self.run(pipe, ids).await
    }

    async fn run<T: redis::FromRedisValue + Default>(&self, pipe: Pipeline, ids: &[String]) -> Result<T, CountersAway> {
        if ids.is_empty() {
            return Ok(T::default());
        }
        self.link.run(|mut connection| async move { pipe.query_async(&mut connection).await }).await
    }
}

fn expiry(span: Duration) -> SetExpiry {
    SetExpiry::PX(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
