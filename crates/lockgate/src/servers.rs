//! Connections to the servers that the processes of one installation share.

mod tls;

use std::sync::Arc;

use clap::Args;
use lockgate_nats::{ConnectionHealth, NatsBus};
use lockgate_ports::Entropy;
use lockgate_postgres::PostgresStore;
use lockgate_redis::{MarkLives, RedisCounters, RedisGuard, RedisLanes};
use lockgate_tls::{Clear, Tls};

use crate::error::CliError;

pub(crate) use tls::{ClearArgs, DatabaseTlsArgs};
use tls::{NatsTlsArgs, RedisTlsArgs};

#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// PostgreSQL or CockroachDB with everything that must not be lost. With --redis-url and --nats-url this process becomes
    /// one of many
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", help_heading = "Cluster")]
    database_url: Option<String>,

    /// Redis or Valkey with the ready queues
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL", help_heading = "Cluster")]
    redis_url: Option<String>,

    /// NATS servers of one cluster, with commas between them
    #[arg(
        long,
        env = "NATS_URL",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "URLS",
        help_heading = "Cluster"
    )]
    nats_url: Vec<String>,

    /// Name of this installation, told apart by it from others on the same Redis and NATS
    #[arg(
        long,
        env = "LOCKGATE_INSTALLATION",
        hide_env_values = true,
        default_value = "default",
        value_name = "NAME",
        help_heading = "Cluster"
    )]
    installation: String,

    /// Queue group in which the processes of this installation take turns at sys.job.submit, sys.job.result and sys.heartbeat; the
    /// same for all of them
    #[arg(long, env = "NATS_QUEUE_GROUP", hide_env_values = true, default_value = lockgate_nats::QUEUE_GROUP, value_name = "NAME",
        help_heading = "Cluster")]
    nats_queue_group: String,

    #[command(flatten)]
    database_tls: DatabaseTlsArgs,

    #[command(flatten)]
    redis_tls: RedisTlsArgs,

    #[command(flatten)]
    nats_tls: NatsTlsArgs,

    #[command(flatten)]
    clear: ClearArgs,
}

/// The servers' addresses, which may contain passwords and are never printed.
pub(crate) struct ServerAddresses {
    database: String,
    redis: String,
    nats: Vec<String>,
    installation: String,
    queue_group: String,
    tls: ServerTls,
    clear: Clear,
    /// What the files of TLS were called on the command line.
    words: Vec<String>,
}

struct ServerTls {
    database: Tls,
    redis: Tls,
    nats: Tls,
}

impl ServerArgs {
    pub(crate) fn is_shared(&self) -> Result<bool, CliError> {
        Ok(self.shared()?.is_some())
    }

    /// All servers or none: a process with lanes of its own must not share a Store with others.
    pub(crate) fn shared(&self) -> Result<Option<ServerAddresses>, CliError> {
        let nats = Some(self.nats_url.as_slice()).filter(|urls| urls.iter().any(|url| !url.is_empty()));
        match (filled(&self.database_url), filled(&self.redis_url), nats) {
            (None, None, None) => Ok(None),
            (Some(database), Some(redis), Some(nats)) => Ok(Some(ServerAddresses {
                database: database.to_owned(),
                redis: redis.to_owned(),
                nats: nats.to_vec(),
                installation: self.installation.clone(),
                queue_group: self.nats_queue_group.clone(),
                tls: ServerTls {
                    database: self.database_tls.read()?,
                    redis: self.redis_tls.read()?,
                    nats: self.nats_tls.read()?,
                },
                clear: self.clear.clear(),
                words: self.words(),
            })),
            (database, redis, nats) => {
                let named =
                    [("DATABASE_URL", database.is_some()), ("REDIS_URL", redis.is_some()), ("NATS_URL", nats.is_some())];
                let list = |wanted: bool| {
                    named.into_iter().filter(|(_, is)| *is == wanted).map(|(name, _)| name).collect::<Vec<_>>().join(" and ")
                };
                Err(CliError::Usage(format!(
                    "{} without {}: a cluster needs all three; unset what is set, and the server runs on a folder of its own",
                    list(true),
                    list(false)
                )))
            }
        }
    }
}

impl ServerArgs {
    fn words(&self) -> Vec<String> {
        let files = [
            tls::words("database", &self.database_tls.files()),
            tls::words("redis", &self.redis_tls.files()),
            tls::words("nats", &self.nats_tls.files()),
        ];
        let clear = (self.clear.clear() == Clear::Anywhere).then(|| "--insecure-servers".to_owned());
        files.into_iter().flatten().chain(clear).collect()
    }
}

