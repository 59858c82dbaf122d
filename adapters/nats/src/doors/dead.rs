//! Letters that can never be taken, kept for a person.

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::message::PublishMessage;

use super::letter::Letter;
use super::streams::DEAD_SUBJECT;
use crate::transport::Transport;

const SUBJECT: &str = "x-lockgate-subject";
const REASON: &str = "x-lockgate-reason";
const REASON_BYTES_MAX: usize = 2 * 1024;

/// Stores the letter as it came, with its own headers, where it was sent and why it was refused. Returns when JetStream has
/// acknowledged it. One that is stored twice has the same message id.
pub(crate) async fn keep(transport: &Transport, subject: &str, letter: &Letter, why: &str) -> Result<(), async_nats::Error> {
    let mut headers = letter.headers.clone();
    headers.insert(SUBJECT, subject);
    headers.insert(REASON, one_line(why).as_str());
    headers.insert(NATS_MESSAGE_ID, format!("dead:{}", letter.id).as_str());
    let message = PublishMessage::build().payload(letter.payload.clone()).headers(headers);
    transport.jetstream().send_publish(DEAD_SUBJECT, message).await?.await?;
    Ok(())
}

/// A header ends with its line.
pub(crate) fn one_line(text: &str) -> String {
    let clipped = &text[..text.floor_char_boundary(REASON_BYTES_MAX)];
    clipped.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_fits_into_a_header() {
        assert_eq!(one_line("a\r\nb"), "a  b");
        assert_eq!(one_line(&"ä".repeat(2_000)).len(), REASON_BYTES_MAX);
    }
}
