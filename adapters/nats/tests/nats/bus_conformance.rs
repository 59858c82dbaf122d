//! Two processes on one NATS pass the Bus suite.

use std::sync::Arc;

use lockgate_conformance::bus::BusHarness;

use crate::common::{bus, server};

async fn harness() -> BusHarness {
    let nats = server();
    let (near, far) = (bus(&nats).await, bus(&nats).await);
    BusHarness::new(Arc::new(near), Arc::new(far), nats)
}

lockgate_conformance::bus_conformance! { harness }
