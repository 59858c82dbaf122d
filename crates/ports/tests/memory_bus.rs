//! The reference Bus passes its own suite.

use std::sync::Arc;

use lockgate_ports::Bus;
use lockgate_ports::conformance::bus::BusHarness;
use lockgate_ports::memory::MemoryBus;

async fn harness() -> BusHarness {
    let bus = MemoryBus::default();
    let another: Arc<dyn Bus> = Arc::new(bus.another());
    BusHarness::new(Arc::new(bus), another, ())
}

lockgate_ports::bus_conformance! { harness }
