//! How the server is reached: over TLS or in clear text.

use lockgate_tls::{Clear, Tls, is_here};
use redis::{Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisError, TlsCertificates};

use crate::error::ConnectError;
use crate::options::Options;

/// A client, and the meaning of its failures.
pub(crate) struct ServerClient {
    pub(crate) client: Client,
    tls: Option<Tls>,
}

impl Options {
    /// Uses TLS for a `rediss://` address. A clear-text address is accepted for this machine, or where `clear` allows it.
    pub fn secured(mut self, tls: &Tls, clear: Clear) -> Result<Self, ConnectError> {
        let host = match connection(&self.url)? {
            ConnectionAddr::TcpTls { insecure: true, .. } => return Err(ConnectError::Unchecked),
            ConnectionAddr::TcpTls { .. } => {
                self.tls = Some(tls.clone());
                return Ok(self);
            }
            ConnectionAddr::Tcp(host, _) => Some(host),
            // A Unix socket, which is always on this machine.
            _ => None,
        };
        if tls.is_given() {
            return Err(ConnectError::Contradiction);
        }
        if clear == Clear::HereOnly && host.is_some_and(|host| !is_here(&host)) {
            return Err(ConnectError::InTheClear);
        }
        Ok(self)
    }
}

fn connection(url: &str) -> Result<ConnectionAddr, ConnectError> {
    let info = url.into_connection_info().map_err(|error| ConnectError::Url(error.to_string()))?;
    Ok(info.addr().clone())
}

impl ServerClient {
    pub(crate) fn of(options: &Options) -> Result<Self, ConnectError> {
        let url = options.url.as_str();
        let client = match &options.tls {
            Some(tls) => Client::build_with_tls(url, certificates(tls)),
            None => Client::open(url),
        };
        let client = client.map_err(|error| ConnectError::Url(error.to_string()))?;
        Ok(Self { client, tls: options.tls.clone() })
    }

    pub(crate) fn why(&self, error: &RedisError) -> String {
        self.tls.as_ref().and_then(|tls| tls.explain(error)).unwrap_or_else(|| error.to_string())
    }

    pub(crate) fn refused(&self, error: RedisError) -> ConnectError {
        match self.tls.as_ref().and_then(|tls| tls.explain(&error)) {
            Some(why) => ConnectError::Unreachable(why),
            None => error.into(),
        }
    }
}

fn certificates(tls: &Tls) -> TlsCertificates {
    let shown = |(cert, key): (&[u8], &[u8])| ClientTlsConfig { client_cert: cert.to_vec(), client_key: key.to_vec() };
    TlsCertificates { client_tls: tls.identity_pem().map(shown), root_cert: tls.ca_pem().map(<[u8]>::to_vec) }
}

#[cfg(test)]
mod tests {
    use lockgate_tls::{FileNames, TlsPaths};

    use super::*;

    fn secured(url: &str, clear: Clear) -> Result<Options, ConnectError> {
        let names = FileNames { ca: "REDIS_TLS_CA", cert: "REDIS_TLS_CERT", key: "REDIS_TLS_KEY" };
        Options::new(url, "default").secured(&TlsPaths::default().read(names).unwrap(), clear)
    }

    #[test]
    fn nothing_travels_in_the_clear_to_another_machine_unless_somebody_insists() {
        for url in ["redis://127.0.0.1:1/", "redis://localhost/", "redis+unix:///run/redis.sock"] {
            assert!(secured(url, Clear::HereOnly).unwrap().tls.is_none(), "{url}");
        }
        assert!(secured("rediss://cache/", Clear::HereOnly).unwrap().tls.is_some());
        assert!(matches!(secured("redis://cache/", Clear::HereOnly), Err(ConnectError::InTheClear)));
        assert!(secured("redis://cache/", Clear::Anywhere).is_ok());
    }

    #[test]
    fn a_server_is_looked_at_or_not_spoken_to() {
        assert!(matches!(secured("rediss://cache/#insecure", Clear::Anywhere), Err(ConnectError::Unchecked)));
    }

    #[test]
    fn a_password_is_not_printed() {
        let printed = format!("{:?}", Options::new("redis://ann:s3cret@cache/", "default"));
        assert!(printed.contains("default") && !printed.contains("s3cret"), "{printed}");
    }
}
