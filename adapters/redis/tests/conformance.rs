//! The whole list of what lanes must do, on a real server.

mod support;

use std::sync::Arc;

use lockgate_ports::{LaneLayout, Lanes};
use lockgate_redis::RedisLanes;
use support::options;

lockgate_conformance::lanes_conformance! { lanes }
lockgate_conformance::lanes_lose_nothing! { lanes, cases: 64 }

/// Lanes with a layout and without jobs. They are not connected yet: they connect in the runtime of their first caller.
fn lanes() -> Arc<dyn Lanes> {
    let options = options();
    let lay_out = options.clone();
    let done = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let lanes = RedisLanes::connect(&lay_out).await.unwrap_or_else(|error| panic!("{error}"));
            lanes.adopt(LaneLayout { version: 0, pools: Arc::default() }, Vec::new()).await;
            lanes.rebuild(Vec::new()).await;
        });
    });
    done.join().unwrap();
    Arc::new(RedisLanes::new(&options).unwrap())
}
