//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};

/// A free port. Another process may take it before the server binds it, so the caller must retry the start.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
