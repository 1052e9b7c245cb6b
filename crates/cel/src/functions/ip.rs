//! IP addresses and ranges, parsed as Go's `net/netip` does, with its messages.

use crate::EvaluationError;
use pintle_machinery::text::quote;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Parses an address; addresses with a zone and IPv4-mapped IPv6 addresses are rejected.
pub(super) fn parse_ip(text: &str) -> Result<IpAddr, EvaluationError> {
    let (ip, zone) = parse_address(text).map_err(|error| {
        let text = quote(text);
        EvaluationError::failed(format!(
            "IP Address {text} parse error during conversion from string: {error}"
        ))
    })?;
    if zone {
        let text = quote(text);
        return Err(EvaluationError::failed(format!("IP address {text} with zone value is not allowed")));
    }
    if is_mapped(ip) {
        let text = quote(text);
        return Err(EvaluationError::failed(format!("IPv4-mapped IPv6 address {text} is not allowed")));
    }
    Ok(ip)
}

/// A range of addresses: an address, not necessarily the first one, and the length of the common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    ip: IpAddr,
    prefix_length: u8,
}

impl Cidr {
    /// Parses a range.
    pub(super) fn parse(text: &str) -> Result<Cidr, EvaluationError> {
        let failed = |problem: String| {
            const CONTEXT: &str = "network address parse error during conversion from string";
            EvaluationError::failed(format!(
                "{CONTEXT}: {CONTEXT}: netip.ParsePrefix({}): {problem}",
                quote(text)
            ))
        };
        let Some((address, bits)) = text.rsplit_once('/') else { return Err(failed("no '/'".to_owned())) };
        let (ip, zone) = parse_address(address).map_err(failed)?;
        if zone {
            return Err(failed("IPv6 zones cannot be present in a prefix".to_owned()));
        }
        let bad = || failed(format!("bad bits after slash: {}", quote(bits)));
        if !bits.bytes().all(|byte| byte.is_ascii_digit()) || (bits.len() > 1 && bits.starts_with('0')) {
            return Err(bad());
        }
        let length: i64 = bits.parse().map_err(|_| bad())?;
        let prefix_length = match u8::try_from(length) {
            Ok(length) if length <= address_bits(ip) => length,
            _ => return Err(failed("prefix length out of range".to_owned())),
        };
        if is_mapped(ip) {
            const CONTEXT: &str = "network address parse error during conversion from string";
            let text = quote(text);
            return Err(EvaluationError::failed(format!(
                "{CONTEXT}: IPv4-mapped IPv6 address {text} is not allowed"
            )));
        }
        Ok(Cidr { ip, prefix_length })
    }

    /// The address in the text of the range.
    pub(super) fn ip(self) -> IpAddr {
        self.ip
    }

    /// The number of bits that all addresses of the range share.
    pub fn prefix_length(self) -> u8 {
        self.prefix_length
    }

    /// The range in canonical form, with its first address.
    pub(super) fn masked(self) -> Cidr {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        };
        Cidr { ip, ..self }
    }

    /// Whether an address is in the range.
    pub(super) fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.ip.is_ipv4() && (Cidr { ip, ..self }).masked() == self.masked()
    }

    /// Whether all addresses of another range are in this one.
    pub(super) fn contains_cidr(self, other: Cidr) -> bool {
        self.prefix_length <= other.prefix_length && self.contains(other.ip)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix_length)
    }
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

fn address_bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Whether an address, with or without a zone, is IPv4; otherwise the parse error.
pub(super) fn is_v4_address(text: &str) -> Result<bool, String> {
    parse_address(text).map(|(ip, _)| ip.is_ipv4())
}

