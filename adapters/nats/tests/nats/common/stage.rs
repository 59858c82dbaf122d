//! A server, an engine, and doors between them.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use lockgate_nats::{DeliveryTerms, DuplicateGuard, IngressSubjects, MemoryGuard, Options, Served, Transport};
use lockgate_proto::v1;
use lockgate_testbed::Nats;
use prost::Message;

use super::engine::FakeEngine;
use super::{entropy, options, server, until};

pub(crate) const SUBMIT: &str = "sys.job.submit";
pub(crate) const RESULT: &str = "sys.job.result";
/// Of every process here: most tests have one.
pub(crate) const ADDRESS: &str = "here";

pub(crate) struct Stage {
    pub(crate) nats: Nats,
    pub(crate) engine: Arc<FakeEngine>,
    pub(crate) terms: DeliveryTerms,
    /// A sender.
    pub(crate) client: Client,
}

impl Stage {
    pub(crate) async fn new(engine: Arc<FakeEngine>, terms: DeliveryTerms) -> Self {
        let nats = server();
        let client = async_nats::connect(nats.url()).await.expect("NATS answers");
        Self { nats, engine, terms, client }
    }

    /// One more process, which knows nothing of the others.
    pub(crate) async fn open(&self) -> IngressSubjects {
        self.open_with(Arc::new(MemoryGuard::default())).await
    }

    pub(crate) async fn open_with(&self, guard: Arc<dyn DuplicateGuard>) -> IngressSubjects {
        let subjects = self.open_without_server(guard).await;
        self.has_streams().await;
        subjects
    }

    /// One more process, in another queue group.
    pub(crate) async fn open_in(&self, queue_group: &str) -> IngressSubjects {
        let options = Options { queue_group: queue_group.to_owned(), ..options(&self.nats) };
        let subjects = self.open_by(&options, Arc::new(MemoryGuard::default())).await;
        self.has_streams().await;
        subjects
    }

    pub(crate) async fn open_without_server(&self, guard: Arc<dyn DuplicateGuard>) -> IngressSubjects {
        self.open_by(&options(&self.nats), guard).await
    }

    async fn open_by(&self, options: &Options, guard: Arc<dyn DuplicateGuard>) -> IngressSubjects {
        let transport = Transport::connect(options, entropy()).await.expect("the options are fine");
        let engine: Arc<FakeEngine> = Arc::clone(&self.engine);
        let served = Served { submits: true, results: Some(ADDRESS.to_owned()) };
        IngressSubjects::open(Arc::new(transport), self.terms, served, engine, guard).await.expect("the doors open")
    }

    /// Doors open before their streams are there.
    pub(crate) async fn has_streams(&self) {
        until("streams and consumers are there", async || {
            let jetstream = self.jetstream();
            for name in ["LOCKGATE_SUBMIT", "LOCKGATE_RESULT"] {
                let Ok(stream) = jetstream.get_stream(name).await else { return false };
                if stream.consumer_info("lockgate").await.is_err() {
                    return false;
                }
            }
            jetstream.get_stream("LOCKGATE_DLQ").await.is_ok()
        })
        .await;
    }

    /// A question that got lost with its server is soon asked again.
    pub(crate) fn jetstream(&self) -> jetstream::Context {
        let mut jetstream = jetstream::new(self.client.clone());
        jetstream.set_timeout(Duration::from_secs(1));
        jetstream
    }

    pub(crate) async fn send(&self, id: Option<&str>, payload: Vec<u8>) {
        self.client.publish_with_headers(SUBMIT, headers(id), payload.into()).await.expect("sent");
        self.client.flush().await.expect("sent");
    }

    pub(crate) async fn ask(&self, subject: &'static str, id: Option<&str>, payload: Vec<u8>) -> async_nats::Message {
        self.client.request_with_headers(subject, headers(id), payload.into()).await.expect("an answer")
    }

    pub(crate) async fn stream(&self, name: &str) -> stream::Info {
        let mut stream = self.jetstream().get_stream(name).await.expect("the stream is there");
        stream.info().await.expect("NATS answers").clone()
    }

    pub(crate) async fn consumer(&self) -> consumer::Info {
        let stream = self.jetstream().get_stream("LOCKGATE_SUBMIT").await.expect("the stream is there");
        stream.consumer_info("lockgate").await.expect("the consumer is there")
    }

    /// Everything that was sent is dealt with.
    pub(crate) async fn is_empty(&self) {
        until("the stream is empty", async || self.stream("LOCKGATE_SUBMIT").await.state.messages == 0).await;
    }

    /// The latest dead letter.
    pub(crate) async fn dead_letter(&self) -> (HeaderMap, Bytes) {
        let stream = self.jetstream().get_stream("LOCKGATE_DLQ").await.expect("the stream is there");
        let message = stream.get_last_raw_message_by_subject("sys.job.dlq").await.expect("a dead letter");
        (message.headers, message.payload)
    }
}

pub(crate) fn headers(id: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(id) = id {
        headers.insert("Nats-Msg-Id", id);
    }
    headers
}

pub(crate) fn jobs(ids: &[&str]) -> Vec<u8> {
    on_topic("fine", ids)
}

pub(crate) fn on_topic(topic: &str, ids: &[&str]) -> Vec<u8> {
    let job = |id: &&str| v1::NewJob { job_id: (*id).into(), topic: topic.into(), ..v1::NewJob::default() };
    v1::SubmitJobsRequest { jobs: ids.iter().map(job).collect() }.encode_to_vec()
}

/// The ids in an answer, and whether each job was there before.
pub(crate) fn submitted(answer: &async_nats::Message) -> Vec<(String, bool)> {
    let answer = v1::SubmitJobsResponse::decode(answer.payload.clone()).expect("an answer to a submit");
    let item = |item: v1::submit_jobs_response::Item| match item.item {
        Some(v1::submit_jobs_response::item::Item::Job(job)) => (job.job_id, job.existing),
        other => panic!("{other:?}"),
    };
    answer.jobs.into_iter().map(item).collect()
}

pub(crate) fn error_code(answer: &async_nats::Message) -> Option<&str> {
    Some(answer.headers.as_ref()?.get("Nats-Service-Error-Code")?.as_str())
}
