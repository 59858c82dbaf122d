//! Metric families of the sockets.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What became of connections. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct ConnectionMetrics {
    pub(crate) open: Gauge,
    pub(crate) full: Counter,
    pub(crate) handshakes_failed: Counter,
}

impl ConnectionMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("lockgate_connections_open", "Connections to the API that are open.", self.open.clone());
        registry.register(
            "lockgate_connections_full",
            "Times that new connections had to wait because as many as allowed were open.",
            self.full.clone(),
        );
        registry.register(
            "lockgate_tls_handshakes_failed",
            "Connections that ended before TLS was agreed on.",
            self.handshakes_failed.clone(),
        );
    }
}
