//! Metric families of the sockets.

use http::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    door: &'static str,
    outcome: &'static str,
}

/// What became of connections, and of what was asked over them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct ConnectionMetrics {
    pub(crate) open: Gauge,
    pub(crate) full: Counter,
    pub(crate) refused: Counter,
    pub(crate) dismissed: Counter,
    pub(crate) unaccepted: Counter,
    pub(crate) handshakes_failed: Counter,
    answers: Family<ByAnswer, Counter>,
}

const OPEN: (&str, &str) = ("lockgate_connections_open", "Connections to the API that are open");
const FULL: (&str, &str) =
    ("lockgate_connections_full", "Times that new connections had to wait because as many as allowed were open");
const REFUSED: (&str, &str) =
    ("lockgate_connections_refused", "Connections closed at once because their network had as many as it may have");
const DISMISSED: (&str, &str) = (
    "lockgate_connections_dismissed",
    "Idle connections asked to leave because few places were free, to make room for new ones",
);
const UNACCEPTED: (&str, &str) = (
    "lockgate_connections_unaccepted",
    "Times that the system did not hand over a new connection, for lack of file descriptors",
);
const HANDSHAKES: (&str, &str) = ("lockgate_tls_handshakes_failed", "Connections that ended before TLS was agreed on");
const ANSWERS: (&str, &str) =
    ("lockgate_api_requests", "Requests answered, by how: failed ones are the server's fault, refused ones the caller's");

const DOORS: [&str; 2] = ["grpc", "rest"];
const OUTCOMES: [&str; 3] = ["ok", "refused", "failed"];

impl ConnectionMetrics {
    /// Name as it is scraped, type, labels and meaning of every family.
    pub fn described() -> [(String, &'static str, &'static str, &'static str); 7] {
        [
            (OPEN.0.to_owned(), "gauge", "", OPEN.1),
            (format!("{}_total", FULL.0), "counter", "", FULL.1),
            (format!("{}_total", REFUSED.0), "counter", "", REFUSED.1),
            (format!("{}_total", DISMISSED.0), "counter", "", DISMISSED.1),
            (format!("{}_total", UNACCEPTED.0), "counter", "", UNACCEPTED.1),
            (format!("{}_total", HANDSHAKES.0), "counter", "", HANDSHAKES.1),
            (format!("{}_total", ANSWERS.0), "counter", "door, outcome", ANSWERS.1),
        ]
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register(OPEN.0, OPEN.1, self.open.clone());
        registry.register(FULL.0, FULL.1, self.full.clone());
        registry.register(REFUSED.0, REFUSED.1, self.refused.clone());
        registry.register(DISMISSED.0, DISMISSED.1, self.dismissed.clone());
        registry.register(UNACCEPTED.0, UNACCEPTED.1, self.unaccepted.clone());
        registry.register(HANDSHAKES.0, HANDSHAKES.1, self.handshakes_failed.clone());
        registry.register(ANSWERS.0, ANSWERS.1, self.answers.clone());
        // A rate sees nothing of a series that begins with its first count, and a part of nothing is no number.
        for (door, outcome) in DOORS.into_iter().flat_map(|door| OUTCOMES.map(|outcome| (door, outcome))) {
            drop(self.answers.get_or_create(&ByAnswer { door, outcome }));
        }
    }

    /// Of a stream only how it began is known here.
    pub(crate) fn answered<B>(&self, is_grpc: bool, response: &Response<B>) {
        let door = if is_grpc { "grpc" } else { "rest" };
        self.answers.get_or_create(&ByAnswer { door, outcome: outcome(response) }).inc();
    }
}

fn outcome<B>(response: &Response<B>) -> &'static str {
    let status = response.headers().get("grpc-status").and_then(|code| code.to_str().ok());
    match (status, response.status()) {
        // UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS; DEADLINE_EXCEEDED is what took us too long.
        (Some("2" | "4" | "13" | "14" | "15"), _) => "failed",
        (Some("0"), _) => "ok",
        (Some(_), _) => "refused",
        (None, code) if code.is_server_error() => "failed",
        (None, code) if code.is_client_error() => "refused",
        (None, _) => "ok",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_fault_an_answer_is_follows_from_its_status() {
        let rest = |code: u16| outcome(&Response::builder().status(code).body(()).expect("a response"));
        assert_eq!([200, 204, 404, 429, 503].map(rest), ["ok", "ok", "refused", "refused", "failed"]);
        let grpc = |code: &str| outcome(&Response::builder().header("grpc-status", code).body(()).expect("a response"));
        assert_eq!(["0", "5", "8", "14"].map(grpc), ["ok", "refused", "refused", "failed"]);
    }
}
