//! Which names the API answers to.
//!
//! Without authentication, "only this machine can connect" is all that guards the API, and a web page breaks it: the
//! page's own name is made to lead to the loopback address (DNS rebinding), and the visitor's browser then talks to us as
//! that page. The browser cannot lie about the name it asked for, nor about the page that asks.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Request, Uri};

/// The names that are ours.
#[derive(Clone, Debug)]
pub(crate) enum Hosts {
    Any,
    /// Those of the loopback interface, and the address we listen on; with any port, for tunnels and port mappings.
    Local {
        bound: IpAddr,
    },
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostRefusal {
    /// It was meant for another host.
    Host,
    /// A page of another site sent it.
    Origin,
}

impl HostRefusal {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "the request names a host that is not this server; use localhost or the address it listens on",
            Self::Origin => "web pages of other sites may not call this server",
        }
    }
}

impl Hosts {
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), HostRefusal> {
        let Self::Local { bound } = self else { return Ok(()) };
        let named = hosts(request.uri(), request.headers());
        // Every name that is given must be ours: which of two is believed differs between programs.
        if named.is_empty() || !named.iter().all(|host| is_ours(host.as_deref(), *bound)) {
            return Err(HostRefusal::Host);
        }
        let mut origins = request.headers().get_all(ORIGIN).iter();
        if !origins.all(|origin| is_ours(origin_host(origin.as_bytes()).as_deref(), *bound)) {
            return Err(HostRefusal::Origin);
        }
        Ok(())
    }
}

/// The hosts a request names, in its target and in its header; none for one that cannot be read.
fn hosts(uri: &Uri, headers: &HeaderMap) -> Vec<Option<String>> {
    let target = uri.authority().map(|authority| Some(authority.host().to_owned()));
    let header = headers.get_all(HOST).iter().map(|value| {
        let authority = Authority::try_from(value.as_bytes()).ok()?;
        Some(authority.host().to_owned())
    });
    target.into_iter().chain(header).collect()
}

/// `null`, the origin of sandboxed pages and files, has no scheme and so no host that could be ours.
fn origin_host(origin: &[u8]) -> Option<String> {
    let uri = Uri::try_from(origin).ok()?;
    uri.scheme()?;
    uri.host().map(ToOwned::to_owned)
}

fn is_ours(host: Option<&str>, bound: IpAddr) -> bool {
    let Some(host) = host else { return false };
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || (address == bound && !bound.is_unspecified()),
        Err(_) => bare.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(target: &str, headers: &[(&str, &str)]) -> Result<(), HostRefusal> {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Hosts::Local { bound: IpAddr::from([10, 0, 0, 7]) }.check(&request.body(()).expect("a request"))
    }

    #[test]
    fn only_our_own_names_are_answered() {
        for host in ["localhost", "LocalHost:7070", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:7070", "10.0.0.7:7070"] {
            assert_eq!(checked("/", &[("host", host)]), Ok(()), "{host}");
            assert_eq!(checked(&format!("http://{host}/"), &[]), Ok(()), "{host} as :authority");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7070", "10.0.0.8", "0.0.0.0", "", "a b"]
        {
            assert_eq!(checked("/", &[("host", host)]), Err(HostRefusal::Host), "{host:?}");
        }
        assert_eq!(checked("/", &[]), Err(HostRefusal::Host), "no name at all");
        assert_eq!(checked("http://localhost/", &[("host", "evil.example")]), Err(HostRefusal::Host));
        assert_eq!(checked("/", &[("host", "localhost"), ("host", "evil.example")]), Err(HostRefusal::Host));
    }

    #[test]
    fn only_pages_of_our_own_may_call() {
        let from = |origin| checked("/", &[("host", "localhost"), ("origin", origin)]);
        for origin in ["http://localhost:3000", "http://127.0.0.1:7070", "https://[::1]", "http://10.0.0.7"] {
            assert_eq!(from(origin), Ok(()), "{origin}");
        }
        for origin in ["http://evil.example", "null", "https://localhost.evil.example", "localhost", ""] {
            assert_eq!(from(origin), Err(HostRefusal::Origin), "{origin:?}");
        }
    }

    #[test]
    fn who_insists_is_answered_under_any_name() {
        let request = Request::builder().uri("/").header("host", "evil.example").header("origin", "null").body(());
        assert_eq!(Hosts::Any.check(&request.expect("a request")), Ok(()));
    }
}
