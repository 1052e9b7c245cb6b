//! The ranges of cluster IPs and node ports, and the order of allocation in them.

use pintle_go_forms::Cidr;
use std::{fmt, net::IpAddr, str::FromStr};

/// An IP address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// The family of an address.
    pub fn of(address: IpAddr) -> IpFamily {
        if address.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 }
    }

    /// The name of the family in `ipFamilies`.
    pub fn as_str(self) -> &'static str {
        match self {
            IpFamily::V4 => "IPv4",
            IpFamily::V6 => "IPv6",
        }
    }

    /// Parses a name in `ipFamilies`.
    pub fn parse(name: &str) -> Option<IpFamily> {
        [IpFamily::V4, IpFamily::V6].into_iter().find(|family| family.as_str() == name)
    }

    /// The other family.
    #[must_use]
    pub fn other(self) -> IpFamily {
        match self {
            IpFamily::V4 => IpFamily::V6,
            IpFamily::V6 => IpFamily::V4,
        }
    }
}

/// The service network: one range of addresses, or one of each family, and the range of node ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNetwork {
    cidrs: Vec<Cidr>,
    node_ports: PortRange,
}

/// An error in the configured ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkError {
    /// There are no ranges, more than two, or two of one family.
    Families,
    /// A range of cluster IPs has too few addresses.
    TooSmall,
    /// The text is not a valid port range.
    Ports(String),
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkError::Families => {
                f.write_str("service cluster IP ranges must be one range, or one of each IP family")
            }
            NetworkError::TooSmall => {
                write!(f, "the service cluster IP range must be at least {MIN_ADDRESSES} IP addresses")
            }
            NetworkError::Ports(text) => write!(f, "{text:?} is not a valid range of ports"),
        }
    }
}

impl std::error::Error for NetworkError {}

const MIN_ADDRESSES: u128 = 8;

impl ServiceNetwork {
    /// Creates a network with the ranges of `--service-cluster-ip-range`. The family of the first is the primary one.
    ///
    /// # Errors
    /// Unless there is one range, or one of each family, and each has at least 8 addresses.
    pub fn new(cidrs: Vec<Cidr>, node_ports: PortRange) -> Result<ServiceNetwork, NetworkError> {
        match cidrs.as_slice() {
            [_] => {}
            [first, second] if first.address.is_ipv4() != second.address.is_ipv4() => {}
            _ => return Err(NetworkError::Families),
        }
        if cidrs.iter().any(|cidr| block_size(*cidr) < MIN_ADDRESSES) {
            return Err(NetworkError::TooSmall);
        }
        Ok(ServiceNetwork { cidrs, node_ports })
    }

    /// The ranges in the format of `ServiceCIDR` objects.
    pub fn cidrs(&self) -> Vec<String> {
        self.cidrs.iter().map(|cidr| cidr.canonical()).collect()
    }

    /// The range of node ports.
    pub fn node_ports(&self) -> PortRange {
        self.node_ports
    }

    /// The family of services that do not specify one: that of the first range.
    pub fn primary_family(&self) -> IpFamily {
        self.cidrs.first().map_or(IpFamily::V4, |cidr| IpFamily::of(cidr.address))
    }

    /// Whether there is a range of that family.
    pub fn has_family(&self, family: IpFamily) -> bool {
        self.cidrs.iter().any(|cidr| IpFamily::of(cidr.address) == family)
    }

    /// Whether there is a range of each family.
    pub fn is_dual_stack(&self) -> bool {
        self.cidrs.len() == 2
    }

    /// The address of the `kubernetes` service: the first usable address of the first range.
    pub fn api_server_address(&self) -> Option<IpAddr> {
        self.cidrs.first().and_then(|cidr| AddressRange::of(*cidr).at(0))
    }
}

impl Default for ServiceNetwork {
    /// The ranges 10.0.0.0/24 and 30000-32767.
    fn default() -> ServiceNetwork {
        let address = IpAddr::from([10, 0, 0, 0]);
        ServiceNetwork { cidrs: vec![Cidr { address, prefix_length: 24 }], node_ports: PortRange::default() }
    }
}

