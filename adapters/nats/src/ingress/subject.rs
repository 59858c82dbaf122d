//! The two ingress subjects: how their messages are decoded and processed.

use async_trait::async_trait;
use lockgate_proto::v1;
use prost::Message;

use super::api::{Ingress, IngressAnswer, Submission};
use super::inbound_message::InboundMessage;

#[async_trait]
pub(crate) trait IngressSubject: Send + Sync + 'static {
    const SUBJECT: &'static str;
    const STREAM: &'static str;
    /// Whether one process can be addressed, by its address after the subject.
    const IS_ADDRESSED: bool;
    type Order: Send;
    type Reply: Message;

    /// The error says what the sender should do.
    fn read(inbound: &InboundMessage) -> Result<Self::Order, String>;

    async fn enter(ingress: &dyn Ingress, orders: Vec<Self::Order>) -> Vec<IngressAnswer<Self::Reply>>;

    /// Final refusals inside an answer; they become a dead letter.
    fn refusals(reply: &Self::Reply) -> Option<String>;
}

/// New jobs: `SubmitJobsRequest`, answered with `SubmitJobsResponse`. One `SubmitJobRequest` has the same encoding.
pub(crate) struct SubmitSubject;

#[async_trait]
impl IngressSubject for SubmitSubject {
    const SUBJECT: &'static str = "sys.job.submit";
    const STREAM: &'static str = "LOCKGATE_SUBMIT";
    const IS_ADDRESSED: bool = false;
    type Order = Submission;
    type Reply = v1::SubmitJobsResponse;

    fn read(inbound: &InboundMessage) -> Result<Submission, String> {
        let (caller, tenant) = (inbound.caller()?, inbound.tenant()?);
        let mut request = v1::SubmitJobsRequest::decode(inbound.payload.clone())
            .map_err(|error| format!("the message is not a lockgate.v1.SubmitJobsRequest: {error}"))?;
        if request.jobs.is_empty() {
            return Err("the message has no job".to_owned());
        }
        for (n, job) in request.jobs.iter_mut().enumerate() {
            if !job.job_id.is_empty() || !job.idempotency_key.is_empty() {
                continue;
            }
            if !inbound.is_named {
                return Err(format!(
                    "job {n} could be doubled: give it a job_id or an idempotency_key, or the message a Nats-Msg-Id"
                ));
            }
            job.idempotency_key = inbound.key(n);
        }
        Ok(Submission { caller, tenant, request })
    }

    async fn enter(ingress: &dyn Ingress, orders: Vec<Submission>) -> Vec<IngressAnswer<Self::Reply>> {
        ingress.submit(orders).await
    }

    fn refusals(reply: &Self::Reply) -> Option<String> {
        let refused = reply.jobs.iter().enumerate().filter_map(|(n, item)| match &item.item {
            Some(v1::submit_jobs_response::item::Item::Error(error)) => Some(format!("job {n}: {}", error.message)),
            _ => None,
        });
        let refused: Vec<String> = refused.collect();
        (!refused.is_empty()).then(|| refused.join("; "))
    }
}

/// Results of workers: `WorkerMessage`, answered with `ServerMessage`. Attempt tokens identify repeats.
pub(crate) struct ResultSubject;

#[async_trait]
impl IngressSubject for ResultSubject {
    const SUBJECT: &'static str = "sys.job.result";
    const STREAM: &'static str = "LOCKGATE_RESULT";
    const IS_ADDRESSED: bool = true;
    type Order = v1::WorkerMessage;
    type Reply = v1::ServerMessage;

    fn read(inbound: &InboundMessage) -> Result<v1::WorkerMessage, String> {
        let message = v1::WorkerMessage::decode(inbound.payload.clone())
            .map_err(|error| format!("the message is not a lockgate.v1.WorkerMessage: {error}"))?;
        if message.results.is_empty() {
            return Err("the message has no result".to_owned());
        }
        Ok(message)
    }

    async fn enter(ingress: &dyn Ingress, orders: Vec<v1::WorkerMessage>) -> Vec<IngressAnswer<Self::Reply>> {
        ingress.report(orders).await
    }

    /// A result that no longer counts is normal, and the answer says so.
    fn refusals(_: &Self::Reply) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbound_message::inbound;
    use super::*;

    fn job(job_id: &str, idempotency_key: &str) -> v1::NewJob {
        v1::NewJob { job_id: job_id.into(), idempotency_key: idempotency_key.into(), ..v1::NewJob::default() }
    }

    fn payload(jobs: Vec<v1::NewJob>) -> Vec<u8> {
        v1::SubmitJobsRequest { jobs }.encode_to_vec()
    }

    #[test]
    fn every_job_that_is_read_has_an_id_or_a_key() {
        let jobs = payload(vec![job("a", ""), job("", "k"), job("", "")]);
        let first = SubmitSubject::read(&inbound(&[("Nats-Msg-Id", "m")], jobs.clone())).expect("named");
        assert_eq!(first.request.jobs[..2], [job("a", ""), job("", "k")]);
        assert!(!first.request.jobs[2].idempotency_key.is_empty());
        assert_eq!(
            Ok(first),
            SubmitSubject::read(&inbound(&[("Nats-Msg-Id", "m")], jobs.clone())),
            "the same whenever it comes"
        );
        assert!(SubmitSubject::read(&inbound(&[], jobs)).expect_err("refused").contains("job 2"));
    }

    #[test]
    fn one_job_alone_reads_like_a_batch() {
        let one = v1::SubmitJobRequest { job: Some(job("a", "")) }.encode_to_vec();
        assert_eq!(SubmitSubject::read(&inbound(&[], one)).expect("valid").request.jobs, [job("a", "")]);
    }

    #[test]
    fn what_carries_nothing_is_refused() {
        assert!(SubmitSubject::read(&inbound(&[], payload(Vec::new()))).is_err());
        assert!(SubmitSubject::read(&inbound(&[], vec![0xff])).expect_err("refused").contains("SubmitJobsRequest"));
        assert!(ResultSubject::read(&inbound(&[], v1::WorkerMessage::default().encode_to_vec())).is_err());
        assert!(ResultSubject::read(&inbound(&[], vec![0xff])).expect_err("refused").contains("WorkerMessage"));
    }

    #[test]
    fn refused_jobs_are_named_by_their_place() {
        use v1::submit_jobs_response::Item;
        use v1::submit_jobs_response::item::Item::{Error, Job};

        let error = v1::ItemError { code: "invalid_argument".into(), message: "topic is bad".into(), retry_after_ms: None };
        let fine = || Item { item: Some(Job(v1::SubmitJobResponse::default())) };
        let reply = v1::SubmitJobsResponse { jobs: vec![fine(), Item { item: Some(Error(error)) }] };
        assert_eq!(SubmitSubject::refusals(&reply).as_deref(), Some("job 1: topic is bad"));
        assert_eq!(SubmitSubject::refusals(&v1::SubmitJobsResponse { jobs: vec![fine()] }), None);
    }
}
