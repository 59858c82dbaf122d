//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};

/// A port that nobody listens on now. Somebody else may take it before our server does: whoever starts one tries again.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