/// Parses an address; returns whether it has a zone.
fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    let problem = match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => match parse_v4(text) {
            Ok(octets) => return Ok((IpAddr::V4(octets.into()), false)),
            Err(problem) => problem,
        },
        Some(b':') => match parse_v6(text) {
            Ok((octets, zone)) => return Ok((IpAddr::V6(octets.into()), zone)),
            Err(problem) => problem,
        },
        Some(_) => Problem("missing IPv6 address", ""),
        None => Problem("unable to parse IP", ""),
    };
    let Problem(message, at) = problem;
    let text = quote(text);
    Err(match at {
        "" => format!("ParseAddr({text}): {message}"),
        at => format!("ParseAddr({text}): {message} (at {})", quote(at)),
    })
}

/// A parse error, and the rest of the text from its position.
struct Problem<'a>(&'static str, &'a str);

fn parse_v4(text: &str) -> Result<[u8; 4], Problem<'_>> {
    let mut octets = [0; 4];
    let mut position = 0;
    let mut value: u16 = 0;
    let mut digits = 0;
    for (index, byte) in text.bytes().enumerate() {
        let at = || text.get(index..).unwrap_or_default();
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(Problem("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(Problem("IPv4 field has value >255", ""));
                }
            }
            b'.' => {
                if digits == 0 || index + 1 == text.len() {
                    return Err(Problem("IPv4 field must have at least one digit", at()));
                }
                if position == 3 {
                    return Err(Problem("IPv4 address too long", ""));
                }
                set(&mut octets, position, value);
                position += 1;
                value = 0;
                digits = 0;
            }
            _ => return Err(Problem("unexpected character", at())),
        }
    }
    if position < 3 {
        return Err(Problem("IPv4 address too short", ""));
    }
    set(&mut octets, 3, value);
    Ok(octets)
}

fn set(octets: &mut [u8], position: usize, value: u16) {
    if let (Some(octet), Ok(value)) = (octets.get_mut(position), u8::try_from(value)) {
        *octet = value;
    }
}

