//! Workers over NATS: this process is the edge of those that it has welcomed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::Args;
use clap::builder::FalseyValueParser;
use lockgate_core::access::ApiKey;
use lockgate_core::ids::WorkerId;
use lockgate_gateway::{BusWorkerSettings, BusWorkers, Gateway, SendFailure, WorkerMessenger};
use lockgate_kernel::Secret;
use lockgate_nats::{BusPublisher, ConnectError, Transport, Unsent, WorkerHost, WorkerSubjects};
use lockgate_proto::v1;

use super::LOST_AFTER_MIN;
use super::roles::RoleSet;
use crate::args;
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct OutpostArgs {
    /// Hold workers that speak NATS, on sys.heartbeat and sys.job.result; needs JetStream, and an account of its own
    #[arg(long, env = "LOCKGATE_NATS_WORKERS", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Cluster")]
    pub(super) nats_workers: bool,

    /// Silence after which a worker that speaks NATS counts as lost
    #[arg(long, env = "LOCKGATE_NATS_LOST_AFTER", hide_env_values = true, default_value = "90s", value_parser = args::duration,
        value_name = "SPAN", help_heading = "Cluster")]
    nats_lost_after: Duration,

    /// Key of role worker that stands for everybody whom NATS lets publish there; needed with --auth
    #[arg(long, env = "LOCKGATE_NATS_WORKER_KEY", hide_env_values = true, value_name = "KEY", value_parser = secret,
        help_heading = "Cluster")]
    nats_worker_key: Option<Secret>,
}

/// Validated later, because clap prints a refused value, and this one is a secret.
fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret(text.to_owned()))
}

impl OutpostArgs {
    fn key(&self) -> Result<Option<ApiKey>, CliError> {
        // An empty variable counts as unset.
        let given = self.nats_worker_key.as_ref().filter(|secret| !secret.0.is_empty());
        let wrong =
            |_| CliError::Usage("--nats-worker-key must be a key as `lockgate auth key create` prints it".to_owned());
        given.map(|secret| ApiKey::parse(&secret.0)).transpose().map_err(wrong)
    }

    pub(super) fn check(&self, roles: RoleSet, shared: bool, auth: bool) -> Result<(), CliError> {
        let text = match (self.nats_workers, self.key()?) {
            (true, _) if !shared => "--nats-workers holds workers over NATS: name DATABASE_URL, REDIS_URL and NATS_URL",
            (true, _) if roles.judges_only() => "--nats-workers is for processes that run jobs, not for --roles kernel",
            (true, None) if auth => {
                "--nats-workers with --auth needs --nats-worker-key: a message carries no credential, so a key of role \
                 worker stands for all who may publish; `lockgate auth key create NAME --role worker` makes one"
            }
            (true, Some(_)) if !auth => "--nats-worker-key does nothing without --auth",
            (false, Some(_)) => "--nats-worker-key does nothing without --nats-workers",
            (true, _) if self.nats_lost_after < LOST_AFTER_MIN => "--nats-lost-after must be at least 3s",
            _ => return Ok(()),
        };
        Err(CliError::Usage(text.to_owned()))
    }

    pub(super) fn open(
        &self,
        gateway: &Gateway,
        transport: &Arc<Transport>,
        address: String,
        quiet_after: Duration,
    ) -> Result<Option<BusWorkers>, CliError> {
        if !self.nats_workers {
            return Ok(None);
        }
        let (lost_after, key) = (self.nats_lost_after, self.key()?);
        let quiet_after = quiet_after.min(lost_after);
        let settings = BusWorkerSettings { address, lost_after, quiet_after, key };
        Ok(gateway.bus_workers(settings, Arc::new(WorkerMessages(BusPublisher::new(Arc::clone(transport))))))
    }
}

/// Starts to listen for workers.
pub(super) async fn listen(transport: Arc<Transport>, bus_workers: &BusWorkers) -> Result<WorkerSubjects, ConnectError> {
    WorkerSubjects::open(transport, bus_workers.address(), Arc::new(BusWorkerHost(bus_workers.clone()))).await
}

struct WorkerMessages(BusPublisher);

#[async_trait]
impl WorkerMessenger for WorkerMessages {
    async fn tell(&self, worker: &WorkerId, message: &v1::ServerMessage) -> Result<(), SendFailure> {
        self.0.tell(worker.as_str(), message).await.map_err(|unsent| match unsent {
            Unsent::Away => SendFailure::Away,
            Unsent::TooLarge => SendFailure::TooLarge,
        })
    }

    fn bytes_max(&self) -> usize {
        self.0.bytes_max()
    }
}

struct BusWorkerHost(BusWorkers);

#[async_trait]
impl WorkerHost for BusWorkerHost {
    async fn hello(&self, hello: v1::Hello) {
        self.0.hello(hello).await;
    }

    fn heard(&self, message: v1::WorkerMessage) {
        self.0.heard(message);
    }

    fn deaf(&self) {
        self.0.deaf();
    }
}

#[cfg(test)]
mod tests {
    use super::super::roles::Role;
    use super::*;

    #[test]
    fn workers_over_nats_are_held_only_where_they_are_somebody() {
        let key = || Secret(ApiKey::new([7; ApiKey::RANDOM_BYTES]).reveal());
        let check = |key: Option<Secret>, role: Role, shared: bool, auth: bool, seconds: u64| {
            let nats_lost_after = Duration::from_secs(seconds);
            let args = OutpostArgs { nats_workers: true, nats_lost_after, nats_worker_key: key };
            let roles = RoleSet::of(&[role], true, shared).expect("roles").with_workers();
            args.check(roles, shared, auth).map_err(|error| error.to_string())
        };
        assert_eq!(check(None, Role::All, true, false, 90), Ok(()));
        assert_eq!(check(Some(key()), Role::Scheduler, true, true, 90), Ok(()));
        let refused = [
            (check(None, Role::All, true, true, 90), "needs --nats-worker-key"),
            (check(Some(key()), Role::All, true, false, 90), "does nothing without --auth"),
            (check(None, Role::All, false, false, 90), "name DATABASE_URL"),
            (check(Some(Secret("lgk_no_key".to_owned())), Role::All, true, true, 90), "must be a key"),
            (check(None, Role::Kernel, true, false, 90), "not for --roles kernel"),
            (check(None, Role::Gateway, true, false, 1), "at least 3s"),
        ];
        for (checked, expected) in refused {
            assert!(checked.clone().is_err_and(|text| text.contains(expected)), "{expected}: {checked:?}");
        }
    }
}
