//! Jobs submitted over NATS, and results of workers over NATS.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use clap::Args;
use clap::builder::FalseyValueParser;
use futures::future::join_all;
use lockgate_core::access::ApiKey;
use lockgate_engine::ApiError;
use lockgate_gateway::{BusSubmits, BusWorkers, Gateway};
use lockgate_kernel::Secret;
use lockgate_nats::{DeliveryTerms, Ingress, IngressAnswer, IngressSubjects, Served, Submission, Transport, WorkerSubjects};
use lockgate_ports::{Entropy, Mint};
use lockgate_proto::v1;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use prometheus_client::registry::Registry;

use super::guard::SharedGuard;
use super::roles::RoleSet;
use super::{Serve, bus_workers, metrics};
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct BusSubmitArgs {
    /// Take jobs from the NATS subject sys.job.submit; needs JetStream, and an account that no other installation uses
    #[arg(long, env = "LOCKGATE_NATS_SUBMITS", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Cluster")]
    nats_submits: bool,

    /// Key of role submitter that stands for everybody whom NATS lets publish there; needed with --auth
    #[arg(long, env = "LOCKGATE_NATS_SUBMIT_KEY", hide_env_values = true, value_name = "KEY", value_parser = secret,
        help_heading = "Cluster")]
    nats_submit_key: Option<Secret>,
}

/// Validated later, because clap prints a refused value, and this one is a secret.
fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret(text.to_owned()))
}

impl BusSubmitArgs {
    fn key(&self) -> Result<Option<ApiKey>, CliError> {
        // An empty variable counts as unset.
        let given = self.nats_submit_key.as_ref().filter(|secret| !secret.0.is_empty());
        let wrong =
            |_| CliError::Usage("--nats-submit-key must be a key as `lockgate auth key create` prints it".to_owned());
        given.map(|secret| ApiKey::parse(&secret.0)).transpose().map_err(wrong)
    }

    pub(super) fn check(&self, roles: RoleSet, shared: bool, auth: bool) -> Result<(), CliError> {
        let text = match (self.nats_submits, self.key()?) {
            (true, _) if !shared => "--nats-submits takes jobs from NATS: name DATABASE_URL, REDIS_URL and NATS_URL",
            (true, _) if !roles.engine.scheduler => "--nats-submits is for processes with the role scheduler",
            (true, None) if auth => {
                "--nats-submits with --auth needs --nats-submit-key: a letter carries no credential, so a key of role \
                 submitter stands for all who may publish; `lockgate auth key create NAME --role submitter` makes one"
            }
            (true, Some(_)) if !auth => "--nats-submit-key does nothing without --auth",
            (false, Some(_)) => "--nats-submit-key does nothing without --nats-submits",
            _ => return Ok(()),
        };
        Err(CliError::Usage(text.to_owned()))
    }
}

impl Serve {
    /// Serves the NATS subjects that the settings ask for.
    pub(super) async fn bus_submits(
        &self,
        gateway: &Gateway,
        entropy: Arc<dyn Entropy>,
        registry: &mut Registry,
    ) -> Result<Option<BusServices>, CliError> {
        let wanted = self.bus_submits.nats_submits || self.bus_workers.nats_workers;
        let Some(servers) = self.servers.shared()?.filter(|_| wanted) else { return Ok(None) };
        let unusable = |error: lockgate_nats::ConnectError| CliError::Server(error.to_string());
        let address = entropy.uuid(gateway.clock.now());
        let transport = Transport::connect(&servers.nats().map_err(unusable)?, entropy).await.map_err(unusable)?;
        let transport = Arc::new(transport);
        let guard = Arc::new(SharedGuard(servers.guard().await?));
        let submits = if self.bus_submits.nats_submits { gateway.bus_submits(self.bus_submits.key()?) } else { None };
        let bus_workers = self.bus_workers.open(gateway, &transport, address, self.lost_after)?;
        let served = Served {
            submits: submits.is_some(),
            results: bus_workers.as_ref().map(|bus_workers| bus_workers.address().to_owned()),
        };
        let inbox =
            Arc::new(Inbox { bus_submits: submits, bus_workers: bus_workers.clone(), barred: AtomicBool::new(false) });
        let surface = IngressSubjects::open(Arc::clone(&transport), DeliveryTerms::default(), served, inbox, guard)
            .await
            .map_err(unusable)?;
        metrics::of_letters(registry, surface.meter());
        let worker_subjects = match &bus_workers {
            Some(bus_workers) => Some(bus_workers::listen(transport, bus_workers).await.map_err(unusable)?),
            None => None,
        };
        Ok(Some(BusServices { surface, worker_subjects, bus_workers }))
    }
}

/// Everything that this process serves over NATS.
pub(super) struct BusServices {
    surface: IngressSubjects,
    worker_subjects: Option<WorkerSubjects>,
    bus_workers: Option<BusWorkers>,
}

