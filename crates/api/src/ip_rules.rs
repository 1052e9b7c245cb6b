//! Validates addresses that receive traffic.

use pintle_go_forms::parse_ip_sloppy;
use pintle_machinery::{ErrorList, FieldError, FieldPath};
use std::net::IpAddr;

/// Validates an endpoint or external address of a service: it must not have a special meaning on every node.
pub(crate) fn validate_endpoint_ip(ip: &str, path: &FieldPath) -> ErrorList {
    let error = |detail: &str| FieldError::invalid(path, ip, detail);
    let Some(address) = parse_ip_sloppy(ip) else {
        return vec![error("must be a valid IP address")];
    };
    let address = address.to_canonical();
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(address) => (
            address.is_unicast_link_local(),
            address.segments().first().is_some_and(|s| s & 0xff0f == 0xff02),
        ),
    };
    let mut errors = ErrorList::new();
    if address.is_unspecified() {
        errors.push(error(&format!("may not be unspecified ({ip})")));
    }
    if address.is_loopback() {
        errors.push(error("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if link_local {
        errors.push(error("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if link_local_multicast {
        errors.push(error("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_refused() {
        for (ip, detail) in [
            ("10.0.0.1", None),
            ("224.1.0.1", None),
            ("2001:db8::1", None),
            ("x", Some("must be a valid IP address")),
            ("0.0.0.0", Some("may not be unspecified (0.0.0.0)")),
            ("::1", Some("may not be in the loopback range (127.0.0.0/8, ::1/128)")),
            ("169.254.1.1", Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)")),
            ("224.0.0.5", Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")),
            ("ff02::1", Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")),
        ] {
            let errors = validate_endpoint_ip(ip, &FieldPath::new("ip"));
            let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(details, detail.into_iter().collect::<Vec<_>>(), "{ip}");
        }
    }
}
