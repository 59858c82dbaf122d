//! How to reach the database, and how to talk to it.

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::Clock;
use tokio_postgres::Config;

use crate::wire::WireSecurity;

/// Whose clock decides what is due.
#[derive(Clone)]
pub enum StoreTime {
    /// The server's, read inside each statement: every process of an installation sees the same time.
    Server,
    /// A given one, for tests.
    Given(Arc<dyn Clock>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    Serializable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    Cockroach,
}

/// The Store's time where a test sets it, in milliseconds. None: the server's clock.
pub(crate) type Now = Option<i64>;

#[derive(Clone)]
pub struct ConnectOptions {
    /// Parsed from a URL such as `postgres://user@host/database`.
    pub config: Config,
    /// Over which it is reached.
    pub wire: WireSecurity,
    pub store_time: StoreTime,
    /// How long any call may take.
    pub deadline: Duration,
    /// Transactions with changes that run at once. Each has a connection.
    pub writers: usize,
    /// Connections for everything else.
    pub readers: usize,
    pub isolation: Isolation,
    pub dialect: Dialect,
}

impl ConnectOptions {
    /// As an installation runs, over a connection in the clear: [`of`](Self::of) makes a safe one.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            wire: WireSecurity::default(),
            store_time: StoreTime::Server,
            deadline: Duration::from_secs(2),
            writers: 2,
            readers: 4,
            isolation: Isolation::ReadCommitted,
            dialect: Dialect::Postgres,
        }
    }

    /// None asks the server.
    pub(crate) fn now(&self) -> Option<i64> {
        match &self.store_time {
            StoreTime::Server => None,
            StoreTime::Given(clock) => Some(clock.now().as_millis()),
        }
    }

    pub(crate) fn begin(&self) -> &'static str {
        match self.isolation {
            Isolation::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Isolation::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        }
    }
}