impl BusServices {
    /// Waits until a part ends that was not stopped, and says which one and how.
    pub(super) async fn ended(&mut self) -> String {
        let worker_subjects = async {
            match &mut self.worker_subjects {
                Some(worker_subjects) => worker_subjects.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            how = self.surface.ended() => how,
            how = worker_subjects => how,
        }
    }

    /// Stops taking new workers, then releases those held here, then stops taking messages.
    pub(super) async fn close(self) {
        if let Some(worker_subjects) = self.worker_subjects {
            worker_subjects.stop().await;
        }
        if let Some(bus_workers) = self.bus_workers {
            bus_workers.close().await;
        }
        self.surface.stop().await;
    }
}

/// Handles the messages of the subjects.
struct Inbox {
    bus_submits: Option<BusSubmits>,
    bus_workers: Option<BusWorkers>,
    /// Whether the last submit had to wait, so that only a change is logged.
    barred: AtomicBool,
}

#[async_trait]
impl Ingress for Inbox {
    /// Concurrently: the Store commits jobs that arrive together in one transaction.
    async fn submit(&self, submissions: Vec<Submission>) -> Vec<IngressAnswer<v1::SubmitJobsResponse>> {
        join_all(submissions.into_iter().map(|submission| self.take(submission))).await
    }

    async fn report(&self, reports: Vec<v1::WorkerMessage>) -> Vec<IngressAnswer<v1::ServerMessage>> {
        join_all(reports.into_iter().map(|report| self.settle(report))).await
    }
}

impl Inbox {
    async fn take(&self, Submission { caller, tenant, request }: Submission) -> IngressAnswer<v1::SubmitJobsResponse> {
        let Some(bus_submits) = &self.bus_submits else {
            return IngressAnswer::Refused("no jobs are taken here".to_owned());
        };
        let answer = answered(bus_submits.submit(&caller, tenant.as_ref(), request.jobs).await);
        let waits = matches!(answer, IngressAnswer::Later(_));
        if let IngressAnswer::Later(why) = &answer
            && !self.barred.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(why, "submits from NATS are held; they stay in the stream");
        }
        if !waits && self.barred.swap(false, Ordering::Relaxed) {
            tracing::info!("submits from NATS are accepted again");
        }
        answer
    }
}

impl Inbox {
    async fn settle(&self, report: v1::WorkerMessage) -> IngressAnswer<v1::ServerMessage> {
        let Some(bus_workers) = &self.bus_workers else {
            return IngressAnswer::Refused("no results are taken here".to_owned());
        };
        match bus_workers.report(report).await {
            Ok(acknowledged) => IngressAnswer::Done(acknowledged),
            Err(error) if passes(error.code()) => IngressAnswer::Later(error.to_string()),
            Err(error) => IngressAnswer::Refused(error.to_string()),
        }
    }
}

/// A message with an undecided part waits as a whole: its accepted jobs are recognised when it is delivered again.
fn answered(answer: Result<v1::SubmitJobsResponse, ApiError>) -> IngressAnswer<v1::SubmitJobsResponse> {
    let response = match answer {
        Ok(response) => response,
        Err(error) if passes(error.code()) => return IngressAnswer::Later(error.to_string()),
        Err(error) => return IngressAnswer::Refused(error.to_string()),
    };
    let waiting = response.jobs.iter().find_map(|item| match &item.item {
        Some(Item::Error(error)) if passes(&error.code) => Some(error.message.clone()),
        _ => None,
    });
    waiting.map_or(IngressAnswer::Done(response), IngressAnswer::Later)
}

/// Whether the message may be accepted later.
fn passes(code: &str) -> bool {
    matches!(code, "exhausted" | "unavailable" | "overloaded" | "internal")
}

#[cfg(test)]
mod tests {
    use super::super::roles::Role;
    use super::*;

    fn response(items: Vec<Item>) -> v1::SubmitJobsResponse {
        let item = |item| v1::submit_jobs_response::Item { item: Some(item) };
        v1::SubmitJobsResponse { jobs: items.into_iter().map(item).collect() }
    }

    fn refused(code: &str) -> Item {
        Item::Error(v1::ItemError { code: code.to_owned(), message: "no".to_owned(), retry_after_ms: None })
    }

    #[test]
    fn the_door_opens_only_where_its_senders_are_somebody() {
        let key = || Secret(ApiKey::new([7; ApiKey::RANDOM_BYTES]).reveal());
        let check = |key: Option<Secret>, roles: &[Role], shared, auth| {
            let args = BusSubmitArgs { nats_submits: true, nats_submit_key: key };
            let checked = args.check(RoleSet::of(roles, true, shared).expect("roles"), shared, auth);
            checked.map_err(|error| error.to_string())
        };
        let all = [Role::All];
        assert_eq!(check(None, &all, true, false), Ok(()));
        assert_eq!(check(Some(key()), &all, true, true), Ok(()));
        let refused = [
            (check(None, &all, true, true), "needs --nats-submit-key"),
            (check(Some(key()), &all, true, false), "does nothing without --auth"),
            (check(None, &all, false, false), "name DATABASE_URL"),
            (check(Some(Secret("lgk_no_key".to_owned())), &all, true, true), "must be a key"),
            (check(None, &[Role::Gateway], true, false), "role scheduler"),
        ];
        for (checked, expected) in refused {
            assert!(checked.clone().is_err_and(|text| text.contains(expected)), "{expected}: {checked:?}");
        }
    }

    #[test]
    fn what_may_pass_waits_and_what_may_not_is_answered() {
        let fine = || Item::Job(v1::SubmitJobResponse::default());
        let whole = response(vec![fine(), refused("invalid_argument")]);
        assert_eq!(answered(Ok(whole.clone())), IngressAnswer::Done(whole));
        assert!(matches!(answered(Ok(response(vec![fine(), refused("exhausted")]))), IngressAnswer::Later(_)));
        assert!(matches!(answered(Err(ApiError::Unavailable("away".into()))), IngressAnswer::Later(_)));
        assert!(matches!(answered(Err(ApiError::Forbidden("no".into()))), IngressAnswer::Refused(_)));
    }
}
