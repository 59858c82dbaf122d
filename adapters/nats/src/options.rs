//! Options: the servers, and the installation's names on them.

use std::fmt;
use std::sync::Arc;

use async_nats::ServerAddr;
use lockgate_core::ids::check_name;
use lockgate_tls::Tls;

use crate::error::ConnectError;

#[derive(Clone)]
pub struct Options {
    /// Servers of one cluster, like `nats://host:4222` or `tls://host:4222`. The first address with a login, like
    /// `nats://user:password@host` or `nats://token@host`, sets it for all.
    pub servers: Vec<String>,
    /// If set, every server is reached over TLS, including those that the first one announces.
    pub tls: Option<Tls>,
    /// Separates installations that share servers.
    pub installation: String,
    /// The queue group in which the installation's processes take turns at `sys.*`. With two names each message would be
    /// processed twice.
    pub queue_group: String,
}

/// The default queue group.
pub const QUEUE_GROUP: &str = "lockgate";

/// Hides the addresses, which may contain a login.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers: _, tls, installation, queue_group: _ } = self;
        f.debug_struct("Options").field("tls", tls).field("installation", installation).finish_non_exhaustive()
    }
}

impl Options {
    pub fn new(servers: Vec<String>, installation: impl Into<String>) -> Self {
        Self { servers, tls: None, installation: installation.into(), queue_group: QUEUE_GROUP.to_owned() }
    }

    /// The addresses without their login, because the client logs them.
    pub(crate) fn places(&self) -> Result<Vec<ServerAddr>, ConnectError> {
        Self { servers: self.servers.iter().map(|address| public(address)).collect(), ..self.clone() }.addresses()
    }

    pub(crate) fn addresses(&self) -> Result<Vec<ServerAddr>, ConnectError> {
        if self.servers.is_empty() {
            return Err(ConnectError::NoServer);
        }
        let parse = |address: &String| {
            let why = |error: std::io::Error| ConnectError::Address { address: public(address), why: error.to_string() };
            address.parse().map_err(why)
        };
        self.servers.iter().map(parse).collect()
    }

    pub(crate) fn checked_queue_group(&self) -> Result<Arc<str>, ConnectError> {
        let name = &self.queue_group;
        check_name(name).map_err(|why| ConnectError::QueueGroup { name: name.clone(), why })?;
        Ok(name.as_str().into())
    }

    /// A subject that only this installation uses.
    pub(crate) fn subject(&self, last: &str) -> Result<String, ConnectError> {
        let name = &self.installation;
        check_name(name).map_err(|why| ConnectError::Installation { name: name.clone(), why })?;
        Ok(format!("lockgate.{name}.{last}"))
    }
}

/// The login in an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Login {
    User { name: String, password: String },
    Token(String),
}

/// The client parses logins in addresses and then ignores them.
pub(crate) fn login(addresses: &[ServerAddr]) -> Option<Login> {
    let (name, password) = addresses.iter().find_map(|address| Some((address.username()?, address.password())))?;
    let name = decoded(name);
    Some(match password.map(decoded) {
        Some(password) => Login::User { name, password },
        None => Login::Token(name),
    })
}

/// Decodes the escapes of an address: `%40` is `@`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An address without its secrets.
fn public(address: &str) -> String {
    let start = address.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = address.split_at(start);
    format!("{scheme}{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(servers: &[&str], installation: &str) -> Options {
        Options::new(servers.iter().map(ToString::to_string).collect(), installation)
    }

    #[test]
    fn an_address_that_cannot_be_read_is_named() {
        assert!(matches!(options(&[], "a").addresses(), Err(ConnectError::NoServer)));
        let error = options(&["nats://ok:1", "http://x"], "a").addresses().expect_err("refused");
        assert!(error.to_string().contains("http://x"), "{error}");
        assert_eq!(options(&["nats://ok:1", "127.0.0.1:2"], "a").addresses().expect("valid").len(), 2);
    }

    #[test]
    fn a_login_is_read_from_the_first_address_that_has_one() {
        let login = |servers: &[&str]| login(&options(servers, "a").addresses().expect("valid"));
        let ann = Login::User { name: "ann".into(), password: "p@ss%".into() };
        assert_eq!(login(&["nats://a:1", "nats://ann:p%40ss%25@b:2", "nats://bob:x@c:3"]), Some(ann));
        assert_eq!(login(&["nats://s3cret@a:1"]), Some(Login::Token("s3cret".into())));
        assert_eq!(login(&["nats://a:1"]), None);
    }

    #[test]
    fn an_error_tells_no_password() {
        let error = options(&["http://ann:s3cret@x"], "a").addresses().expect_err("refused");
        assert!(!error.to_string().contains("s3cret"), "{error}");
        let with = options(&["nats://ann:s3cret@x:4222", "tls://t0ken@y:4222"], "a");
        let printed = format!("{with:?} {:?}", with.places().expect("valid"));
        assert!(!printed.contains("s3cret") && !printed.contains("t0ken"), "{printed}");
        assert!(with.places().expect("valid")[1].tls_required());
    }

    #[test]
    fn a_queue_group_is_a_name() {
        let group = |name: &str| Options { queue_group: name.to_owned(), ..options(&[], "a") }.checked_queue_group();
        assert_eq!(group(QUEUE_GROUP).ok().as_deref(), Some("lockgate"));
        assert_eq!(group("coretex-scheduler").ok().as_deref(), Some("coretex-scheduler"));
        for wild in ["", "a b", "*", ">"] {
            assert!(group(wild).is_err(), "{wild:?}");
        }
    }

    #[test]
    fn an_installation_is_a_name() {
        assert_eq!(options(&[], "prod").subject("bell").expect("valid"), "lockgate.prod.bell");
        for wild in ["*", "a>", "", "a b"] {
            assert!(options(&[], wild).subject("bell").is_err(), "{wild:?}");
        }
    }
}
