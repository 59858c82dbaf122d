//! Options: how to reach the database and how to use it.

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::Clock;
use tokio_postgres::Config;

use crate::wire::WireSecurity;

/// The clock that decides what is due.
#[derive(Clone)]
pub enum StoreTime {
    /// The server's clock, read inside each statement, so that every process of an installation sees one time.
    Server,
    /// A given clock, for tests.
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

/// The Store's time in milliseconds, if a test sets it. None: the server's clock.
pub(crate) type Now = Option<i64>;

#[derive(Clone)]
pub struct ConnectOptions {
    /// Parsed from a URL such as `postgres://user@host/database`.
    pub config: Config,
    /// TLS or clear text.
    pub wire: WireSecurity,
    pub store_time: StoreTime,
    /// The longest time that a call may take.
    pub deadline: Duration,
    /// How many transactions with changes run at once, each on its own connection.
    pub writers: usize,
    /// How many connections serve all other calls.
    pub readers: usize,
    pub isolation: Isolation,
    pub dialect: Dialect,
}

impl ConnectOptions {
    /// The defaults of an installation over an unencrypted connection; [`of`](Self::of) makes a safe one.
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

    /// None reads the server's clock.
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
