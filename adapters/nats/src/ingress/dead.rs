//! Messages that can never be accepted, kept for a person.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::message::PublishMessage;

use super::inbound_message::InboundMessage;
use super::streams::DEAD_SUBJECT;
use crate::transport::Transport;

const SUBJECT: &str = "x-lockgate-subject";
const REASON: &str = "x-lockgate-reason";
const REASON_BYTES_MAX: usize = 2 * 1024;
/// The prefix of all headers that NATS itself acts on.
const OF_NATS: &str = "Nats-";

/// Stores the message as it came, with its own headers, its subject and the reason for the refusal. Returns when JetStream
/// has acknowledged it. A message stored twice has one message id.
pub(crate) async fn keep(
    transport: &Transport,
    subject: &str,
    inbound: &InboundMessage,
    why: &str,
) -> Result<(), async_nats::Error> {
    let mut headers = own(&inbound.headers);
    headers.insert(SUBJECT, subject);
    headers.insert(REASON, one_line(why).as_str());
    headers.insert(NATS_MESSAGE_ID, format!("dead:{}", inbound.id).as_str());
    let message = PublishMessage::build().payload(inbound.payload.clone()).headers(headers);
    transport.jetstream().send_publish(DEAD_SUBJECT, message).await?.await?;
    Ok(())
}

/// The sender's headers without its instructions to the stream: the stream of dead letters would follow them too, and with
/// `Nats-Expected-Stream`, for instance, refuse the message for ever.
fn own(headers: &HeaderMap) -> HeaderMap {
    let mut own = HeaderMap::new();
    for (name, values) in headers.iter() {
        let text: &str = name.as_ref();
        if text.get(..OF_NATS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OF_NATS)) {
            continue;
        }
        for value in values {
            own.append(name.clone(), value.clone());
        }
    }
    own
}

/// A header must not contain a line end.
pub(crate) fn one_line(text: &str) -> String {
    let clipped = &text[..text.floor_char_boundary(REASON_BYTES_MAX)];
    clipped.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingress::inbound_message::inbound;

    #[test]
    fn a_letter_keeps_its_own_headers_and_none_of_those_to_nats() {
        let to_nats = [("Nats-Expected-Stream", "A"), ("nats-rollup", "all"), ("NATS-Expected-Last-Sequence", "7")];
        let mine = [("x", "1"), ("x", "2"), ("Natural", "yes"), ("Nat", "yes")];
        let kept = own(&inbound(&[&to_nats[..], &mine[..]].concat(), "").headers);
        assert_eq!(kept.get_all("x").map(|value| value.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert!(kept.get("Natural").is_some() && kept.get("Nat").is_some() && kept.len() == 3, "{kept:?}");
    }

    #[test]
    fn a_reason_fits_into_a_header() {
        assert_eq!(one_line("a\r\nb"), "a  b");
        assert_eq!(one_line(&"ä".repeat(2_000)).len(), REASON_BYTES_MAX);
    }
}
