//! Which addresses jobs may call. A job must not reach addresses that only the worker's machine can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused; None for a public one.
pub(super) fn refusal(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => refusal_v4(v4),
        IpAddr::V6(v6) => refusal_v6(v6),
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0, ..) => Some("unspecified"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("private"),
        (100, 64..=127, _) => Some("carrier-grade NAT"),
        (127, ..) => Some("loopback"),
        (169, 254, _) => Some("link-local"),
        (192, 0, 0) | (198, 18..=19, _) => Some("reserved"),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Some("documentation"),
        (224..=239, ..) => Some("multicast"),
        (240..=255, ..) => Some("reserved"),
        _ => None,
    }
}

fn refusal_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = embedded_v4(address) {
        return refusal_v4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        [0xfc00..=0xfdff, ..] => Some("unique local"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfec0..=0xfeff, ..] => Some("site-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        [0x2001, 0x0db8, ..] => Some("documentation"),
        // Set aside for protocols, Teredo tunnels among them.
        [0x2001, 0..=0x01ff, ..] => Some("reserved"),
        // Only 2000::/3 is routed on the public internet.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

/// The IPv4 address inside mapped, compatible, NAT64 and 6to4 forms, which all end up there. Local NAT64 (64:ff9b:1::/48)
/// is not among them: where in it the IPv4 address stands is each network's own choice, so all of it is refused.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        let refused = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.1.2.3 \
            169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.168.1.1 198.18.0.1 224.0.0.1 239.1.1.1 \
            240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 \
            ::ffff:169.254.169.254 64:ff9b::10.0.0.1 64:ff9b:1::192.168.0.1 \
            64:ff9b:1::8.8.8.8 64:ff9b:1:7f00:0:100:808:808 2002:7f00:1:: fc00::1 \
            fd12:3456::1 fe80::1 fec0::1 ff02::1 2001:db8::1 2001::1 100::1 4000::1";
        for text in refused.split_whitespace() {
            assert!(refusal(text.parse().unwrap()).is_some(), "{text} must be refused");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        let allowed = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 \
            169.253.0.1 172.15.0.1 172.32.0.1 192.167.0.1 192.169.0.1 223.255.255.255 2606:4700::1111 2001:4860::8888 \
            ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1";
        for text in allowed.split_whitespace() {
            assert_eq!(refusal(text.parse().unwrap()), None, "{text} must be allowed");
        }
    }
}
