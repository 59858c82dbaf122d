//! TLS towards the servers, and the meaning of its failures.

use async_nats::ConnectError as ClientError;
use lockgate_tls::{Clear, Tls, is_here};

use crate::error::ConnectError;
use crate::options::Options;

impl Options {
    /// Uses TLS if an address says so, `tls://`. Clear-text servers must be on this machine, or `clear` must allow them.
    pub fn secured(mut self, tls: &Tls, clear: Clear) -> Result<Self, ConnectError> {
        let addresses = self.addresses()?;
        if addresses.iter().any(async_nats::ServerAddr::tls_required) {
            self.tls = Some(tls.clone());
            return Ok(self);
        }
        if tls.is_given() {
            return Err(ConnectError::Contradiction);
        }
        if clear == Clear::HereOnly && !addresses.iter().all(|address| is_here(address.host())) {
            return Err(ConnectError::InTheClear);
        }
        Ok(self)
    }

    pub(crate) fn refused(&self, error: &ClientError) -> ConnectError {
        match self.tls.as_ref().and_then(|tls| tls.explain(error)) {
            Some(why) => ConnectError::Tls(why),
            None => ConnectError::Client(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use lockgate_tls::{FileNames, TlsPaths};

    use super::*;

    #[test]
    fn nothing_travels_in_the_clear_to_another_machine_unless_somebody_insists() {
        let names = FileNames { ca: "NATS_TLS_CA", cert: "NATS_TLS_CERT", key: "NATS_TLS_KEY" };
        let tls = TlsPaths::default().read(names).unwrap();
        let secured = |urls: &[&str], clear| {
            Options::new(urls.iter().map(ToString::to_string).collect(), "a").secured(&tls, clear).map(|o| o.tls.is_some())
        };
        assert!(!secured(&["nats://127.0.0.1:1", "localhost:2"], Clear::HereOnly).unwrap());
        assert!(secured(&["tls://bus:1", "nats://bus:2"], Clear::HereOnly).unwrap(), "one that asks for it decides for all");
        assert!(matches!(secured(&["localhost:1", "bus:2"], Clear::HereOnly), Err(ConnectError::InTheClear)));
        assert!(!secured(&["nats://bus:2"], Clear::Anywhere).unwrap());
    }
}
