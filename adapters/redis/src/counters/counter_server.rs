//! A connection that callers wait for once: when the server is slow or away, calls fail at once until a task in the
//! background has reached it again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lockgate_ports::CountersAway;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, cmd};
use tokio::time::timeout;

use crate::server_client::ServerClient;

/// Before each try to reach a server that is away. A server that answers everything with an error is asked, and complained
/// about, no more often.
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
    /// A server that cannot be reached now is tried again until it can.
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

    /// Everything in flight fails together; the first to see it calls for help.
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
        // Time is limited by the caller, for everything together.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = self.way.client.get_multiplexed_async_connection_with_config(&config).await?;
        // A server that hangs still lets the system accept connections for it.
        cmd("PING").query_async::<()>(&mut connection).await?;
        Ok(connection)
    }
}

/// Ends when the server answers, or when it is no longer needed.
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
