//! One server for all cases of a test program, each with an installation of its own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockgate_redis::Options;
use lockgate_testbed::Redis;

static SERVER: OnceLock<Redis> = OnceLock::new();
static INSTALLATIONS: AtomicU64 = AtomicU64::new(0);

/// With more patience than in use: a busy machine is no fault.
pub(crate) fn options() -> Options {
    let server = SERVER.get_or_init(|| Redis::start().unwrap_or_else(|error| panic!("{error:#}")));
    let installation = format!("case-{}", INSTALLATIONS.fetch_add(1, Ordering::Relaxed));
    Options { response_timeout: Duration::from_secs(10), ..Options::new(server.url(), installation) }
}
