//! The reference Bus passes its own suite.

use std::sync::Arc;

use lockgate_conformance::bus::BusHarness;
use lockgate_memory::MemoryBus;
use lockgate_ports::Bus;

async fn harness() -> BusHarness {
    let bus = MemoryBus::default();
    let another: Arc<dyn Bus> = Arc::new(bus.another());
    BusHarness::new(Arc::new(bus), another, ())
}

lockgate_conformance::bus_conformance! { harness }
