//! The JetStream streams. They are created again whenever they are gone, because they hold only messages in transit.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};

use super::DeliveryTerms;
use super::subject::IngressSubject;

pub(crate) const DEAD_SUBJECT: &str = "sys.job.dlq";
const DEAD_STREAM: &str = "LOCKGATE_DLQ";
/// All processes share this consumer.
const CONSUMER: &str = "lockgate";
const KEPT_FOR: Duration = Duration::from_hours(7 * 24);
const DEAD_KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// Within this time a message with a known id is not stored again.
const SAME_WITHIN: Duration = Duration::from_mins(2);
/// Messages in flight to all processes together.
const UNACKNOWLEDGED_MAX: i64 = 2_048;

/// Makes sure that the subject's stream, its consumer and the stream of dead letters exist.
pub(crate) async fn ensure<D: IngressSubject>(
    jetstream: &Context,
    terms: &DeliveryTerms,
) -> Result<PullConsumer, async_nats::Error> {
    jetstream.create_or_update_stream(dead_letters(terms)).await?;
    jetstream.create_or_update_stream(messages::<D>(terms)).await?;
    Ok(jetstream.create_consumer_on_stream(consumer::<D>(terms), D::STREAM).await?)
}

/// Without JetStream's acknowledgements: the reply subject is for Lockgate's answer, which says that the message is
/// committed, while JetStream's only says that it is stored, perhaps not even on disk.
fn messages<D: IngressSubject>(terms: &DeliveryTerms) -> Config {
    Config {
        name: D::STREAM.to_owned(),
        subjects: subjects::<D>(),
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        num_replicas: terms.replicas,
        no_ack: true,
        duplicate_window: SAME_WITHIN,
        max_age: KEPT_FOR,
        ..Config::default()
    }
}

/// Questions to one process have its address after the subject.
fn subjects<D: IngressSubject>() -> Vec<String> {
    let base = D::SUBJECT.to_owned();
    if D::IS_ADDRESSED { vec![format!("{base}.*"), base] } else { vec![base] }
}

pub(crate) fn dead_letters(terms: &DeliveryTerms) -> Config {
    Config {
        name: DEAD_STREAM.to_owned(),
        subjects: vec![DEAD_SUBJECT.to_owned()],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        num_replicas: terms.replicas,
        duplicate_window: SAME_WITHIN,
        max_age: DEAD_KEPT_FOR,
        ..Config::default()
    }
}

fn consumer<D: IngressSubject>(terms: &DeliveryTerms) -> pull::Config {
    pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: terms.ack_wait,
        max_deliver: terms.max_deliver,
        max_ack_pending: UNACKNOWLEDGED_MAX,
        // An empty filter selects the whole stream.
        filter_subject: if D::IS_ADDRESSED { String::new() } else { D::SUBJECT.to_owned() },
        ..pull::Config::default()
    }
}
