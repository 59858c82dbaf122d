//! Real servers around a command.

use anyhow::bail;
use lockgate_testbed::{Durability, Nats, Postgres, Redis, SHARED_POSTGRES};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// PostgreSQL, Redis and NATS on free ports, gone with this value.
pub(crate) struct Servers {
    pub(crate) postgres: Postgres,
    pub(crate) redis: Redis,
    pub(crate) nats: Nats,
}

impl Servers {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let postgres = Postgres::start_with(Durability::Synced, &["shared_buffers=256MB", "max_wal_size=4GB"])?;
        Ok(Self { postgres, redis: Redis::start()?, nats: Nats::start()? })
    }

    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [("DATABASE_URL", self.postgres.url()), ("REDIS_URL", self.redis.url()), ("NATS_URL", self.nats.url())]
    }
}

/// Runs a command with the addresses of fresh servers in its environment. Whether it succeeded.
pub(crate) fn around(command: &[&str]) -> anyhow::Result<bool> {
    let servers = Servers::start()?;
    with(command, &servers.environment())
}

/// Runs a command that needs none. Whether it succeeded.
pub(crate) fn without(command: &[&str]) -> anyhow::Result<bool> {
    with(command, &[])
}

/// Runs a command whose tests find one PostgreSQL for all of them, as quick as a server can be that may forget.
pub(crate) fn shared(command: &[&str]) -> anyhow::Result<bool> {
    let postgres = Postgres::start()?;
    with(command, &[(SHARED_POSTGRES, postgres.url())])
}

fn with(command: &[&str], environment: &[(&str, String)]) -> anyhow::Result<bool> {
    let Some((program, arguments)) = command.split_first() else { bail!("name a command to run") };
    let environment = environment.iter().map(|(name, value)| (name, value));
    runtime()?.block_on(async {
        let mut child = Command::new(program).args(arguments).envs(environment).kill_on_drop(true).spawn()?;
        // A terminal tells the command too; it ends by itself, and the servers after it.
        let mut interrupt = signal(SignalKind::interrupt())?;
        loop {
            tokio::select! {
                ended = child.wait() => return Ok(ended?.success()),
                _ = interrupt.recv() => {}
            }
        }
    })
}

pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
