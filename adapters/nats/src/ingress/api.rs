//! The engine as the ingress subjects need it.

use async_trait::async_trait;
use lockgate_core::ids::TenantId;
use lockgate_core::request::Caller;
use lockgate_proto::v1;

/// Accepts messages. Every call may repeat an earlier one, because messages are delivered at least once.
#[async_trait]
pub trait Ingress: Send + Sync {
    /// One answer per submission, in order, given after the commit.
    async fn submit(&self, submissions: Vec<Submission>) -> Vec<IngressAnswer<v1::SubmitJobsResponse>>;

    /// Like `submit`, for results of workers, if [`Served::results`](crate::Served::results) are served. An answer
    /// acknowledges the results that it names.
    async fn report(&self, reports: Vec<v1::WorkerMessage>) -> Vec<IngressAnswer<v1::ServerMessage>> {
        reports.iter().map(|_| IngressAnswer::Refused("results are not taken here".to_owned())).collect()
    }
}

/// Jobs of one message. Each has an id or a key, so that a repeat is recognised.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The sender, by its own statement.
    pub caller: Caller,
    /// The tenant that the sender asked for, if any.
    pub tenant: Option<TenantId>,
    pub request: v1::SubmitJobsRequest,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IngressAnswer<T> {
    /// Decided and durable. Single jobs may have been refused.
    Done(T),
    /// The message as a whole can never be accepted, with the reason.
    Refused(String),
    /// Not decided, in whole or in part, because a service is unreachable or full. The message is kept and delivered again.
    Later(String),
}
