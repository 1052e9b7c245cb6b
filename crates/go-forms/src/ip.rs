//! IP addresses and blocks: strictly, as Go's `net/netip` parses them (<https://pkg.go.dev/net/netip#ParseAddr>), and
//! leniently, as Go's `net` parsed them before it rejected leading zeros.

use crate::quote;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address, as `netip.ParseAddr` parses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address without its zone.
    pub ip: IpAddr,
    /// The text names a zone: `fe80::1%eth0`.
    pub has_zone: bool,
}

/// Parses an address, optionally with a zone, as `netip.ParseAddr`.
///
/// # Errors
/// Go's message.
pub fn parse_address(text: &str) -> Result<Address, String> {
    let problem = match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => match parse_v4(text) {
            Ok(octets) => return Ok(Address { ip: IpAddr::V4(octets.into()), has_zone: false }),
            Err(problem) => problem,
        },
        Some(b':') => match parse_v6(text) {
            Ok((octets, has_zone)) => return Ok(Address { ip: IpAddr::V6(octets.into()), has_zone }),
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

/// Parses an address leniently: leading zeros are ignored, and zones rejected.
pub fn parse_ip_sloppy(text: &str) -> Option<IpAddr> {
    match text.bytes().find(|byte| matches!(byte, b'.' | b':'))? {
        b'.' => parse_ipv4_sloppy(text).map(IpAddr::V4),
        _ => parse_ipv6_sloppy(text).map(IpAddr::V6),
    }
}

/// A block of addresses: an address, not necessarily the first one, and the length of the common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The whole address, bits beyond the prefix included.
    pub address: IpAddr,
    /// The length of the network prefix, in bits.
    pub prefix_length: u8,
}

impl Cidr {
    /// Parses `address/length`, as `netip.ParsePrefix`.
    ///
    /// # Errors
    /// Go's message.
    pub fn parse(text: &str) -> Result<Cidr, String> {
        let failed = |problem: String| format!("netip.ParsePrefix({}): {problem}", quote(text));
        let Some((address, bits)) = text.rsplit_once('/') else { return Err(failed("no '/'".to_owned())) };
        let Address { ip: address, has_zone } = parse_address(address).map_err(failed)?;
        if has_zone {
            return Err(failed("IPv6 zones cannot be present in a prefix".to_owned()));
        }
        let bad = || failed(format!("bad bits after slash: {}", quote(bits)));
        if !bits.bytes().all(|byte| byte.is_ascii_digit()) || (bits.len() > 1 && bits.starts_with('0')) {
            return Err(bad());
        }
        let length: i64 = bits.parse().map_err(|_| bad())?;
        match u8::try_from(length) {
            Ok(prefix_length) if prefix_length <= address_bits(address) => {
                Ok(Cidr { address, prefix_length })
            }
            _ => Err(failed("prefix length out of range".to_owned())),
        }
    }

    /// Parses `address/length` leniently: leading zeros are ignored.
    pub fn parse_sloppy(text: &str) -> Option<Cidr> {
        let (address, length) = text.split_once('/')?;
        let address = parse_ip_sloppy(address)?;
        let prefix_length = parse_decimal_sloppy(length, address_bits(address))?;
        Some(Cidr { address, prefix_length })
    }

    /// The network's own address: bits beyond the prefix are zero.
    pub fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        }
    }

    /// The block in canonical form, with its first address.
    pub fn masked(self) -> Cidr {
        Cidr { address: self.network(), ..self }
    }

    /// The canonical text of the block, as Go's `net.IPNet` prints it: an IPv4-mapped block as the corresponding IPv4
    /// block.
    pub fn canonical(self) -> String {
        match self.network() {
            IpAddr::V6(network) if self.prefix_length >= 96 => match network.to_ipv4_mapped() {
                Some(mapped) => format!("{mapped}/{}", self.prefix_length - 96),
                None => self.masked().to_string(),
            },
            _ => self.masked().to_string(),
        }
    }

    /// Whether an address is in the block.
    pub fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.address.is_ipv4() && Cidr { address: ip, ..self }.network() == self.network()
    }

    /// Whether all addresses of another block are in this one.
    pub fn contains_cidr(self, other: Cidr) -> bool {
        self.prefix_length <= other.prefix_length && self.contains(other.address)
    }

    /// The number of bits of an address in the block.
    pub fn address_bits(self) -> u8 {
        address_bits(self.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_length)
    }
}

