//! Failed connections in words that say what to do.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError};

use crate::{FileNames, Tls};

impl Tls {
    /// Why a connection failed, if it failed by TLS or may have: looks through everything that caused the error.
    pub fn explain(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(tls) = error.downcast_ref::<rustls::Error>() {
                return Some(told(tls, self.names(), self.shows_certificate()));
            }
            let io = error.downcast_ref::<io::Error>();
            if let Some(tls) = io.and_then(|io| io.get_ref()?.downcast_ref::<rustls::Error>()) {
                return Some(told(tls, self.names(), self.shows_certificate()));
            }
            if let Some(io) = io.filter(|io| hung_up(io) && !self.shows_certificate()) {
                let FileNames { cert, key, .. } = self.names();
                return Some(format!("{io}; if it asks its clients for certificates, give {cert} and {key}"));
            }
            // Shared errors hide what they share.
            let shared = error.downcast_ref::<Arc<dyn Error + Send + Sync>>();
            next = shared.map_or_else(|| error.source(), |shared| Some(&**shared));
        }
        None
    }
}

/// A server that wants a certificate says so when we believe to be in already. If more of ours is on its way by then, its
/// word is lost with the connection.
fn hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn told(error: &rustls::Error, names: &FileNames, shown: bool) -> String {
    let FileNames { ca, cert, key } = names;
    match error {
        // The signature is bad where an authority was made anew under its old name.
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            format!("its certificate is not signed by an authority that we believe; name the right one with {ca}")
        }
        rustls::Error::InvalidCertificate(
            why @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
        ) => format!("{why}; write a name of the certificate into the address"),
        rustls::Error::InvalidCertificate(why) => format!("its certificate is not good: {why}"),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("it asks its clients for certificates; give {cert} and {key}")
        }
        // Older servers call one that is missing bad.
        rustls::Error::AlertReceived(AlertDescription::BadCertificate) if !shown => {
            format!("it asks its clients for certificates; give {cert} and {key}")
        }
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied),
        ) => format!(
            "it does not believe the certificate that we show ({alert:?}); give one that it knows with {cert} and {key}"
        ),
        error => format!("TLS failed: {error}"),
    }
}
