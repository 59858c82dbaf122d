//! Marks which messages are in hand and which are processed, for all processes. It saves work; the Store prevents doubles
//! without it.

use std::time::Duration;

use lockgate_ports::CountersAway;
use redis::{Pipeline, SetExpiry, SetOptions, cmd};

use crate::counters::{CounterServer, KeyNames};
use crate::error::ConnectError;
use crate::options::Options;
use crate::server_client::ServerClient;

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardMark {
    /// No process had the message: the caller has it now.
    Ours,
    InHand,
    Done,
}

/// Check and mark in one script: a mark set after the message was processed would remain, and claim that it is still in
/// hand.
const BEGIN: &str = include_str!("../scripts/counters/begin.lua");

/// How long marks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLives {
    pub in_hand: Duration,
    pub done: Duration,
}

pub struct RedisGuard {
    link: CounterServer,
    names: KeyNames,
    lives: MarkLives,
}

impl RedisGuard {
    /// An unreachable server is no error here: messages are processed without marks until it answers.
    pub async fn connect(options: &Options, lives: MarkLives) -> Result<Self, ConnectError> {
        let names = KeyNames::of(&options.installation)?;
        Ok(Self { link: CounterServer::connect(ServerClient::of(options)?, options.response_timeout).await, names, lives })
    }

    /// Marks every message that is neither in hand nor processed. Answers in the order of `ids`.
    pub async fn begin(&self, ids: &[String]) -> Result<Vec<GuardMark>, CountersAway> {
        let mut pipe = redis::pipe();
        for id in ids {
            let [done, in_hand] = self.names.message(id);
            let mut begin = cmd("EVAL");
            begin.arg(BEGIN).arg(2).arg(done).arg(in_hand).arg(millis(self.lives.in_hand));
            pipe.add_command(begin);
        }
        let answers: Vec<u8> = self.run(pipe, ids).await?;
        let mark = |answer| match answer {
            0 => GuardMark::Done,
            1 => GuardMark::Ours,
            _ => GuardMark::InHand,
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

    /// Removes the marks "in hand", so that other processes can take the messages.
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
    SetExpiry::PX(millis(span))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
