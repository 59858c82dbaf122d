//! Export settings, named as in the OpenTelemetry specification.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use lockgate_tls::{Tls, is_here};

use crate::Sampler;
use crate::wire::{GRPC_PATH, KeyValue};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    Grpc,
    #[default]
    Http,
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "grpc" => Ok(Self::Grpc),
            "http/protobuf" => Ok(Self::Http),
            _ => Err(format!("{text:?} is not a protocol that spans are sent by; there are grpc and http/protobuf")),
        }
    }
}

/// Checked settings: errors are reported when they are made.
pub struct Settings {
    pub(crate) target: Uri,
    pub(crate) protocol: Protocol,
    pub(crate) headers: HeaderMap,
    pub(crate) tls: Tls,
    pub sampler: Sampler,
    /// The timeout of one request.
    pub timeout: Duration,
    /// The longest time that a span waits for others.
    pub delay: Duration,
    /// The most spans of one request.
    pub batch: usize,
    /// The most spans that may wait.
    pub room: usize,
    pub(crate) resource: Vec<KeyValue>,
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{0:?} is not the address of a collector; write it like http://127.0.0.1:4318")]
    Address(String),
    #[error("{0:?} is not a list of headers; write it like name=value,other=value")]
    Headers(String),
    #[error("headers may hold a secret and are not sent in the clear to another machine; use an https address")]
    HeadersInTheClear,
    #[error("{0:?} is not a list of attributes; write it like name=value,other=value")]
    Attributes(String),
}

impl fmt::Debug for Settings {
    /// Hides the headers, which may contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("target", &self.target).field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

impl Settings {
    /// `whole` says that the address is the endpoint for spans and not the collector's base address.
    pub fn new(address: &str, whole: bool, protocol: Protocol, tls: Tls) -> Result<Self, SettingsError> {
        Ok(Self {
            target: target(address, whole, protocol).ok_or_else(|| SettingsError::Address(address.to_owned()))?,
            protocol,
            headers: HeaderMap::new(),
            tls,
            sampler: Sampler { ratio: 1.0, follow_parent: true },
            timeout: Duration::from_secs(10),
            delay: Duration::from_secs(5),
            batch: 512,
            room: 2_048,
            resource: Vec::new(),
        })
    }

    /// Reads `name=value,other=value`; values use `%20` and the like for special characters.
    pub fn headers(mut self, text: &str) -> Result<Self, SettingsError> {
        let wrong = || SettingsError::Headers(names_only(text));
        for (name, value) in pairs(text).ok_or_else(wrong)? {
            let name = HeaderName::from_str(&name).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        let clear = self.target.scheme_str() != Some("https") && !self.target.host().is_some_and(is_here);
        if clear && !self.headers.is_empty() {
            return Err(SettingsError::HeadersInTheClear);
        }
        Ok(self)
    }

    /// Adds an attribute to every span of this process. The first value for a name wins.
    pub fn resource(mut self, name: &str, value: impl Into<String>) -> Self {
        if !self.resource.iter().any(|known| known.key == name) {
            self.resource.push(KeyValue::text(name, value));
        }
        self
    }

    /// Reads `name=value,other=value`.
    pub fn resources(self, text: &str) -> Result<Self, SettingsError> {
        let pairs = pairs(text).ok_or_else(|| SettingsError::Attributes(text.to_owned()))?;
        Ok(pairs.into_iter().fold(self, |settings, (name, value)| settings.resource(&name, value)))
    }

    /// The target, for people.
    pub fn target(&self) -> String {
        self.target.to_string()
    }
}

fn target(address: &str, whole: bool, protocol: Protocol) -> Option<Uri> {
    let uri: Uri = address.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    if !known || uri.authority()?.as_str().contains('@') {
        return None;
    }
    let mut parts = uri.into_parts();
    let path = parts.path_and_query.as_ref().map_or("/", PathAndQuery::path).trim_end_matches('/').to_owned();
    parts.path_and_query = Some(match (protocol, whole) {
        (Protocol::Grpc, _) => PathAndQuery::from_static(GRPC_PATH),
        (Protocol::Http, true) if path.is_empty() => PathAndQuery::from_static("/"),
        (Protocol::Http, true) => path.parse().ok()?,
        (Protocol::Http, false) => format!("{path}/v1/traces").parse().ok()?,
    });
    Uri::from_parts(parts).ok()
}

fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then_some(())?;
        Some((name.to_owned(), unescaped(value.trim())?))
    };
    parts.map(pair).collect()
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// Only the names, because a malformed value may be a secret.
fn names_only(text: &str) -> String {
    let names = text.split(',').map(|part| part.split('=').next().unwrap_or_default());
    names.map(|name| format!("{name}=…")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use lockgate_tls::{FileNames, TlsPaths};

    use super::*;

    fn tls() -> Tls {
        TlsPaths::default().read(FileNames { ca: "ca", cert: "cert", key: "key" }).expect("no files")
    }

    fn settings(address: &str, whole: bool, protocol: Protocol) -> Result<Settings, SettingsError> {
        Settings::new(address, whole, protocol, tls())
    }

    #[test]
    fn the_address_of_a_collector_becomes_that_of_its_traces() {
        for (address, whole, protocol, target) in [
            ("http://127.0.0.1:4318", false, Protocol::Http, "http://127.0.0.1:4318/v1/traces"),
            ("https://c.example/otlp/", false, Protocol::Http, "https://c.example/otlp/v1/traces"),
            ("https://c.example/in", true, Protocol::Http, "https://c.example/in"),
            ("http://c:4317", false, Protocol::Grpc, &format!("http://c:4317{GRPC_PATH}")),
        ] {
            assert_eq!(settings(address, whole, protocol).expect("good").target(), target);
        }
        for wrong in ["", "127.0.0.1:4318", "ftp://c", "http://", "http://a:b@c:4318"] {
            assert!(matches!(settings(wrong, false, Protocol::Http), Err(SettingsError::Address(_))), "{wrong}");
        }
    }

    #[test]
    fn headers_are_read_and_kept_secret() {
        let here = settings("http://127.0.0.1:4318", false, Protocol::Http).expect("good");
        let here = here.headers("api-key=s%20ecret, x-team=ops").expect("good");
        assert_eq!(here.headers["api-key"], "s ecret");
        assert!(!format!("{here:?}").contains("ecret"));
        let there = || settings("http://c.example:4318", false, Protocol::Http).expect("good");
        assert!(matches!(there().headers("a=b"), Err(SettingsError::HeadersInTheClear)));
        assert!(there().headers("").is_ok());
        let wrong = there().headers("secret value").expect_err("no pair").to_string();
        assert!(wrong.contains("secret value=…"), "{wrong}");
        let told = there().headers("a b=secret").expect_err("no header").to_string();
        assert!(!told.contains("secret"), "{told}");
    }

    #[test]
    fn the_first_word_about_a_process_counts() {
        let made = settings("http://c:4318", false, Protocol::Http).expect("good");
        let made = made.resource("service.name", "mine").resources("service.name=other,team=ops").expect("good");
        let named: Vec<_> = made.resource.iter().map(|pair| pair.key.as_str()).collect();
        assert_eq!(named, ["service.name", "team"]);
        assert!(settings("http://c:4318", false, Protocol::Http).expect("good").resources("nothing").is_err());
    }
}
