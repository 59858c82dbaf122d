//! Where the kernel is, and how the way there is protected.

use std::path::PathBuf;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

/// How to speak with the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Only over TLS, trusting this authority or else the public ones.
    Required { ca: Option<PathBuf> },
    /// In the clear: somebody insisted.
    Insecure,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub uri: String,
    pub tls: Tls,
}

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("SAFETY_KERNEL_ADDR {0:?} is no address; write host:port or https://host:port")]
    Uri(String),
    #[error("SAFETY_KERNEL_TLS_CA {}: {error}", path.display())]
    Ca { path: PathBuf, error: std::io::Error },
    #[error("the TLS settings of the safety kernel cannot be used: {0}")]
    Tls(String),
}

impl Address {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, AddressError> {
        let wrong = || AddressError::Uri(self.uri.clone());
        let bare = self.uri.rsplit_once("://").map_or(self.uri.as_str(), |(_, rest)| rest);
        if bare.is_empty() {
            return Err(wrong());
        }
        let scheme = if self.tls == Tls::Insecure { "http" } else { "https" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{bare}")).map_err(|_| wrong())?;
        let Tls::Required { ca } = &self.tls else { return Ok(endpoint) };
        let mut config = ClientTlsConfig::new();
        config = match ca {
            Some(path) => {
                let pem = std::fs::read(path).map_err(|error| AddressError::Ca { path: path.clone(), error })?;
                config.ca_certificate(Certificate::from_pem(pem))
            }
            None => config.with_webpki_roots(),
        };
        endpoint.tls_config(config).map_err(|error| AddressError::Tls(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_follows_from_the_protection_whatever_was_typed() {
        for uri in ["127.0.0.1:9", "http://127.0.0.1:9", "https://127.0.0.1:9"] {
            let plain = Address { uri: uri.to_owned(), tls: Tls::Insecure };
            assert_eq!(plain.endpoint().unwrap().uri().scheme_str(), Some("http"));
            let safe = Address { uri: uri.to_owned(), tls: Tls::Required { ca: None } };
            assert_eq!(safe.endpoint().unwrap().uri().scheme_str(), Some("https"));
        }
    }

    #[test]
    fn what_is_no_address_or_no_authority_is_named() {
        let empty = Address { uri: String::new(), tls: Tls::Insecure };
        assert!(matches!(empty.endpoint(), Err(AddressError::Uri(_))));
        let missing = Address { uri: "a:1".to_owned(), tls: Tls::Required { ca: Some("/no/such/file".into()) } };
        assert!(missing.endpoint().unwrap_err().to_string().contains("/no/such/file"));
    }
}
