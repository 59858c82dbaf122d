//! The address of the kernel and the protection of the connection.

use std::fmt;

use lockgate_tls::{FileNames, TlsError, TlsPaths, is_here};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

const NAMES: FileNames =
    FileNames { ca: "SAFETY_KERNEL_TLS_CA", cert: "SAFETY_KERNEL_TLS_CERT", key: "SAFETY_KERNEL_TLS_KEY" };

/// How to connect to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelTls {
    /// Only over TLS, trusting the given authority or else the public ones, with a client certificate if there is one.
    Required(TlsPaths),
    /// Unencrypted, as configured explicitly.
    Insecure,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelAddress {
    pub uri: String,
    pub tls: ChannelTls,
    /// Sent with every call, if the kernel requires one.
    pub key: Option<Secret>,
}

/// A key whose `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Adds the key to every call.
#[derive(Clone)]
pub(crate) struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("SAFETY_KERNEL_ADDR {0:?} is no address; write host:port or https://host:port")]
    Uri(String),
    #[error(transparent)]
    Files(#[from] TlsError),
    #[error("SAFETY_KERNEL_API_KEY must be plain ASCII text")]
    Key,
    #[error("SAFETY_KERNEL_API_KEY must not travel in the clear to another machine; leave SAFETY_KERNEL_INSECURE out")]
    InTheClear,
    #[error("the TLS settings of the safety kernel cannot be used: {0}")]
    Tls(String),
}

impl KernelAddress {
    pub(crate) fn bearer(&self) -> Result<Bearer, AddressError> {
        if self.key.is_some() && self.tls == ChannelTls::Insecure && !self.is_here() {
            return Err(AddressError::InTheClear);
        }
        let value = self.key.as_ref().map(|key| format!("Bearer {}", key.0).parse::<MetadataValue<Ascii>>());
        let mut value = value.transpose().map_err(|_| AddressError::Key)?;
        value.iter_mut().for_each(|value| value.set_sensitive(true));
        Ok(Bearer(value))
    }

    fn is_here(&self) -> bool {
        let bare = self.uri.rsplit_once("://").map_or(self.uri.as_str(), |(_, rest)| rest);
        is_here(bare.rsplit_once(':').map_or(bare, |(host, _)| host))
    }

    pub(crate) fn endpoint(&self) -> Result<Endpoint, AddressError> {
        let wrong = || AddressError::Uri(self.uri.clone());
        let bare = self.uri.rsplit_once("://").map_or(self.uri.as_str(), |(_, rest)| rest);
        if bare.is_empty() {
            return Err(wrong());
        }
        let scheme = if self.tls == ChannelTls::Insecure { "http" } else { "https" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{bare}")).map_err(|_| wrong())?;
        // A scheme implies a port. A word without scheme and port would be looked up in vain until the breaker opens.
        let has_port = endpoint.uri().port().is_some() || self.uri.contains("://");
        if !has_port || endpoint.uri().host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let ChannelTls::Required(files) = &self.tls else { return Ok(endpoint) };
        let tls = files.read(NAMES)?;
        let mut config = match tls.ca_pem() {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_webpki_roots(),
        };
        if let Some((cert, key)) = tls.identity_pem() {
            config = config.identity(Identity::from_pem(cert, key));
        }
        endpoint.tls_config(config).map_err(|error| AddressError::Tls(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_follows_from_the_protection_whatever_was_typed() {
        for uri in ["127.0.0.1:9", "http://127.0.0.1:9", "https://127.0.0.1:9"] {
            let plain = KernelAddress { uri: uri.to_owned(), tls: ChannelTls::Insecure, key: None };
            assert_eq!(plain.endpoint().unwrap().uri().scheme_str(), Some("http"));
            let safe = KernelAddress { uri: uri.to_owned(), tls: ChannelTls::Required(TlsPaths::default()), key: None };
            assert_eq!(safe.endpoint().unwrap().uri().scheme_str(), Some("https"));
        }
    }

    #[test]
    fn what_is_no_address_or_no_authority_is_named() {
        let to = |uri: &str| KernelAddress { uri: uri.to_owned(), tls: ChannelTls::Insecure, key: None }.endpoint();
        for wrong in ["", "garbage", "kernel:port", "kernel:99999", ":9", "http://"] {
            assert!(matches!(to(wrong), Err(AddressError::Uri(_))), "{wrong}");
        }
        assert!(to("kernel:9").is_ok() && to("https://kernel.example").is_ok());
        let files = TlsPaths { ca: Some("/no/such/file".into()), ..TlsPaths::default() };
        let missing = KernelAddress { uri: "a:1".to_owned(), tls: ChannelTls::Required(files), key: None };
        let error = missing.endpoint().unwrap_err().to_string();
        assert!(error.starts_with("SAFETY_KERNEL_TLS_CA /no/such/file"), "{error}");
    }

    #[test]
    fn a_key_stays_on_this_machine_or_is_encrypted() {
        let to = |uri: &str, tls| KernelAddress { uri: uri.to_owned(), tls, key: Some(Secret("lgk_x".to_owned())) }.bearer();
        for here in ["127.0.0.1:9", "http://localhost:9", "[::1]:9"] {
            assert!(to(here, ChannelTls::Insecure).is_ok(), "{here}");
        }
        assert!(matches!(to("kernel.example:9", ChannelTls::Insecure), Err(AddressError::InTheClear)));
        assert!(to("kernel.example:9", ChannelTls::Required(TlsPaths::default())).is_ok());
        assert!(!format!("{:?}", Secret("lgk_x".to_owned())).contains("lgk_x"));
    }
}
