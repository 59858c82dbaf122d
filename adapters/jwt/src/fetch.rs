//! Fetches a key set from the issuer's address.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lockgate_tls::{FileNames, Tls, TlsPaths, is_here};

use crate::keyset::{KeySet, KeysError, Origin};
use crate::settings::SettingsError;

/// The deadline of the whole answer. Short, because requests wait for it.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Far larger than any real key set, and harmless in memory.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// The flags' names, for errors. No client certificate is used, because an issuer's keys are public.
const NAMES: FileNames = FileNames { ca: "--jwt-ca", cert: "a client certificate", key: "its key" };

pub(crate) struct JwksAddress {
    uri: Uri,
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    tls: Tls,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("there was no whole answer within {ANSWER_WITHIN:?}")]
    Slow,
    #[error("the answer was {0}")]
    Status(StatusCode),
    #[error("{0}")]
    Request(String),
    #[error("the answer broke off, or was larger than 256 KiB: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("the answer {0}")]
    Keys(#[from] KeysError),
}

impl JwksAddress {
    pub(crate) fn new(url: &str, ca: Option<PathBuf>) -> Result<Self, SettingsError> {
        let uri = url.parse().ok().filter(is_safe).ok_or_else(|| SettingsError::Url(url.to_owned()))?;
        let tls = TlsPaths { ca, ..TlsPaths::default() }.read(NAMES)?;
        let https = HttpsConnectorBuilder::new().with_tls_config(tls.config()).https_or_http().enable_http1().build();
        // Used every ten minutes, so an idle connection would be closed in between.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(https);
        Ok(Self { uri, client, tls })
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) async fn fetch(&self) -> Result<KeySet, FetchError> {
        tokio::time::timeout(ANSWER_WITHIN, self.exchange()).await.unwrap_or(Err(FetchError::Slow))
    }

    fn failed(&self, error: &(dyn Error + 'static)) -> FetchError {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let told = || causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        FetchError::Request(self.tls.explain(error).unwrap_or_else(told))
    }

    /// Redirects are not followed: only the address that the operator configured is trusted.
    async fn exchange(&self) -> Result<KeySet, FetchError> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        let answer = self.client.request(request).await.map_err(|error| self.failed(&error))?;
        if answer.status() != StatusCode::OK {
            return Err(FetchError::Status(answer.status()));
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(FetchError::Body)?;
        Ok(KeySet::parse(&String::from_utf8_lossy(&body.to_bytes()), Origin::Address)?)
    }
}

/// Keys fetched without TLS could be an attacker's.
fn is_safe(uri: &Uri) -> bool {
    let (Some(host), Some(authority)) = (uri.host(), uri.authority()) else { return false };
    let is_private = uri.scheme_str() == Some("https") || uri.scheme_str() == Some("http") && is_here(host);
    is_private && !authority.as_str().contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_never_come_in_the_clear_over_a_network() {
        let good = ["https://id.example/keys", "http://127.0.0.1:9/k", "http://localhost:9/k", "http://[::1]:9/k"];
        for url in good {
            assert!(JwksAddress::new(url, None).is_ok(), "{url}");
        }
        let bad = [
            "http://id.example/keys",
            "http://10.0.0.1/k",
            "ftp://127.0.0.1/k",
            "127.0.0.1:9",
            "/k",
            "",
            "https://",
            "https://name:secret@id.example/keys",
            "http://localhost.example/k",
        ];
        for url in bad {
            assert!(matches!(JwksAddress::new(url, None), Err(SettingsError::Url(_))), "{url}");
        }
    }
}
