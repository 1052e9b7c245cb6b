//! Validates IP addresses and CIDR blocks.
//!
//! Fields older than the strict rules used a lenient parser: leading zeros were ignored and IPv4-mapped IPv6 addresses
//! allowed. Since v1.36 such fields are strict too, with ratcheting for stored values, and warn about valid values that
//! are not in canonical form
//! (<https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/4858-ip-cidr-validation>).

use crate::{ErrorList, FieldError, FieldPath};
use pintle_go_forms::{Cidr, parse_ip_sloppy, quote};
use std::collections::HashSet;
use std::net::IpAddr;

/// Validates an address in a newer field: only canonical addresses.
pub fn is_valid_ip(path: &FieldPath, value: &str) -> ErrorList {
    let (ip, errors) = parse_ip(path, value, true);
    match ip {
        Some(ip) if errors.is_empty() && ip.to_string() != value => {
            let detail = format!("must be in canonical form ({})", quote(&ip.to_string()));
            vec![FieldError::invalid(path, value, detail)]
        }
        _ => errors,
    }
}

/// Validates an address in an older field: any valid notation, or every one that the lenient parser reads unless the rules
/// are `strict`. Values of the old object are always allowed.
pub fn is_valid_ip_for_legacy_field(
    path: &FieldPath,
    value: &str,
    strict: bool,
    old_values: &HashSet<&str>,
) -> ErrorList {
    if old_values.contains(value) {
        return ErrorList::new();
    }
    parse_ip(path, value, strict).1
}

/// Warnings for an address in an older field.
pub fn warnings_for_ip(path: &FieldPath, value: &str) -> Vec<String> {
    let Some(ip) = parse_ip_sloppy(value) else { return Vec::new() };
    let strict: Option<IpAddr> = value.parse().ok();
    match strict {
        Some(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => match address.to_string() {
            canonical if canonical != value => vec![format!(
                "{path}: IPv6 address {} should be in RFC 5952 canonical format ({})",
                quote(value),
                quote(&canonical)
            )],
            _ => Vec::new(),
        },
        Some(IpAddr::V4(_)) => Vec::new(),
        _ => vec![format!(
            "{path}: non-standard IP address {} is invalid: use {}",
            quote(value),
            quote(&to_ipv4(ip).to_string())
        )],
    }
}

/// Validates a block in a newer field: only canonical blocks, without bits beyond the prefix.
pub fn is_valid_cidr(path: &FieldPath, value: &str) -> ErrorList {
    let (cidr, errors) = parse_cidr(path, value, true);
    match cidr.map(Cidr::canonical) {
        Some(canonical) if errors.is_empty() && canonical != value => {
            let detail = format!("must be in canonical form ({})", quote(&canonical));
            vec![FieldError::invalid(path, value, detail)]
        }
        _ => errors,
    }
}

/// Validates a block in an older field, as [`is_valid_ip_for_legacy_field`] validates an address.
pub fn is_valid_cidr_for_legacy_field(
    path: &FieldPath,
    value: &str,
    strict: bool,
    old_values: &HashSet<&str>,
) -> ErrorList {
    if old_values.contains(value) {
        return ErrorList::new();
    }
    parse_cidr(path, value, strict).1
}

/// Validates an interface's address: a whole address and the length of its network, in canonical form.
pub fn is_valid_interface_address(path: &FieldPath, value: &str) -> ErrorList {
    let Some(cidr) = Cidr::parse_sloppy(value) else {
        let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return vec![FieldError::invalid(path, value, detail)];
    };
    let address = to_ipv4(cidr.address);
    let is_mapped = address.is_ipv4() && cidr.address.is_ipv6() && cidr.prefix_length > 32;
    let length = if is_mapped { cidr.prefix_length.saturating_sub(96) } else { cidr.prefix_length };
    let canonical = format!("{address}/{length}");
    if value == canonical {
        return ErrorList::new();
    }
    vec![FieldError::invalid(path, value, format!("must be in canonical form ({})", quote(&canonical)))]
}

/// Warnings for a block in an older field.
pub fn warnings_for_cidr(path: &FieldPath, value: &str) -> Vec<String> {
    let Some(cidr) = Cidr::parse_sloppy(value) else { return Vec::new() };
    let mut warnings = Vec::new();
    if cidr.network() != cidr.address {
        let single = format!("{}/{}", to_ipv4(cidr.address), cidr.address_bits());
        warnings.push(format!(
            "{path}: CIDR value {} is ambiguous in this context (should be {} or {}?)",
            quote(value),
            quote(&cidr.canonical()),
            quote(&single)
        ));
    }
    if !is_strict_cidr(value) || to_ipv4(cidr.address).is_ipv4() != cidr.address.is_ipv4() {
        warnings.push(format!(
            "{path}: non-standard CIDR value {} is invalid: use {}",
            quote(value),
            quote(&cidr.canonical())
        ));
    }
    let canonical = format!("{}/{}", cidr.address, cidr.prefix_length);
    if warnings.is_empty() && cidr.address.is_ipv6() && canonical != value {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
            quote(value),
            quote(&canonical)
        ));
    }
    warnings
}

