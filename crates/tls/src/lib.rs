//! TLS towards other servers: trusted authorities, client certificates, and errors with advice.
//!
//! One place reads the three files (authority, certificate, key) for every connection that this project makes to somebody
//! else, so they mean the same everywhere and are complained about in the same words.

mod any_name;
mod explain;
mod files;
#[cfg(feature = "grpc")]
pub mod grpc;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;

pub use files::{FileNames, TlsError, TlsPaths};

/// Whether anything may travel in the clear to another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear {
    /// Only on this machine, where no network is involved.
    HereOnly,
    /// Everywhere, because the operator allows it explicitly.
    Anywhere,
}

/// The bytes of a file.
type Pem = Arc<[u8]>;

/// Whom to believe on the way to one server, and what to show there.
#[derive(Clone)]
pub struct Tls {
    names: FileNames,
    ca: Option<Pem>,
    /// A certificate with its chain, and its key.
    identity: Option<(Pem, Pem)>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Checks chain, dates and name of the server.
    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.config)
    }

    /// Whether a file was named. Then TLS must be used, because the operator expects it.
    pub fn is_given(&self) -> bool {
        self.ca.is_some() || self.identity.is_some()
    }

    pub fn has_authority(&self) -> bool {
        self.ca.is_some()
    }

    pub fn shows_certificate(&self) -> bool {
        self.identity.is_some()
    }

    pub const fn names(&self) -> &FileNames {
        &self.names
    }

    /// The authority's file, for clients that read it themselves.
    pub fn ca_pem(&self) -> Option<&[u8]> {
        self.ca.as_deref()
    }

    /// The files of certificate and key, for clients that read them themselves.
    pub fn identity_pem(&self) -> Option<(&[u8], &[u8])> {
        self.identity.as_ref().map(|(cert, key)| (&**cert, &**key))
    }
}

/// Nothing of the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tls");
        shown.field("authority", &self.has_authority()).field("certificate", &self.shows_certificate()).finish()
    }
}

/// Whether what is sent to this host stays on this machine.
pub fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
