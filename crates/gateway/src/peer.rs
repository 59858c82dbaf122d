//! Who is at the other end of a connection. Every request of it carries this as extensions.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::{Any, Decode, Tag, Tagged};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Longest subject taken for a name: it goes into records and logs.
const SUBJECT_BYTES_MAX: usize = 512;

/// Where a connection comes from. Behind a proxy that is the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

impl PeerAddress {
    /// As people write it, whatever kind of socket it came through.
    pub(crate) fn ip(&self) -> IpAddr {
        self.0.ip().to_canonical()
    }

    /// The network that has a share of what all share. None for this machine's own: everything on it, and everything behind
    /// a proxy on it, comes from there, and would have to live on the share of one.
    pub(crate) fn network(&self) -> Option<IpAddr> {
        Some(self.ip()).filter(|address| !address.is_loopback()).map(network)
    }
}

/// A client with one IPv6 address usually has 2⁶⁴ of them.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_none() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        other => other,
    }
}

/// The certificate that a client has shown and the listener has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// `uri:` and the first URI of its alternative names, else `dns:` and the first DNS name, else `cn:` and its common name.
    /// The kind is said, so that a name of one kind never passes for one of another.
    pub subject: Arc<str>,
}

impl PeerCertificate {
    /// None for a certificate without a name, which is as good as none.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let names = certificate.tbs_certificate.get::<SubjectAltName>().ok()?.map(|(_, names)| names.0);
        let names = names.unwrap_or_default();
        let uri = names.iter().find_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) => Some(format!("uri:{}", uri.as_str())),
            _ => None,
        });
        let dns = || {
            names.iter().find_map(|name| match name {
                GeneralName::DnsName(name) => Some(format!("dns:{}", name.as_str())),
                _ => None,
            })
        };
        let subject = uri
            .or_else(dns)
            .or_else(|| common_name(&certificate).map(|name| format!("cn:{name}")))
            .filter(|text| is_a_name(text))?;
        Some(Self { subject: subject.into() })
    }
}

fn common_name(certificate: &Certificate) -> Option<String> {
    let parts = certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    parts.filter(|part| part.oid == COMMON_NAME).find_map(|part| text(&part.value))
}

fn text(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::TeletexString => value.decode_as::<TeletexStringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        _ => None,
    }
}

fn is_a_name(text: &str) -> bool {
    (1..=SUBJECT_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}