/// An empty variable counts as unset.
fn filled(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

impl ServerAddresses {
    /// Migrates and connects the Store; replicas that start together take turns.
    pub(crate) async fn store(&self) -> Result<PostgresStore, CliError> {
        let options = self.database().await.map_err(unusable)?;
        migrate(&options).await?;
        PostgresStore::connect(options).await.map_err(unusable)
    }

    /// An unreachable server does not fail the start: submits, results and running jobs do not need it.
    pub(crate) async fn lanes(&self) -> Result<RedisLanes, CliError> {
        let options = self.redis().map_err(unusable)?;
        match RedisLanes::connect(&options).await {
            Err(error @ lockgate_redis::ConnectError::Unreachable(_)) => {
                tracing::warn!(%error, "Redis unreachable: no jobs are claimed until it answers");
                RedisLanes::new(&options).map_err(unusable)
            }
            connected => connected.map_err(unusable),
        }
    }

    pub(crate) async fn counters(&self) -> Result<RedisCounters, CliError> {
        RedisCounters::connect(&self.redis().map_err(unusable)?).await.map_err(unusable)
    }

    /// The guard of messages over NATS.
    pub(crate) async fn guard(&self) -> Result<RedisGuard, CliError> {
        let lives = MarkLives { in_hand: lockgate_nats::IN_FLIGHT_FOR, done: lockgate_nats::PROCESSED_FOR };
        RedisGuard::connect(&self.redis().map_err(unusable)?, lives).await.map_err(unusable)
    }

    pub(crate) async fn bus(&self, entropy: Arc<dyn Entropy>) -> Result<NatsBus, CliError> {
        let options = self.nats().map_err(unusable)?;
        let bus = NatsBus::connect(&options, entropy).await.map_err(unusable)?;
        // A connection that is retried for ever does not report why it fails; a single try does.
        if bus.health() != ConnectionHealth::Connected
            && let Err(error) = lockgate_nats::examine(&options).await
        {
            tracing::warn!(%error, "NATS unreachable: jobs start with delay until it answers");
        }
        Ok(bus)
    }

    pub(crate) async fn database(&self) -> Result<lockgate_postgres::ConnectOptions, lockgate_postgres::UnusableDatabase> {
        lockgate_postgres::ConnectOptions::of(&self.database, &self.tls.database, self.clear).await
    }

    pub(crate) fn redis(&self) -> Result<lockgate_redis::Options, lockgate_redis::ConnectError> {
        lockgate_redis::Options::new(&self.redis, &self.installation).secured(&self.tls.redis, self.clear)
    }

    pub(crate) fn nats(&self) -> Result<lockgate_nats::Options, lockgate_nats::ConnectError> {
        let options = lockgate_nats::Options::new(self.nats.clone(), &self.installation);
        let options = lockgate_nats::Options { queue_group: self.queue_group.clone(), ..options };
        options.secured(&self.tls.nats, self.clear)
    }

    pub(crate) const fn clear(&self) -> Clear {
        self.clear
    }

    /// The command-line arguments for another process to use these servers.
    pub(crate) fn words(&self) -> Vec<String> {
        self.words_at(self.addresses())
    }

    /// The addresses of the database, of Redis, and of all NATS servers.
    pub(crate) fn addresses(&self) -> [String; 3] {
        [self.database.clone(), self.redis.clone(), self.nats.join(",")]
    }

    /// These servers at other addresses.
    pub(crate) fn words_at(&self, [database, redis, nats]: [String; 3]) -> Vec<String> {
        let named = [
            ("--database-url", database),
            ("--redis-url", redis),
            ("--nats-url", nats),
            ("--installation", self.installation.clone()),
            ("--nats-queue-group", self.queue_group.clone()),
        ];
        named.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).chain(self.words.iter().cloned()).collect()
    }
}

pub(crate) async fn migrate(options: &lockgate_postgres::ConnectOptions) -> Result<(), CliError> {
    lockgate_postgres::migrate(options).await.map_err(unusable)
}

/// The database alone.
pub(crate) async fn database(url: &str, tls: &Tls, clear: Clear) -> Result<lockgate_postgres::ConnectOptions, CliError> {
    lockgate_postgres::ConnectOptions::of(url, tls, clear).await.map_err(unusable)
}

/// The adapters' error texts already say what to do.
fn unusable(error: impl std::error::Error) -> CliError {
    CliError::Server(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(database: &str, redis: &str, nats: &str) -> ServerArgs {
        let url = |url: &str| Some(url.to_owned());
        ServerArgs {
            database_url: url(database),
            redis_url: url(redis),
            nats_url: vec![nats.to_owned()],
            installation: "default".to_owned(),
            nats_queue_group: lockgate_nats::QUEUE_GROUP.to_owned(),
            database_tls: DatabaseTlsArgs::default(),
            redis_tls: RedisTlsArgs::default(),
            nats_tls: NatsTlsArgs::default(),
            clear: ClearArgs::default(),
        }
    }

    #[test]
    fn all_or_none() {
        assert!(args("", "", "").shared().expect("valid").is_none());
        assert!(args("postgres://d", "redis://r", "nats://n").shared().expect("valid").is_some());
        let error = args("postgres://d", "", "nats://n").shared().err().expect("refused");
        assert!(error.to_string().contains("DATABASE_URL and NATS_URL without REDIS_URL"), "{error}");
    }
}