fn address_bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
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

fn parse_decimal_sloppy(text: &str, max: u8) -> Option<u8> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = text.trim_start_matches('0');
    match digits {
        "" if is_number => Some(0),
        _ if is_number => digits.parse().ok().filter(|number| *number <= max),
        _ => None,
    }
}

fn parse_ipv4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = text.split('.').map(|octet| parse_decimal_sloppy(octet, u8::MAX));
    let address = Ipv4Addr::new(octets.next()??, octets.next()??, octets.next()??, octets.next()??);
    octets.next().is_none().then_some(address)
}

fn parse_ipv6_sloppy(text: &str) -> Option<Ipv6Addr> {
    let without_zeros = |group: &str| -> Option<Cow<'static, str>> {
        if group.contains('.') {
            return Some(parse_ipv4_sloppy(group)?.to_string().into());
        }
        match group.trim_start_matches('0') {
            "" if group.is_empty() => Some("".into()),
            "" => Some("0".into()),
            digits => Some(digits.to_owned().into()),
        }
    };
    let groups: Option<Vec<Cow<'_, str>>> = text.split(':').map(without_zeros).collect();
    groups?.join(":").parse().ok()
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
            let address = parse_address(text).unwrap();
            assert_eq!((address.ip.to_string().as_str(), address.has_zone), (printed, false), "{text}");
        }
        assert!(parse_address("fe80::1%eth0").unwrap().has_zone);
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
            assert_eq!(parse_address(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn leading_zeros_are_ignored_by_the_lenient_parser() {
        for (text, printed) in [
            ("010.0.0.1", "10.0.0.1"),
            ("0000:00001::", "0:1::"),
            ("FE80::0abc", "fe80::abc"),
            ("::ffff:1.2.3.04", "::ffff:1.2.3.4"),
        ] {
            assert_eq!(parse_ip_sloppy(text).unwrap().to_string(), printed, "{text}");
        }
        for text in
            ["", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", ":", ":::", "1::2::3", "::1%eth0", "g::"]
        {
            assert_eq!(parse_ip_sloppy(text), None, "{text}");
        }
        for (text, canonical) in [
            ("10.0.0.1/08", "10.0.0.0/8"),
            ("::ffff:1.2.3.4/120", "1.2.3.0/24"),
            ("2001:DB8::1/32", "2001:db8::/32"),
        ] {
            assert_eq!(Cidr::parse_sloppy(text).unwrap().canonical(), canonical, "{text}");
        }
        for text in ["10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "::/129"] {
            assert_eq!(Cidr::parse_sloppy(text), None, "{text}");
        }
    }

    #[test]
    fn blocks_contain_addresses_of_their_prefix() {
        let block = |text| Cidr::parse(text).unwrap();
        let ten = block("10.1.2.3/8");
        assert_eq!(ten.masked().to_string(), "10.0.0.0/8");
        for (address, contained) in [("10.255.0.0", true), ("11.0.0.0", false), ("::1", false)] {
            assert_eq!(ten.contains(address.parse().unwrap()), contained, "{address}");
        }
        assert!(ten.contains_cidr(block("10.0.0.0/16")));
        assert!(!ten.contains_cidr(block("10.0.0.0/7")));
        assert!(block("::/0").contains("ffff::".parse().unwrap()));
    }

    #[test]
    fn malformed_blocks_are_told_apart() {
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
            let error = format!("netip.ParsePrefix({}): {error}", quote(text));
            assert_eq!(Cidr::parse(text).unwrap_err(), error, "{text}");
        }
    }
}
