//! Jobs that come over NATS, and what workers there report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use clap::Args;
use clap::builder::FalseyValueParser;
use futures::future::join_all;
use lockgate_core::access::ApiKey;
use lockgate_engine::ApiError;
use lockgate_gateway::{Gateway, Letters, Outposts};
use lockgate_kernel::Secret;
use lockgate_nats::{Answer, Doors, Ingress, Posts, Served, Submission, Terms, Transport};
use lockgate_ports::{Entropy, Mint};
use lockgate_proto::v1;
use lockgate_proto::v1::submit_jobs_response::item::Item;
use prometheus_client::registry::Registry;

use super::guard::SharedGuard;
use super::roles::Cast;
use super::{Serve, numbers, outposts};
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct LetterArgs {
    /// Take jobs from the NATS subject sys.job.submit; needs JetStream, and an account that no other installation uses
    #[arg(long, env = "LOCKGATE_NATS_SUBMITS", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = "Cluster")]
    nats_submits: bool,

    /// Key of role submitter that stands for everybody whom NATS lets publish there; needed with --auth
    #[arg(long, env = "LOCKGATE_NATS_SUBMIT_KEY", hide_env_values = true, value_name = "KEY", value_parser = secret,
        help_heading = "Cluster")]
    nats_submit_key: Option<Secret>,
}

/// Read later: what clap refuses it prints, whole.
fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret(text.to_owned()))
}

impl LetterArgs {
    fn key(&self) -> Result<Option<ApiKey>, CliError> {
        // A variable that is set to nothing is not set.
        let given = self.nats_submit_key.as_ref().filter(|secret| !secret.0.is_empty());
        let wrong =
            |_| CliError::Usage("--nats-submit-key must be a key as `lockgate auth key create` prints it".to_owned());
        given.map(|secret| ApiKey::parse(&secret.0)).transpose().map_err(wrong)
    }