fn parse_v6(text: &str) -> Result<([u8; 16], bool), Problem<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(Problem("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut octets: Vec<u8> = Vec::with_capacity(16);
    // The position of `::`, in octets.
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(([0; 16], zone));
        }
    }
    while octets.len() < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(Problem("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            return Err(Problem("each colon-separated field must have at least one digit", rest));
        }
        let (field, after) = rest.split_at_checked(digits).unwrap_or((rest, ""));
        if after.starts_with('.') {
            if ellipsis.is_none() && octets.len() != 12 {
                return Err(Problem(
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    rest,
                ));
            }
            if octets.len() > 12 {
                return Err(Problem(
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    rest,
                ));
            }
            octets.extend(parse_v4(rest)?);
            rest = "";
            break;
        }
        octets.extend(u16::from_str_radix(field, 16).unwrap_or(0).to_be_bytes());
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(Problem("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(Problem("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(Problem("multiple :: in address", rest));
            }
            ellipsis = Some(octets.len());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(Problem("trailing garbage after address", rest));
    }
    match (octets.len(), ellipsis) {
        (16, Some(_)) => return Err(Problem("the :: must expand to at least one field of zeros", "")),
        (16, None) => {}
        (_, None) => return Err(Problem("address string too short", "")),
        (len, Some(ellipsis)) => {
            octets.splice(ellipsis..ellipsis, std::iter::repeat_n(0, 16 - len));
        }
    }
    let mut out = [0; 16];
    for (place, octet) in out.iter_mut().zip(octets) {
        *place = octet;
    }
    Ok((out, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let rows = [
            ("127.0.0.1", "127.0.0.1"),
            ("2001:DB8::1", "2001:db8::1"),
            ("::", "::"),
            ("::1", "::1"),
            ("1::", "1::"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
        ];
        for (text, printed) in rows {
            assert_eq!(parse_ip(text).unwrap().to_string(), printed, "{text}");
        }
    }

    #[test]
    fn malformed_addresses_are_told_apart() {
        let rows = [
            ("1.2.3", "ParseAddr(\"1.2.3\"): IPv4 address too short"),
            ("1.2.3.4.5", "ParseAddr(\"1.2.3.4.5\"): IPv4 address too long"),
            ("1.2.3.", "ParseAddr(\"1.2.3.\"): IPv4 field must have at least one digit (at \".\")"),
            ("1..2.3", "ParseAddr(\"1..2.3\"): IPv4 field must have at least one digit (at \".2.3\")"),
            ("1.2.3.256", "ParseAddr(\"1.2.3.256\"): IPv4 field has value >255"),
            ("1.2.3.04", "ParseAddr(\"1.2.3.04\"): IPv4 field has octet with leading zero"),
            ("1.2.3.a", "ParseAddr(\"1.2.3.a\"): unexpected character (at \"a\")"),
            ("hello", "ParseAddr(\"hello\"): unable to parse IP"),
            ("%eth0", "ParseAddr(\"%eth0\"): missing IPv6 address"),
            ("fe80::1%", "ParseAddr(\"fe80::1%\"): zone must be a non-empty string"),
            ("1:2", "ParseAddr(\"1:2\"): address string too short"),
            ("12345::", "ParseAddr(\"12345::\"): each group must have 4 or less digits (at \"12345::\")"),
            (":1", "ParseAddr(\":1\"): each colon-separated field must have at least one digit (at \":1\")"),
            ("1::2::3", "ParseAddr(\"1::2::3\"): multiple :: in address (at \":3\")"),
            (
                "1:2:3:4:5:6:7:8:9",
                "ParseAddr(\"1:2:3:4:5:6:7:8:9\"): trailing garbage after address (at \"9\")",
            ),
            (
                "1:2:3:4:5:6:7::8",
                "ParseAddr(\"1:2:3:4:5:6:7::8\"): the :: must expand to at least one field of zeros",
            ),
            ("1:g", "ParseAddr(\"1:g\"): each colon-separated field must have at least one digit (at \"g\")"),
            ("1g:", "ParseAddr(\"1g:\"): unexpected character, want colon (at \"g:\")"),
            ("1:", "ParseAddr(\"1:\"): colon must be followed by more characters (at \":\")"),
        ];
        for (text, error) in rows {
            let context = format!("IP Address {} parse error during conversion from string: ", quote(text));
            assert_eq!(parse_ip(text).unwrap_err().to_string(), context + error, "{text}");
        }
        let rows = [
            ("fe80::1%eth0", "IP address \"fe80::1%eth0\" with zone value is not allowed"),
            ("::ffff:10.0.0.1", "IPv4-mapped IPv6 address \"::ffff:10.0.0.1\" is not allowed"),
        ];
        for (text, error) in rows {
            assert_eq!(parse_ip(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn ranges_contain_what_begins_as_they_do() {
        let range = Cidr::parse("10.1.2.3/8").unwrap();
        assert_eq!(range.masked().to_string(), "10.0.0.0/8");
        assert!(range.contains(parse_ip("10.255.0.0").unwrap()));
        assert!(!range.contains(parse_ip("11.0.0.0").unwrap()));
        assert!(!range.contains(parse_ip("::1").unwrap()));
        assert!(range.contains_cidr(Cidr::parse("10.0.0.0/16").unwrap()));
        assert!(!range.contains_cidr(Cidr::parse("10.0.0.0/7").unwrap()));
        assert!(Cidr::parse("::/0").unwrap().contains(parse_ip("ffff::").unwrap()));
    }

    #[test]
    fn malformed_ranges_are_told_apart() {
        let rows = [
            ("10.0.0.0", "no '/'"),
            ("10.0.0/8", "ParseAddr(\"10.0.0\"): IPv4 address too short"),
            ("10.0.0.0/08", "bad bits after slash: \"08\""),
            ("10.0.0.0/+8", "bad bits after slash: \"+8\""),
            ("10.0.0.0/", "bad bits after slash: \"\""),
            ("10.0.0.0/33", "prefix length out of range"),
            ("fe80::1%a/64", "IPv6 zones cannot be present in a prefix"),
        ];
        for (text, error) in rows {
            let context = "network address parse error during conversion from string: ".repeat(2);
            let error = format!("{context}netip.ParsePrefix({}): {error}", quote(text));
            assert_eq!(Cidr::parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }
}
