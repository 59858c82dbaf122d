//! The files of a certificate, and what is wrong with them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsFiles {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
    pub(super) client_ca: Option<PathBuf>,
}

/// Tells one version of the files from another: time of change and length of each.
pub(super) type FileStamps = Vec<Option<(Option<SystemTime>, u64)>>;

/// Why there is no TLS with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("TLS file {}: {error}; give a file that this process may read", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "TLS certificate {}: there is no certificate in it; give a PEM file with the server's own first and then the \
         intermediate ones",
        path.display()
    )]
    NoCertificate { path: PathBuf },
    #[error(
        "TLS key {}: there is no private key in it; give a PEM file with a key that is not encrypted",
        path.display()
    )]
    NoKey { path: PathBuf },
    #[error(
        "TLS key {} is not the key of certificate {}; give the two that were made together",
        key.display(), cert.display()
    )]
    NotAPair { cert: PathBuf, key: PathBuf },
    #[error("TLS certificate {} and key {} cannot be used: {error}", cert.display(), key.display())]
    Unusable { cert: PathBuf, key: PathBuf, error: rustls::Error },
    #[error(
        "TLS client authority {}: {error}; give a PEM file with the certificates that sign those of clients",
        path.display()
    )]
    ClientCa { path: PathBuf, error: String },
}

impl TlsFiles {
    pub(super) fn stamps(&self) -> FileStamps {
        let stamp = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok(), metadata.len()))
        };
        [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()].into_iter().flatten().map(stamp).collect()
    }

    /// The provider is named: what else is linked into the process must not decide about its cryptography.
    pub(super) fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(&self.cert)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: self.cert.clone() });
        }
        let key =
            PrivateKeyDer::from_pem_slice(&bytes(&self.key)?).map_err(|_| TlsError::NoKey { path: self.key.clone() })?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.unusable(error))?;
        let builder = match &self.client_ca {
            Some(path) => builder.with_client_cert_verifier(verifier(path, provider)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| self.unusable(error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn unusable(&self, error: rustls::Error) -> TlsError {
        let (cert, key) = (self.cert.clone(), self.key.clone());
        match error {
            rustls::Error::InconsistentKeys(_) => TlsError::NotAPair { cert, key },
            error => TlsError::Unusable { cert, key, error },
        }
    }
}

fn verifier(path: &Path, provider: Arc<rustls::crypto::CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let wrong = |error: String| TlsError::ClientCa { path: path.to_owned(), error };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated();
    verifier.build().map_err(|error| wrong(error.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = bytes(path)?;
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    list.map_err(|_| TlsError::NoCertificate { path: path.to_owned() })
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Unreadable { path: path.to_owned(), error })
}