/// An inclusive range of port numbers, which is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl Default for PortRange {
    fn default() -> PortRange {
        PortRange { first: 30000, last: 32767 }
    }
}

impl PortRange {
    /// The number of ports.
    pub fn size(self) -> usize {
        usize::from(self.last - self.first) + 1
    }

    /// The port at an offset in the range; the last port for a higher offset.
    pub fn port(self, offset: usize) -> u16 {
        self.first.saturating_add(u16::try_from(offset).unwrap_or(u16::MAX)).min(self.last)
    }

    /// The offset of a port, or `None` outside the range.
    pub fn offset(self, port: i64) -> Option<usize> {
        let inside = (i64::from(self.first)..=i64::from(self.last)).contains(&port);
        inside.then(|| usize::try_from(port - i64::from(self.first)).ok()).flatten()
    }

    /// The number of ports at the start of the range that dynamic allocation uses last
    /// (<https://kubernetes.io/docs/concepts/services-networking/service/#avoid-nodeport-collisions>).
    pub(super) fn static_band(self) -> usize {
        if self.size() <= 16 { 0 } else { (self.size() / 32).clamp(16, 128) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for PortRange {
    type Err = NetworkError;

    /// Parses `first-last`, `first+count` (the ports after the first), or a single port.
    fn from_str(text: &str) -> Result<PortRange, NetworkError> {
        let parse = || {
            let text = text.trim();
            let (first, last) = match (text.split_once('-'), text.split_once('+')) {
                (Some((first, last)), _) => (first.parse().ok()?, last.parse().ok()?),
                (None, Some((first, more))) => {
                    let first: u16 = first.parse().ok()?;
                    (first, first.checked_add(more.parse().ok()?)?)
                }
                (None, None) => (text.parse().ok()?, text.parse().ok()?),
            };
            (first <= last && first > 0).then_some(PortRange { first, last })
        };
        parse().ok_or_else(|| NetworkError::Ports(text.to_owned()))
    }
}

/// The usable addresses of a block: all but the network address and, for IPv4, the broadcast address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressRange {
    family: IpFamily,
    first: u128,
    /// The number after the last address.
    end: u128,
    /// The number of addresses at the start of the range that dynamic allocation uses last.
    static_band: u128,
}

/// The number of addresses in a block, including those that no service gets; limited to 2^64.
fn block_size(cidr: Cidr) -> u128 {
    let bits: u8 = if cidr.address.is_ipv4() { 32 } else { 128 };
    let host_bits = u32::from(bits - cidr.prefix_length.min(bits));
    1u128.checked_shl(host_bits).unwrap_or(u128::MAX).min(1 << 64)
}

impl AddressRange {
    pub(super) fn of(cidr: Cidr) -> AddressRange {
        let family = IpFamily::of(cidr.address);
        let (network, unusable_at_end) = match cidr.network() {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 1),
            IpAddr::V6(address) => (u128::from(address), 0),
        };
        let size = block_size(cidr);
        let static_band = if size <= 16 { 0 } else { (size / 16).clamp(16, 256) };
        let first = network.saturating_add(1);
        let end = network.saturating_add(size - unusable_at_end.min(size)).max(first);
        AddressRange { family, first, end, static_band: static_band.min(end - first) }
    }

    pub(super) fn size(self) -> u128 {
        self.end - self.first
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        let number = match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        IpFamily::of(address) == self.family && (self.first..self.end).contains(&number)
    }

    /// The address at an offset in the range.
    pub(super) fn at(self, offset: u128) -> Option<IpAddr> {
        let number = self.first.checked_add(offset).filter(|number| *number < self.end)?;
        Some(match self.family {
            IpFamily::V4 => IpAddr::from(u32::try_from(number).ok()?.to_be_bytes()),
            IpFamily::V6 => IpAddr::from(number.to_be_bytes()),
        })
    }

    /// All addresses in the order of dynamic allocation: each band from a random offset, the static band last
    /// (<https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/>).
    pub(super) fn candidates(self) -> impl Iterator<Item = IpAddr> {
        let dynamic = shuffled_start(self.static_band, self.size());
        let statics = shuffled_start(0, self.static_band);
        dynamic.chain(statics).filter_map(move |offset| self.at(offset))
    }
}

/// All numbers of a range, beginning at a random one and wrapping around.
pub(super) fn shuffled_start(from: u128, to: u128) -> impl Iterator<Item = u128> {
    let start = if from < to { rand::random_range(from..to) } else { to };
    (start..to).chain(from..start.min(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse_sloppy(text).unwrap()
    }

    #[test]
    fn every_usable_address_is_a_candidate_once_the_static_band_last() {
        for (text, size, band) in
            [("10.0.0.0/24", 254, 16), ("10.0.0.0/28", 14, 0), ("fd00::/120", 255, 16), ("10.0.0.0/32", 0, 0)]
        {
            let range = AddressRange::of(cidr(text));
            let candidates: Vec<IpAddr> = range.candidates().collect();
            assert_eq!(candidates.len(), size, "{text}");
            assert_eq!(candidates.iter().collect::<BTreeSet<_>>().len(), size, "{text}");
            assert!(candidates.iter().all(|address| range.contains(*address)), "{text}");
            let lowest: BTreeSet<IpAddr> = (0..band).filter_map(|offset| range.at(offset)).collect();
            let last = candidates.iter().rev().take(lowest.len()).copied().collect::<BTreeSet<_>>();
            assert_eq!(last, lowest, "{text}");
        }
        let huge = AddressRange::of(cidr("fd00::/8"));
        assert!(huge.candidates().next().is_some_and(|address| huge.contains(address)));
    }

    #[test]
    fn networks_and_broadcast_addresses_are_not_usable() {
        let range = AddressRange::of(cidr("10.0.0.0/24"));
        for (address, contained) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.254", true),
            ("10.0.0.255", false),
            ("::1", false),
        ] {
            assert_eq!(range.contains(address.parse().unwrap()), contained, "{address}");
        }
    }

    #[test]
    fn port_ranges_are_read_and_printed() {
        for (text, printed) in
            [("30000-32767", Some("30000-32767")), ("30000+5", Some("30000-30005")), ("80", Some("80-80"))]
        {
            assert_eq!(text.parse::<PortRange>().ok().map(|range| range.to_string()).as_deref(), printed);
        }
        for text in ["", "2-1", "0-3", "1-70000", "65535+1", "a-b"] {
            assert_eq!(text.parse::<PortRange>(), Err(NetworkError::Ports(text.to_owned())), "{text}");
        }
        let range = PortRange::default();
        assert_eq!((range.size(), range.static_band()), (2768, 86));
        assert_eq!((range.offset(30000), range.offset(29999), range.offset(-1)), (Some(0), None, None));
        assert_eq!(range.port(2767), 32767);
    }

    #[test]
    fn networks_have_one_range_a_family() {
        let ports = PortRange::default();
        for (cidrs, valid) in [
            (vec!["10.0.0.0/24"], true),
            (vec!["10.0.0.0/24", "fd00::/112"], true),
            (vec![], false),
            (vec!["10.0.0.0/24", "10.1.0.0/24"], false),
            (vec!["10.0.0.0/29"], true),
            (vec!["10.0.0.0/30"], false),
            (vec!["fd00::/125"], true),
            (vec!["fd00::/126"], false),
        ] {
            let parsed = cidrs.iter().map(|text| cidr(text)).collect();
            assert_eq!(ServiceNetwork::new(parsed, ports).is_ok(), valid, "{cidrs:?}");
        }
        assert_eq!(ServiceNetwork::default().api_server_address(), "10.0.0.1".parse().ok());
    }
}