fn parse_ip(path: &FieldPath, value: &str, strict: bool) -> (Option<IpAddr>, ErrorList) {
    let Some(ip) = parse_ip_sloppy(value) else {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return (None, vec![FieldError::invalid(path, value, detail)]);
    };
    let detail = match value.parse::<IpAddr>() {
        Err(_) if strict => Some("must not have leading 0s"),
        Ok(IpAddr::V6(address)) if strict && address.to_ipv4_mapped().is_some() => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        _ => None,
    };
    (Some(ip), detail.map(|detail| FieldError::invalid(path, value, detail)).into_iter().collect())
}

fn parse_cidr(path: &FieldPath, value: &str, strict: bool) -> (Option<Cidr>, ErrorList) {
    let Some(cidr) = Cidr::parse_sloppy(value) else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return (None, vec![FieldError::invalid(path, value, detail)]);
    };
    let detail = if !strict {
        None
    } else if !is_strict_cidr(value) {
        Some("must not have leading 0s in IP or prefix length")
    } else if to_ipv4(cidr.address).is_ipv4() != cidr.address.is_ipv4() {
        Some("must not have an IPv4-mapped IPv6 address")
    } else if cidr.network() != cidr.address {
        Some("must not have bits set beyond the prefix length")
    } else {
        None
    };
    (Some(cidr), detail.map(|detail| FieldError::invalid(path, value, detail)).into_iter().collect())
}

fn is_strict_cidr(value: &str) -> bool {
    value.split_once('/').is_some_and(|(address, length)| {
        address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    })
}

/// Converts an IPv4-mapped address to IPv4, as Go does.
fn to_ipv4(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(errors: &ErrorList) -> Vec<&str> {
        errors.iter().map(|error| error.detail.as_str()).collect()
    }

    #[test]
    fn addresses_are_right_or_say_why_not() {
        let path = FieldPath::new("ip");
        let rows: &[(&str, &[&str], &[&str])] = &[
            ("10.0.0.1", &[], &[]),
            ("::1", &[], &[]),
            ("1:2:3:4:5:6:7::", &[r#"must be in canonical form ("1:2:3:4:5:6:7:0")"#], &[]),
            ("FE80::0abc", &[r#"must be in canonical form ("fe80::abc")"#], &[]),
            ("010.0.0.1", &["must not have leading 0s"], &["must not have leading 0s"]),
            ("0000:00001::", &["must not have leading 0s"], &["must not have leading 0s"]),
            (
                "::ffff:1.2.3.4",
                &["must not be an IPv4-mapped IPv6 address"],
                &["must not be an IPv4-mapped IPv6 address"],
            ),
        ];
        for (value, new, legacy) in rows {
            assert_eq!(details(&is_valid_ip(&path, value)), *new, "{value}");
            assert_eq!(
                details(&is_valid_ip_for_legacy_field(&path, value, true, &HashSet::new())),
                *legacy,
                "{value}"
            );
            assert!(is_valid_ip_for_legacy_field(&path, value, true, &HashSet::from([*value])).is_empty());
        }
        for value in
            ["", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", ":", ":::", "1::2::3", "::1%eth0", "g::"]
        {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            assert_eq!(details(&is_valid_ip(&path, value)), [detail], "{value}");
        }
        assert_eq!(
            warnings_for_ip(&path, "FE80::1"),
            [r#"ip: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")"#]
        );
        assert_eq!(
            warnings_for_ip(&path, "::ffff:1.2.3.4"),
            [r#"ip: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4""#]
        );
    }

    #[test]
    fn blocks_are_right_or_say_why_not() {
        let path = FieldPath::new("cidr");
        let rows: &[(&str, &[&str])] = &[
            ("10.0.0.0/8", &[]),
            ("0.0.0.0/0", &[]),
            ("::/0", &[]),
            ("10.0.0.1/8", &["must not have bits set beyond the prefix length"]),
            ("10.0.0.0/08", &["must not have leading 0s in IP or prefix length"]),
            ("::ffff:1.2.3.0/120", &["must not have an IPv4-mapped IPv6 address"]),
            ("2001:DB8::/32", &[r#"must be in canonical form ("2001:db8::/32")"#]),
            ("10.0.0.0", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
            ("10.0.0.0/33", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
            ("10.0.0.0/", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        ];
        for (value, messages) in rows {
            assert_eq!(details(&is_valid_cidr(&path, value)), *messages, "{value}");
        }
        assert_eq!(
            warnings_for_cidr(&path, "10.0.0.1/8"),
            [
                r#"cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)"#
            ]
        );
        assert_eq!(
            warnings_for_cidr(&path, "::ffff:1.2.3.0/120"),
            [r#"cidr: non-standard CIDR value "::ffff:1.2.3.0/120" is invalid: use "1.2.3.0/24""#]
        );
        assert!(is_valid_interface_address(&path, "10.0.0.1/8").is_empty());
    }
}