    pub(super) fn check(&self, cast: Cast, shared: bool, auth: bool) -> Result<(), CliError> {
        let text = match (self.nats_submits, self.key()?) {
            (true, _) if !shared => "--nats-submits takes jobs from NATS: name DATABASE_URL, REDIS_URL and NATS_URL",
            (true, _) if !cast.engine.scheduler => "--nats-submits is for processes with the role scheduler",
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
    /// Opens the doors that are to be open.
    pub(super) async fn letters(
        &self,
        gateway: &Gateway,
        entropy: Arc<dyn Entropy>,
        registry: &mut Registry,
    ) -> Result<Option<PostOffice>, CliError> {
        let wanted = self.letters.nats_submits || self.outposts.nats_workers;
        let Some(servers) = self.servers.shared()?.filter(|_| wanted) else { return Ok(None) };
        let unusable = |error: lockgate_nats::ConnectError| CliError::Server(error.to_string());
        let address = entropy.uuid(gateway.clock.now());
        let transport = Transport::connect(&servers.nats().map_err(unusable)?, entropy).await.map_err(unusable)?;
        let transport = Arc::new(transport);
        let guard = Arc::new(SharedGuard(servers.guard().await?));
        let submits = if self.letters.nats_submits { gateway.letters(self.letters.key()?) } else { None };
        let outposts = self.outposts.open(gateway, &transport, address, self.lost_after)?;
        let served =
            Served { submits: submits.is_some(), results: outposts.as_ref().map(|outposts| outposts.address().to_owned()) };
        let inbox = Arc::new(Inbox { letters: submits, outposts: outposts.clone(), barred: AtomicBool::new(false) });
        let doors = Doors::open(Arc::clone(&transport), Terms::default(), served, inbox, guard).await.map_err(unusable)?;
        numbers::of_letters(registry, doors.meter());
        let posts = match &outposts {
            Some(outposts) => Some(outposts::listen(transport, outposts).await.map_err(unusable)?),
            None => None,
        };
        Ok(Some(PostOffice { doors, posts, outposts }))
    }
}

/// Everything that is open to NATS.
pub(super) struct PostOffice {
    doors: Doors,
    posts: Option<Posts>,
    outposts: Option<Outposts>,
}

impl PostOffice {
    /// Waits until something here ends although it was not stopped; says what and how.
    pub(super) async fn ended(&mut self) -> String {
        let posts = async {
            match &mut self.posts {
                Some(posts) => posts.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            how = self.doors.ended() => how,
            how = posts => how,
        }
    }

    /// New workers go elsewhere, then those that are here; then nothing more is taken.
    pub(super) async fn close(self) {
        if let Some(posts) = self.posts {
            posts.stop().await;
        }
        if let Some(outposts) = self.outposts {
            outposts.close().await;
        }
        self.doors.stop().await;
    }
}

/// What stands behind the doors.
struct Inbox {
    letters: Option<Letters>,
    outposts: Option<Outposts>,
    /// Nothing could be taken the last time.
    barred: AtomicBool,
}

#[async_trait]
impl Ingress for Inbox {
    /// Side by side: the Store makes one commit of what arrives together.
    async fn submit(&self, submissions: Vec<Submission>) -> Vec<Answer<v1::SubmitJobsResponse>> {
        join_all(submissions.into_iter().map(|submission| self.take(submission))).await
    }

    async fn report(&self, reports: Vec<v1::WorkerMessage>) -> Vec<Answer<v1::ServerMessage>> {
        join_all(reports.into_iter().map(|report| self.settle(report))).await
    }
}

impl Inbox {
    async fn take(&self, Submission { caller, tenant, request }: Submission) -> Answer<v1::SubmitJobsResponse> {
        let Some(letters) = &self.letters else { return Answer::Refused("no jobs are taken here".to_owned()) };
        let answer = answered(letters.submit(&caller, tenant.as_ref(), request.jobs).await);
        let waits = matches!(answer, Answer::Later(_));
        if let Answer::Later(why) = &answer
            && !self.barred.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(why, "jobs from NATS wait; nothing is lost");
        }
        if !waits && self.barred.swap(false, Ordering::Relaxed) {
            tracing::info!("jobs from NATS are taken again");
        }
        answer
    }
}

impl Inbox {
    async fn settle(&self, report: v1::WorkerMessage) -> Answer<v1::ServerMessage> {
        let Some(outposts) = &self.outposts else { return Answer::Refused("no results are taken here".to_owned()) };
        match outposts.report(report).await {
            Ok(acknowledged) => Answer::Done(acknowledged),
            Err(error) if passes(error.code()) => Answer::Later(error.to_string()),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }
}

/// A letter of which a part could not be decided waits as a whole: what was taken of it is recognised when it comes again.
fn answered(answer: Result<v1::SubmitJobsResponse, ApiError>) -> Answer<v1::SubmitJobsResponse> {
    let response = match answer {
        Ok(response) => response,
        Err(error) if passes(error.code()) => return Answer::Later(error.to_string()),
        Err(error) => return Answer::Refused(error.to_string()),
    };
    let waiting = response.jobs.iter().find_map(|item| match &item.item {
        Some(Item::Error(error)) if passes(&error.code) => Some(error.message.clone()),
        _ => None,
    });
    waiting.map_or(Answer::Done(response), Answer::Later)
}

/// Whether the same letter may be taken later.
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
            let args = LetterArgs { nats_submits: true, nats_submit_key: key };
            let checked = args.check(Cast::of(roles, true, shared).expect("roles"), shared, auth);
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
        assert_eq!(answered(Ok(whole.clone())), Answer::Done(whole));
        assert!(matches!(answered(Ok(response(vec![fine(), refused("exhausted")]))), Answer::Later(_)));
        assert!(matches!(answered(Err(ApiError::Unavailable("away".into()))), Answer::Later(_)));
        assert!(matches!(answered(Err(ApiError::Forbidden("no".into()))), Answer::Refused(_)));
    }
}
