//! The connection of the lanes. It is made when first needed and again after every failure, and each new connection asks for
//! the server's identity. A connection never outlives its server process, so the identity is valid as long as the
//! connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use tokio::time::{Instant, timeout};

use crate::error::{ConnectError, LaneRefusal};
use crate::options::Options;
use crate::scripts::LoadedScript;
use crate::server_client::ServerClient;

/// After a failure no call tries to connect for this long, so that not every caller waits for a server that hangs.
const REST: Duration = Duration::from_millis(100);

/// Requests of the lanes to the server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    pub round_trips: u64,
}

pub(crate) struct LaneServer {
    way: ServerClient,
    pub(crate) root: String,
    timeout: Duration,
    live: Mutex<Option<LiveConnection>>,
    connecting: tokio::sync::Mutex<()>,
    outage: Mutex<Option<ConnectOutage>>,
    connections: AtomicU64,
    round_trips: AtomicU64,
}

#[derive(Clone)]
struct LiveConnection {
    connection: MultiplexedConnection,
    /// The server's run id: which process of which server this is.
    server: Arc<str>,
    /// Distinguishes this connection from earlier and later ones.
    number: u64,
}

struct ConnectOutage {
    reason: Arc<str>,
    tried_at: Instant,
}

/// The arguments of a script.
pub(crate) struct ScriptArgs {
    /// The version of the layout.
    pub(crate) version: u64,
    pub(crate) body: String,
    pub(crate) rest: Vec<String>,
}

/// Whether a call is repeated if it is unknown whether the server executed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Executing the script twice has the effect of executing it once.
    Once,
    Never,
}

/// The state of the lanes as the server stores it.
pub(crate) struct Meta {
    pub(crate) version: u64,
    /// Whether a rebuild has completed under this layout.
    pub(crate) built: bool,
    /// Changes with every rebuild.
    pub(crate) rebuilds: String,
}

enum ServerCall<'a> {
    Script(&'a LoadedScript, &'a ScriptArgs),
    Plain(&'a Cmd),
}

impl LaneServer {
    pub(crate) fn new(options: &Options) -> Result<Self, ConnectError> {
        Ok(Self {
            way: ServerClient::of(options)?,
            root: options.root()?,
            timeout: options.response_timeout,
            live: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(()),
            outage: Mutex::new(None),
            connections: AtomicU64::new(0),
            round_trips: AtomicU64::new(0),
        })
    }

    /// Connects now rather than with the first call, so that errors of the configuration show.
    pub(crate) async fn connect(&self) -> Result<(), ConnectError> {
        let late = || ConnectError::Unreachable(format!("no answer within {:?}", self.timeout));
        timeout(self.timeout, self.live()).await.map_err(|_| late())?.map(drop)
    }

    pub(crate) async fn run(&self, entry: &LoadedScript, told: &ScriptArgs, again: Again) -> Result<Value, LaneRefusal> {
        Ok(self.ask(ServerCall::Script(entry, told), again).await?.1)
    }

    pub(crate) async fn plain(&self, command: &Cmd) -> Result<Value, LaneRefusal> {
        Ok(self.ask(ServerCall::Plain(command), Again::Once).await?.1)
    }

    /// None if the server has no lanes of this installation.
    pub(crate) async fn meta(&self) -> Result<Option<Meta>, LaneRefusal> {
        let mut command = cmd("HMGET");
        command.arg(format!("{}:meta", self.root)).arg(&["server", "version", "built", "era", "rebuilds"]);
        let (server, value) = self.ask(ServerCall::Plain(&command), Again::Once).await?;
        let fields: Vec<Option<String>> = redis::from_redis_value(value).unwrap_or_default();
        let [Some(known), Some(version), Some(built), Some(era), Some(rebuilds)] = fields.as_slice() else {
            return Ok(None);
        };
        let meta =
            Meta { version: version.parse().unwrap_or(0), built: built == "2", rebuilds: format!("{era}/{rebuilds}") };
        Ok((**known == *server).then_some(meta))
    }

    /// Why the latest call failed, if it did.
    pub(crate) fn trouble(&self) -> Arc<str> {
        self.outage.lock().as_ref().map_or_else(|| Arc::from("Redis did not answer"), |outage| outage.reason.clone())
    }

    pub(crate) fn counters(&self) -> LaneCounters {
        LaneCounters { round_trips: self.round_trips.load(Ordering::Relaxed) }
    }

