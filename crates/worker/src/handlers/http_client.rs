//! An HTTP client that connects only to addresses it has checked.
//!
//! The name is resolved once, the addresses are checked, and the connection goes to one of them, so a later change of the
//! name has no effect. Redirects are not followed.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::Service;

use super::guard;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const IDLE_CONNECTIONS_FOR: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS_PER_HOST: usize = 16;

pub(super) type HttpClient = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

pub(super) fn client(allow_private: bool) -> Result<HttpClient, rustls::Error> {
    let mut http = HttpConnector::new_with_resolver(Resolver { allow_private });
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_WITHIN));
    let https = HttpsConnectorBuilder::new()
        .with_provider_and_webpki_roots(rustls::crypto::aws_lc_rs::default_provider())?
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTIONS_FOR)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
        .build(https))
}

/// The host or one of its addresses must not be called by jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} is at a {reason} address; this worker may not call it")]
pub(super) struct ForbiddenHost {
    host: String,
    reason: &'static str,
}

/// Checks hosts given as an address, which the connector does not pass to the resolver.
pub(super) fn check_literal(uri: &Uri, allow_private: bool) -> Result<(), ForbiddenHost> {
    let host = uri.host().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match literal.ok().filter(|_| !allow_private).and_then(guard::refusal) {
        Some(reason) => Err(ForbiddenHost { host: host.to_owned(), reason }),
        None => Ok(()),
    }
}

/// Finds the refusal among the causes of a client error.
pub(super) fn refused<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a ForbiddenHost> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|cause| cause.downcast_ref())
}

#[derive(Clone)]
pub(super) struct Resolver {
    allow_private: bool,
}

impl Resolver {
    fn check(&self, host: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, ResolveError> {
        let mut reason = None;
        let mut public = Vec::new();
        for address in found {
            match guard::refusal(address.ip()).filter(|_| !self.allow_private) {
                Some(why) => reason = Some(why),
                None => public.push(address),
            }
        }
        match reason {
            Some(reason) if public.is_empty() => {
                Err(ResolveError(Box::new(ForbiddenHost { host: host.to_owned(), reason })))
            }
            _ => Ok(public),
        }
    }
}

/// The inner error is the source, so that [`refused`] finds it.
#[derive(Debug, thiserror::Error)]
#[error("cannot resolve the host")]
pub(super) struct ResolveError(#[source] Box<dyn Error + Send + Sync>);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move {
            let found =
                tokio::net::lookup_host((name.as_str(), 0)).await.map_err(|error: io::Error| ResolveError(error.into()))?;
            Ok(resolver.check(name.as_str(), found)?.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
    }

    #[test]
    fn only_checked_addresses_are_connected_to() {
        let resolver = Resolver { allow_private: false };
        let mixed = addresses(&["10.0.0.1", "8.8.8.8", "::1"]);
        assert_eq!(resolver.check("h", mixed.into_iter()).unwrap(), addresses(&["8.8.8.8"]));
        let error = resolver.check("h", addresses(&["127.0.0.1"]).into_iter()).unwrap_err();
        assert_eq!(refused(&error).unwrap().to_string(), "h is at a loopback address; this worker may not call it");
        let open = Resolver { allow_private: true };
        assert_eq!(open.check("h", addresses(&["127.0.0.1"]).into_iter()).unwrap().len(), 1);
    }

    #[test]
    fn hosts_given_as_addresses_are_checked_too() {
        for host in ["127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254:80"] {
            let uri: Uri = format!("http://{host}/").parse().unwrap();
            assert!(check_literal(&uri, false).is_err(), "{host}");
            assert!(check_literal(&uri, true).is_ok(), "{host}");
        }
        assert!(check_literal(&"http://8.8.8.8/".parse().unwrap(), false).is_ok());
        assert!(check_literal(&"http://example.com/".parse().unwrap(), false).is_ok());
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused() {
        let error = Resolver { allow_private: false }.call("localhost".parse().unwrap()).await.unwrap_err();
        assert!(refused(&error).is_some());
    }
}
