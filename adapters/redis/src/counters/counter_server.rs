//! The connection of the counters. While the server is slow or unreachable, calls fail at once, and a background task
//! reconnects; only the first connection is waited for.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lockgate_ports::CountersAway;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, cmd};
use tokio::time::timeout;

use crate::server_client::ServerClient;

/// The delay before each try to reconnect. It also bounds how often a server that answers everything with an error is asked
/// and logged.
const RETRY_EVERY: Duration = Duration::from_millis(250);

pub(crate) struct CounterServer {
    line: Arc<CounterConnection>,
}

struct CounterConnection {
    way: ServerClient,
    within: Duration,
    state: Mutex<ConnectionState>,
}

enum ConnectionState {
    Live { connection: MultiplexedConnection, number: u64 },
    Away { reason: Arc<str>, number: u64 },
}

impl CounterServer {
    /// A server that cannot be reached now is tried in the background until it can.
    pub(crate) async fn connect(way: ServerClient, within: Duration) -> Self {
        let away = ConnectionState::Away { reason: "not connected yet".into(), number: 0 };
        let line = Arc::new(CounterConnection { way, within, state: Mutex::new(away) });
        if let Err(reason) = line.reconnect().await {
            tracing::warn!(%reason, "the shared counters cannot be reached; this process counts alone until they can");
            tokio::spawn(recover(Arc::downgrade(&line)));
        }
        Self { line }
    }

    pub(crate) async fn run<T, F>(&self, ask: impl FnOnce(MultiplexedConnection) -> F) -> Result<T, CountersAway>
    where
        F: Future<Output = Result<T, RedisError>>,
    {
        let (connection, number) = match &*self.line.state.lock() {
            ConnectionState::Live { connection, number } => (connection.clone(), *number),
            ConnectionState::Away { reason, .. } => return Err(CountersAway(reason.clone())),
        };
        match timeout(self.line.within, ask(connection)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.lost(number, error.to_string())),
            Err(_) => Err(self.lost(number, late(self.line.within))),
        }
    }

    /// All calls in flight fail together; the first to fail starts the background task.
    fn lost(&self, number: u64, reason: String) -> CountersAway {
        let reason: Arc<str> = reason.into();
        let mut state = self.line.state.lock();
        if matches!(&*state, ConnectionState::Live { number: now, .. } if *now == number) {
            tracing::warn!(%reason, "the shared counters failed; this process counts alone until they answer");
            *state = ConnectionState::Away { reason: reason.clone(), number };
            tokio::spawn(recover(Arc::downgrade(&self.line)));
        }
        CountersAway(reason)
    }
}

impl CounterConnection {
    async fn reconnect(&self) -> Result<(), Arc<str>> {
        let opened = match timeout(self.within, self.open()).await {
            Ok(opened) => opened.map_err(|error| self.way.why(&error)),
            Err(_) => Err(late(self.within)),
        };
        let mut state = self.state.lock();
        let (ConnectionState::Live { number, .. } | ConnectionState::Away { number, .. }) = *state;
        match opened {
            Ok(connection) => {
                *state = ConnectionState::Live { connection, number: number + 1 };
                Ok(())
            }
            Err(reason) => {
                let reason: Arc<str> = reason.into();
                *state = ConnectionState::Away { reason: reason.clone(), number };
                Err(reason)
            }
        }
    }

    async fn open(&self) -> Result<MultiplexedConnection, RedisError> {
        // The caller limits the time of all steps together.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = self.way.client.get_multiplexed_async_connection_with_config(&config).await?;
        // The system accepts connections for a server that hangs, so only an answer proves that it is alive.
        cmd("PING").query_async::<()>(&mut connection).await?;
        Ok(connection)
    }
}

/// Ends when the server answers, or when the connection is dropped.
async fn recover(line: Weak<CounterConnection>) {
    loop {
        tokio::time::sleep(RETRY_EVERY).await;
        let Some(line) = line.upgrade() else { return };
        if line.reconnect().await.is_ok() {
            tracing::info!("the shared counters answer");
            return;
        }
    }
}

fn late(within: Duration) -> String {
    format!("no answer within {within:?}")
}
