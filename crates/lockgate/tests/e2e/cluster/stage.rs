//! Real servers, and processes that share them.

use std::process::Stdio;

use lockgate_testbed::{Nats, Postgres, Redis};
use tokio::process::Child;

use super::super::harness::{Client, Environment, Server, binary};

/// What the processes share.
pub(crate) struct Ground {
    pub(crate) postgres: Postgres,
    pub(crate) redis: Redis,
    pub(crate) nats: Nats,
}

impl Ground {
    pub(crate) fn start() -> Self {
        Self::on(Postgres::start().expect("PostgreSQL"))
    }

    /// With a database that has something special.
    pub(crate) fn on(postgres: Postgres) -> Self {
        Self { postgres, redis: Redis::start().expect("Redis"), nats: Nats::start().expect("NATS") }
    }

    /// A server process with these roles.
    pub(crate) async fn process(&self, roles: &str, more: &[&str]) -> Server {
        self.process_in(Environment::new(), roles, more).await
    }

    pub(crate) async fn process_in(&self, environment: Environment, roles: &str, more: &[&str]) -> Server {
        let (database, redis, nats) = (self.postgres.url(), self.redis.url(), self.nats.url());
        let mut arguments = vec!["--roles", roles, "--database-url", &database, "--redis-url", &redis, "--nats-url", &nats];
        arguments.extend(more);
        Server::start_with(environment, &arguments).await
    }
}

impl Ground {
    /// What the database answers to a question about itself.
    pub(crate) async fn sql(&self, question: &str) -> String {
        let url = self.postgres.url();
        let output = tokio::process::Command::new("psql").args(["-XAtq", &url, "-c", question]).output().await;
        let output = output.expect("psql runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// A worker that knows every gateway.
pub(crate) fn worker(name: &str, slots: u32, gateways: &[&Server]) -> Child {
    let mut command = binary();
    command.args(["worker", "--log", "error", "--name", name, "--slots", &slots.to_string()]);
    for (at, gateway) in gateways.iter().enumerate() {
        command.args([if at == 0 { "--server" } else { "--or-server" }, &gateway.api]);
    }
    command.stderr(Stdio::inherit()).spawn().expect("the worker starts")
}

pub(crate) async fn client(gateway: &Server) -> Client {
    gateway.client().await
}