    async fn ask(&self, question: ServerCall<'_>, again: Again) -> Result<(Arc<str>, Value), LaneRefusal> {
        if self.outage.lock().as_ref().is_some_and(|outage| outage.tried_at.elapsed() < REST) {
            return Err(LaneRefusal::Away);
        }
        match timeout(self.timeout, self.try_ask(&question, again)).await {
            Ok(Ok(answer)) => {
                if self.outage.lock().take().is_some() {
                    tracing::info!("Redis answers again");
                }
                Ok(answer)
            }
            Ok(Err(error)) => Err(self.failed(error.to_string())),
            Err(_) => {
                *self.live.lock() = None;
                Err(self.failed(format!("Redis did not answer within {:?}", self.timeout)))
            }
        }
    }

    async fn try_ask(&self, question: &ServerCall<'_>, again: Again) -> Result<(Arc<str>, Value), ConnectError> {
        let live = self.live().await?;
        let error = match self.send(live.clone(), question).await {
            Ok(value) => return Ok((live.server, value)),
            Err(error) => error,
        };
        // After any failure the next connection asks for the server's identity again.
        self.live.lock().take_if(|now| now.number == live.number);
        if again == Again::Once && (error.is_io_error() || error.is_connection_dropped()) {
            let live = self.live().await?;
            let server = live.server.clone();
            return self.send(live, question).await.map(|value| (server, value)).map_err(ConnectError::from);
        }
        Err(error.into())
    }

    async fn send(&self, mut live: LiveConnection, question: &ServerCall<'_>) -> Result<Value, RedisError> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let (entry, told) = match question {
            ServerCall::Plain(command) => return command.query_async(&mut live.connection).await,
            ServerCall::Script(entry, told) => (entry, told),
        };
        let known = self.script("EVALSHA", entry.script.get_hash(), &live.server, told);
        match known.query_async(&mut live.connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.round_trips.fetch_add(1, Ordering::Relaxed);
                let whole = self.script("EVAL", &entry.code, &live.server, told);
                whole.query_async(&mut live.connection).await
            }
            answer => answer,
        }
    }

    fn script(&self, command: &str, script: &str, server: &str, told: &ScriptArgs) -> Cmd {
        let mut command = cmd(command);
        command.arg(script).arg(1).arg(&self.root).arg(server).arg(told.version).arg(&told.body).arg(&told.rest);
        command
    }

    async fn live(&self) -> Result<LiveConnection, ConnectError> {
        let known = || self.live.lock().clone();
        if let Some(live) = known() {
            return Ok(live);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(live) = known() {
            return Ok(live);
        }
        let live = self.open().await?;
        *self.live.lock() = Some(live.clone());
        Ok(live)
    }

    async fn open(&self) -> Result<LiveConnection, ConnectError> {
        // The caller limits the time of all steps together.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let opened = self.way.client.get_multiplexed_async_connection_with_config(&config).await;
        let refused = |error: RedisError| self.way.refused(error);
        let mut connection = opened.map_err(refused)?;
        let mut questions = redis::pipe();
        questions.cmd("INFO").arg("server").cmd("INFO").arg("replication");
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let (server, replication): (String, String) = questions.query_async(&mut connection).await.map_err(refused)?;
        refuse_eviction(&mut connection).await?;
        let server = format!("{}/{}", field(&server, "run_id"), field(&replication, "master_replid"));
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(LiveConnection { connection, server: server.into(), number })
    }

    fn failed(&self, reason: String) -> LaneRefusal {
        let mut outage = self.outage.lock();
        if outage.is_none() {
            tracing::warn!(%reason, "Redis failed; claims wait until it answers, nothing is lost");
        }
        *outage = Some(ConnectOutage { reason: reason.into(), tried_at: Instant::now() });
        LaneRefusal::Away
    }
}

/// A lane definition that is evicted when memory is short hides its jobs from claims. Eviction policies that only consider
/// keys with an expiry are fine, because lane keys have none.
async fn refuse_eviction(connection: &mut MultiplexedConnection) -> Result<(), ConnectError> {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg("maxmemory-policy");
    match command.query_async::<Vec<String>>(connection).await {
        Ok(answer) => match answer.into_iter().nth(1).filter(|policy| policy.starts_with("allkeys")) {
            Some(policy) => Err(ConnectError::Evicts(policy)),
            None => Ok(()),
        },
        Err(error) if error.is_io_error() => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "Redis does not tell its maxmemory-policy; make sure that it is noeviction");
            Ok(())
        }
    }
}

fn field<'a>(info: &'a str, name: &str) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    info.lines().find_map(value).unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let info = "# Server\r\nrun_id_old:x\r\nrun_id:abc\r\n";
        assert_eq!((field(info, "run_id"), field(info, "missing")), ("abc", ""));
    }
}
