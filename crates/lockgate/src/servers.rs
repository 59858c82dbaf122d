//! Connections to the servers that the processes of one installation share.

use std::sync::Arc;

use clap::Args;
use lockgate_nats::NatsBus;
use lockgate_ports::Entropy;
use lockgate_postgres::PostgresStore;
use lockgate_redis::{Options, RedisCounters, RedisLanes};

use crate::error::CliError;

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
}

/// Their addresses.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    pub(crate) database: String,
    pub(crate) redis: String,
    pub(crate) nats: Vec<String>,
    pub(crate) installation: String,
}

impl ServerArgs {
    pub(crate) fn is_shared(&self) -> Result<bool, CliError> {
        Ok(self.shared()?.is_some())
    }

    /// All of them or none: the ready queues of one process cannot stand beside those of another.
    pub(crate) fn shared(&self) -> Result<Option<Servers>, CliError> {
        let nats = Some(self.nats_url.as_slice()).filter(|urls| urls.iter().any(|url| !url.is_empty()));
        match (filled(&self.database_url), filled(&self.redis_url), nats) {
            (None, None, None) => Ok(None),
            (Some(database), Some(redis), Some(nats)) => Ok(Some(Servers {
                database: database.to_owned(),
                redis: redis.to_owned(),
                nats: nats.to_vec(),
                installation: self.installation.clone(),
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

/// A variable that is set to nothing is not set.
fn filled(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

impl Servers {
    /// The Store, brought up to date first: replicas that start together take turns.
    pub(crate) async fn store(&self) -> Result<PostgresStore, CliError> {
        let options = database(&self.database).await?;
        migrate(&options).await?;
        PostgresStore::connect(options).await.map_err(unusable)
    }

    /// A server that is away is waited for: submits, results and running jobs do not need it.
    pub(crate) async fn lanes(&self) -> Result<RedisLanes, CliError> {
        let options = self.redis();
        match RedisLanes::connect(&options).await {
            Err(error @ lockgate_redis::ConnectError::Unreachable(_)) => {
                tracing::warn!(%error, "nothing can be claimed until Redis is there");
                RedisLanes::new(&options).map_err(unusable)
            }
            connected => connected.map_err(unusable),
        }
    }

    pub(crate) async fn counters(&self) -> Result<RedisCounters, CliError> {
        let Options { url, installation, response_timeout, .. } = self.redis();
        RedisCounters::connect(&url, &installation, response_timeout).await.map_err(unusable)
    }

    pub(crate) async fn bus(&self, entropy: Arc<dyn Entropy>) -> Result<NatsBus, CliError> {
        NatsBus::connect(&self.nats(), entropy).await.map_err(unusable)
    }

    pub(crate) fn redis(&self) -> Options {
        Options::new(&self.redis, &self.installation)
    }

    pub(crate) fn nats(&self) -> lockgate_nats::Options {
        lockgate_nats::Options { servers: self.nats.clone(), installation: self.installation.clone() }
    }
}

pub(crate) async fn migrate(options: &lockgate_postgres::Options) -> Result<(), CliError> {
    lockgate_postgres::migrate(&options.config, options.dialect).await.map_err(unusable)
}

pub(crate) async fn database(url: &str) -> Result<lockgate_postgres::Options, CliError> {
    lockgate_postgres::Options::of(url).await.map_err(unusable)
}

/// The texts say what to do.
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
        }
    }

    #[test]
    fn all_or_none() {
        assert!(args("", "", "").shared().expect("valid").is_none());
        assert!(args("postgres://d", "redis://r", "nats://n").shared().expect("valid").is_some());
        let error = args("postgres://d", "", "nats://n").shared().expect_err("refused");
        assert!(error.to_string().contains("DATABASE_URL and NATS_URL without REDIS_URL"), "{error}");
    }
}
