//! The three files, and what is wrong with them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::any_name::AnyName;
use crate::{Pem, Tls};

/// What the operator calls the three files: errors speak of them by these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileNames {
    pub ca: &'static str,
    pub cert: &'static str,
    pub key: &'static str,
}

/// All PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPaths {
    /// Authorities that are believed instead of the public ones.
    pub ca: Option<PathBuf>,
    /// Shown to the server, with its chain.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// Why there is no TLS with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{name} {}: {error}; give a file that this process may read", path.display())]
    Unreadable { name: &'static str, path: PathBuf, error: io::Error },
    #[error("{name} {}: there is no certificate in it; give a PEM file with one", path.display())]
    NoCertificate { name: &'static str, path: PathBuf },
    #[error("{name} {}: there is no private key in it; give a PEM file with one that is not encrypted", path.display())]
    NoKey { name: &'static str, path: PathBuf },
    #[error("{given} without {missing}: a certificate is shown with its key; give both or neither")]
    Half { given: &'static str, missing: &'static str },
    #[error("{key} is not the key of the certificate in {cert}; give the two that were made together")]
    NotAPair { cert: &'static str, key: &'static str },
    #[error("{name}: what is in it cannot be used: {error}")]
    Unusable { name: &'static str, error: rustls::Error },
}

impl TlsPaths {
    /// Reads and checks all of them. Without an authority the public ones are believed.
    pub fn read(&self, names: FileNames) -> Result<Tls, TlsError> {
        let ca = self.ca.as_deref().map(|path| certificates(names.ca, path)).transpose()?;
        let identity = self.identity(&names)?;
        let roots = Arc::new(roots(ca.as_deref(), &names)?);
        let config = Arc::new(config(roots, identity.as_ref(), &names)?);
        Ok(Tls { names, ca, identity, config })
    }

    fn identity(&self, names: &FileNames) -> Result<Option<(Pem, Pem)>, TlsError> {
        match (&self.cert, &self.key) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(TlsError::Half { given: names.cert, missing: names.key }),
            (None, Some(_)) => Err(TlsError::Half { given: names.key, missing: names.cert }),
            (Some(cert), Some(key)) => {
                let (chain, pem) = (certificates(names.cert, cert)?, read(names.key, key)?);
                PrivateKeyDer::from_pem_slice(&pem).map_err(|_| TlsError::NoKey { name: names.key, path: key.clone() })?;
                Ok(Some((chain, pem)))
            }
        }
    }
}

impl Tls {
    /// Checks chain and dates but not the name of the certificate. Only with an authority of one's own, because anyone can
    /// get a certificate of a public one.
    pub fn config_for_any_name(&self) -> Result<ClientConfig, TlsError> {
        let mut config = self.config();
        let roots = Arc::new(roots(self.ca_pem(), self.names())?);
        let unusable = |error: String| TlsError::Unusable { name: self.names().ca, error: rustls::Error::General(error) };
        let verifier = AnyName::new(roots, provider()).map_err(|error| unusable(error.to_string()))?;
        config.dangerous().set_certificate_verifier(Arc::new(verifier));
        Ok(config)
    }
}

/// Named: what else is linked into the process must not decide about its cryptography.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn roots(ca: Option<&[u8]>, names: &FileNames) -> Result<RootCertStore, TlsError> {
    let Some(pem) = ca else { return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }) };
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem) {
        roots.add(certificate).map_err(|error| TlsError::Unusable { name: names.ca, error })?;
    }
    Ok(roots)
}

fn config(roots: Arc<RootCertStore>, identity: Option<&(Pem, Pem)>, names: &FileNames) -> Result<ClientConfig, TlsError> {
    let unusable = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::NotAPair { cert: names.cert, key: names.key },
        error => TlsError::Unusable { name: names.cert, error },
    };
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(unusable)?.with_root_certificates(roots);
    let Some((cert, key)) = identity else { return Ok(builder.with_no_client_auth()) };
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(rustls::Error::General(error.to_string())))?;
    builder.with_client_auth_cert(chain(cert), key).map_err(unusable)
}

fn chain(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

/// Reads a file of certificates. It must contain at least one, and each must be complete: otherwise no server would be
/// trusted, without a visible reason.
fn certificates(name: &'static str, path: &Path) -> Result<Pem, TlsError> {
    let pem = read(name, path)?;
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match list {
        Ok(list) if !list.is_empty() => Ok(pem),
        _ => Err(TlsError::NoCertificate { name, path: path.to_owned() }),
    }
}

fn read(name: &'static str, path: &Path) -> Result<Pem, TlsError> {
    let bytes = std::fs::read(path).map_err(|error| TlsError::Unreadable { name, path: path.to_owned(), error })?;
    Ok(bytes.into())
}
