//! How workers and clients reach a Lockgate server over gRPC: over TLS or without, and with which credential.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use crate::{FileNames, TlsError, TlsPaths};

/// Applications have their own flags for these files, so errors name the files' purpose.
const NAMES: FileNames = FileNames { ca: "TLS authority", cert: "client certificate", key: "key of the client certificate" };

/// A channel that adds the credential to every call.
pub type BearerChannel = InterceptedService<Channel, Bearer>;

/// An API key or a token. Its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(Arc<str>);

impl Credential {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Credential {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Credential {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// TLS settings for `https` addresses. All files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Authorities trusted besides the public ones.
    pub ca: Option<PathBuf>,
    /// The client certificate with its chain, and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// How a client authenticates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub credential: Option<Credential>,
    pub tls: TlsFiles,
    /// The server is in this process, whatever its address looks like, so a credential may be sent to it without TLS.
    pub in_process: bool,
    /// The caller allows a credential to be sent over a network without TLS, because the network is trusted or encrypted
    /// otherwise.
    pub plaintext: bool,
}

/// Why a server cannot be reached with these settings.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("{0:?} is not an address; it must look like https://host:port, or http://host:port")]
    Address(String),
    #[error("address {0:?}: a credential must not travel in the clear; write https:// (http:// is for this machine only)")]
    InTheClear(String),
    #[error("the credential cannot be sent: it must be one word of plain ASCII")]
    Credential,
    #[error(transparent)]
    Files(TlsError),
    #[error("address {url:?}: TLS cannot be used like this: {error}")]
    Tls { url: String, error: tonic::transport::Error },
}

impl Access {
    /// The endpoint of the server at `url`. Nothing is sent yet.
    pub fn endpoint(&self, url: &str) -> Result<Endpoint, AccessError> {
        let wrong = || AccessError::Address(url.to_owned());
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|_| wrong())?;
        let uri = endpoint.uri();
        match (uri.scheme_str(), uri.host()) {
            (Some("https"), Some(_)) => {}
            (Some("http"), Some(_)) if self.may_speak_in_the_clear(uri) => return Ok(endpoint),
            (Some("http"), Some(_)) => return Err(AccessError::InTheClear(url.to_owned())),
            _ => return Err(wrong()),
        }
        endpoint.tls_config(self.tls.config()?).map_err(|error| AccessError::Tls { url: url.to_owned(), error })
    }

    fn may_speak_in_the_clear(&self, uri: &Uri) -> bool {
        self.credential.is_none() || self.in_process || self.plaintext || is_here(uri)
    }

    /// Adds the credential, if there is one, to every call.
    pub fn bearer(&self) -> Result<Bearer, AccessError> {
        let header = |credential: &Credential| {
            let word = Some(&*credential.0).filter(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()));
            let text = format!("Bearer {}", word.ok_or(AccessError::Credential)?);
            let mut value: MetadataValue<Ascii> = text.parse().map_err(|_| AccessError::Credential)?;
            value.set_sensitive(true);
            Ok(value)
        };
        Ok(Bearer(self.credential.as_ref().map(header).transpose()?))
    }
}

/// Adds the header `authorization` to calls.
#[derive(Clone, Debug, Default)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

impl TlsFiles {
    fn config(&self) -> Result<ClientTlsConfig, AccessError> {
        let (cert, key) = self.identity.clone().unzip();
        let tls = TlsPaths { ca: self.ca.clone(), cert, key }.read(NAMES).map_err(AccessError::Files)?;
        let mut config = ClientTlsConfig::new().with_webpki_roots();
        if let Some(pem) = tls.ca_pem() {
            config = config.ca_certificate(Certificate::from_pem(pem));
        }
        if let Some((cert, key)) = tls.identity_pem() {
            config = config.identity(Identity::from_pem(cert, key));
        }
        Ok(config)
    }
}

/// Whether the address is on this machine.
fn is_here(uri: &Uri) -> bool {
    crate::is_here(uri.host().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_key() -> Access {
        Access { credential: Some("lgk_secret".into()), ..Access::default() }
    }

    #[test]
    fn a_credential_goes_over_tls_or_stays_on_this_machine() {
        for url in ["https://gate.example:8080", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
            assert!(with_key().endpoint(url).is_ok(), "{url}");
        }
        for url in ["http://gate.example", "http://10.0.0.7:8080", "http://localhost.example", "http://127.0.0.1.example"] {
            assert!(matches!(with_key().endpoint(url), Err(AccessError::InTheClear(_))), "{url}");
            assert!(Access::default().endpoint(url).is_ok(), "{url}: without a credential there is nothing to hide");
            assert!(Access { in_process: true, ..with_key() }.endpoint(url).is_ok(), "{url}");
            assert!(Access { plaintext: true, ..with_key() }.endpoint(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in ["", "nonsense", "host:8080", "ftp://host", "https://"] {
            assert!(matches!(Access::default().endpoint(url), Err(AccessError::Address(_))), "{url:?}");
        }
    }

    #[test]
    fn a_credential_is_sent_and_never_printed() {
        let access = with_key();
        let request = access.bearer().unwrap().call(Request::new(())).unwrap();
        assert_eq!(request.metadata().get("authorization").unwrap(), "Bearer lgk_secret");
        let printed = format!("{access:?} {:?} {:?}", access.bearer().unwrap(), request.metadata());
        assert!(!printed.contains("lgk_secret"), "{printed}");
        for text in ["", "two words", "line\nbreak", "ключ"] {
            let error = Access { credential: Some(text.into()), ..Access::default() }.bearer().unwrap_err().to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        let none = Access::default().bearer().unwrap().call(Request::new(())).unwrap();
        assert!(none.metadata().is_empty());
    }

    #[test]
    fn files_that_are_missing_or_no_pem_are_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "nonsense").unwrap();
        let empty = file.path().to_owned();
        let missing = PathBuf::from("/no/such/file");
        let cases = [
            (TlsFiles { ca: Some(missing.clone()), identity: None }, "/no/such/file"),
            (TlsFiles { ca: Some(empty.clone()), identity: None }, "no certificate in it"),
            (TlsFiles { ca: None, identity: Some((missing, empty.clone())) }, "client certificate /no/such/file"),
            (TlsFiles { ca: None, identity: Some((empty.clone(), empty)) }, "no certificate in it"),
        ];
        for (tls, expected) in cases {
            let error = Access { tls, ..Access::default() }.endpoint("https://host").unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
