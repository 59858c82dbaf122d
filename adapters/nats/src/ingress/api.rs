//! What stands behind the doors: the engine, as far as a message needs it.

use async_trait::async_trait;
use lockgate_core::ids::TenantId;
use lockgate_core::request::Caller;
use lockgate_proto::v1;

/// Takes messages in. Every call may repeat what was taken before: a message is delivered at least once.
#[async_trait]
pub trait Ingress: Send + Sync {
    /// One answer for each, in their order, given after the commit.
    async fn submit(&self, submissions: Vec<Submission>) -> Vec<IngressAnswer<v1::SubmitJobsResponse>>;

    /// Like `submit`, for results of workers, where [`Served::results`](crate::Served::results) are. An answer acknowledges the results
    /// that it names.
    async fn report(&self, reports: Vec<v1::WorkerMessage>) -> Vec<IngressAnswer<v1::ServerMessage>> {
        reports.iter().map(|_| IngressAnswer::Refused("results are not taken here".to_owned())).collect()
    }
}

/// Jobs that came in one message. Each has an id or a key, so that a repeat is recognised.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// Who sends, by their own word.
    pub caller: Caller,
    /// The tenant that they asked for, if any.
    pub tenant: Option<TenantId>,
    pub request: v1::SubmitJobsRequest,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IngressAnswer<T> {
    /// Decided and durable. Jobs may still have been refused one by one.
    Done(T),
    /// The message as a whole can never be taken, and why.
    Refused(String),
    /// Not decided, in whole or in part, because something is away or full. The message is kept and comes again.
    Later(String),
}
