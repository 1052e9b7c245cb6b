//! The addresses and blocks that the functions `ip` and `cidr` accept: Go's, but for zones and IPv4-mapped addresses.

use crate::EvaluationError;
use pintle_go_forms::{Cidr, parse_address, quote};
use std::net::IpAddr;

/// Parses an address; addresses with a zone and IPv4-mapped IPv6 addresses are rejected.
pub(super) fn parse_ip(text: &str) -> Result<IpAddr, EvaluationError> {
    let address = parse_address(text).map_err(|error| {
        let text = quote(text);
        EvaluationError::failed(format!(
            "IP Address {text} parse error during conversion from string: {error}"
        ))
    })?;
    if address.has_zone {
        let text = quote(text);
        return Err(EvaluationError::failed(format!("IP address {text} with zone value is not allowed")));
    }
    if is_mapped(address.ip) {
        let text = quote(text);
        return Err(EvaluationError::failed(format!("IPv4-mapped IPv6 address {text} is not allowed")));
    }
    Ok(address.ip)
}

/// Parses a block; blocks of IPv4-mapped IPv6 addresses are rejected.
pub(super) fn parse_cidr(text: &str) -> Result<Cidr, EvaluationError> {
    const CONTEXT: &str = "network address parse error during conversion from string";
    let cidr = Cidr::parse(text)
        .map_err(|error| EvaluationError::failed(format!("{CONTEXT}: {CONTEXT}: {error}")))?;
    if is_mapped(cidr.address) {
        let text = quote(text);
        return Err(EvaluationError::failed(format!(
            "{CONTEXT}: IPv4-mapped IPv6 address {text} is not allowed"
        )));
    }
    Ok(cidr)
}

/// `224.0.0.0/24` or `ff?2::/16`.
pub(super) fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => matches!(ip.octets(), [0xff, scope, ..] if scope & 0x0f == 2),
    }
}

/// `169.254.0.0/16` or `fe80::/10`.
pub(super) fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Not unspecified, loopback, link-local, multicast or broadcast.
pub(super) fn is_global_unicast(ip: IpAddr) -> bool {
    let everybody = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !everybody
        && !ip.is_unspecified()
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_link_local_unicast(ip)
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_addresses_are_told_apart() {
        let rows = [
            (
                "1.2.3",
                "IP Address \"1.2.3\" parse error during conversion from string: ParseAddr(\"1.2.3\"): IPv4 address too \
                 short",
            ),
            ("fe80::1%eth0", "IP address \"fe80::1%eth0\" with zone value is not allowed"),
            ("::ffff:10.0.0.1", "IPv4-mapped IPv6 address \"::ffff:10.0.0.1\" is not allowed"),
        ];
        for (text, error) in rows {
            assert_eq!(parse_ip(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn rejected_blocks_are_told_apart() {
        const CONTEXT: &str = "network address parse error during conversion from string";
        let rows = [
            (
                "10.0.0.0/33",
                format!(
                    "{CONTEXT}: {CONTEXT}: netip.ParsePrefix(\"10.0.0.0/33\"): prefix length out of range"
                ),
            ),
            (
                "::ffff:10.0.0.0/104",
                format!("{CONTEXT}: IPv4-mapped IPv6 address \"::ffff:10.0.0.0/104\" is not allowed"),
            ),
        ];
        for (text, error) in rows {
            assert_eq!(parse_cidr(text).unwrap_err().to_string(), error);
        }
    }
}
