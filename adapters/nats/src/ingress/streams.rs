//! What JetStream keeps for us. Made again whenever it is gone: nothing else is stored there than messages on their way.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};

use super::DeliveryTerms;
use super::subject::IngressSubject;

pub(crate) const DEAD_SUBJECT: &str = "sys.job.dlq";
const DEAD_STREAM: &str = "LOCKGATE_DLQ";
/// All processes take from the same consumer.
const CONSUMER: &str = "lockgate";
const KEPT_FOR: Duration = Duration::from_hours(7 * 24);
const DEAD_KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// Within it a message with the same id is stored once.
const SAME_WITHIN: Duration = Duration::from_mins(2);
/// Messages on their way to all processes together.
const UNACKNOWLEDGED_MAX: i64 = 2_048;

/// Makes sure of the stream of a door, of its consumer and of the dead letters.
pub(crate) async fn ensure<D: IngressSubject>(
    jetstream: &Context,
    terms: &DeliveryTerms,
) -> Result<PullConsumer, async_nats::Error> {
    jetstream.create_or_update_stream(dead_letters(terms)).await?;
    jetstream.create_or_update_stream(messages::<D>(terms)).await?;
    Ok(jetstream.create_consumer_on_stream(consumer::<D>(terms), D::STREAM).await?)
}

/// Without acknowledgements: the sender's reply subject is for our answer, which says that the message is committed,
/// where JetStream's says only that it is stored, perhaps not even on disk.
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

/// Those who ask one process name it after the subject.
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
        // None is all that the stream has.
        filter_subject: if D::IS_ADDRESSED { String::new() } else { D::SUBJECT.to_owned() },
        ..pull::Config::default()
    }
}
