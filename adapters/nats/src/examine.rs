//! Examines a server: what its settings mean for Lockgate's guarantees.

use std::time::Duration;

use async_nats::{ConnectOptions, ServerInfo};
use lockgate_ports::checkup::{Check, Grade};

use crate::error::ConnectError;
use crate::link::dial;
use crate::options::Options;

const PATIENCE: Duration = Duration::from_secs(2);

/// Every check, in a fixed order.
pub async fn examine(options: &Options) -> Result<Vec<Check>, ConnectError> {
    let connecting = dial(ConnectOptions::new().connection_timeout(PATIENCE), options);
    let connected = tokio::time::timeout(PATIENCE * 2, connecting).await;
    let info = connected.unwrap_or_else(|_| Err(ConnectError::Client("no answer".to_owned())))?.server_info();
    Ok(vec![version(&info), durability()])
}

fn version(info: &ServerInfo) -> Check {
    let mut numbers = info.version.split('.').filter_map(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let grade = if (major, minor) >= (2, 9) { Grade::Good } else { Grade::Notice };
    Check::new("version", format!("NATS {}", info.version), grade, "tested: 2.9 and 2.15")
}

/// A server does not report when it syncs, and Lockgate does not depend on it.
fn durability() -> Check {
    let meaning =
        "NATS confirms before it syncs unless sync_interval is always; nothing is promised on its word, only on SQL's";
    Check::new("sync_interval", "not shown", Grade::Good, meaning)
}
