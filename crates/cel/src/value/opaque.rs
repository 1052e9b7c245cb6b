//! Values of Kubernetes' libraries: <https://kubernetes.io/docs/reference/using-api/cel/#cel-libraries>.

use crate::authorizer::{Authorization, AuthorizationDecision};
use crate::functions::{NamedFormat, Semver};
use pintle_go_forms::{Cidr, Url};
use pintle_machinery::Quantity;
use std::fmt;
use std::net::IpAddr;

/// A value of one of Kubernetes' libraries, with functions of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Opaque {
    /// An exact number with a suffix.
    Quantity(Quantity),
    /// A computed quantity. On the right side of `==` it does not count as a quantity, a peculiarity of the reference.
    ComputedQuantity(Quantity),
    /// A URL.
    Url(Url),
    /// An IP address.
    Ip(IpAddr),
    /// A range of IP addresses.
    Cidr(Cidr),
    /// A format that strings can be validated against.
    Format(&'static NamedFormat),
    /// A version.
    Semver(Semver),
    /// An authorizer, or a check that is being built.
    Authorization(Authorization),
    /// The decision of an authorizer.
    Decision(AuthorizationDecision),
}

impl Opaque {
    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Opaque::Quantity(_) | Opaque::ComputedQuantity(_) => "kubernetes.Quantity",
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(_) => "net.CIDR",
            Opaque::Format(_) => "kubernetes.NamedFormat",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Authorization(authorization) => authorization.type_name(),
            Opaque::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    /// The name of the reference's implementation type.
    pub(super) fn implementation_name(&self) -> &'static str {
        match self {
            Opaque::Quantity(_) => "cel.Quantity",
            Opaque::ComputedQuantity(_) => "*cel.Quantity",
            Opaque::Url(_) => "cel.URL",
            Opaque::Ip(_) => "cel.IP",
            Opaque::Cidr(_) => "cel.CIDR",
            Opaque::Format(_) => "cel.Format",
            Opaque::Semver(_) => "cel.Semver",
            Opaque::Authorization(authorization) => authorization.implementation_name(),
            Opaque::Decision(_) => "library.decisionVal",
        }
    }

    /// The size in bytes of an address, or of a range's prefix.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Opaque::Ip(IpAddr::V4(_)) => Some(4),
            Opaque::Ip(IpAddr::V6(_)) => Some(16),
            Opaque::Cidr(cidr) => Some(usize::from(cidr.prefix_length).div_ceil(8)),
            _ => None,
        }
    }

    /// Whether two values of one type are equal; `None` for values of different types.
    pub(super) fn equal(&self, other: &Opaque) -> Option<bool> {
        Some(match (self, other) {
            (Opaque::Quantity(one) | Opaque::ComputedQuantity(one), Opaque::Quantity(other)) => one == other,
            (Opaque::Url(one), Opaque::Url(other)) => one.to_string() == other.to_string(),
            (Opaque::Ip(one), Opaque::Ip(other)) => one == other,
            (Opaque::Cidr(one), Opaque::Cidr(other)) => one == other,
            (Opaque::Format(one), Opaque::Format(other)) => one.name() == other.name(),
            (Opaque::Semver(one), Opaque::Semver(other)) => one.compare(other).is_eq(),
            _ => return None,
        })
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opaque::Quantity(quantity) | Opaque::ComputedQuantity(quantity) => quantity.fmt(f),
            Opaque::Url(url) => url.fmt(f),
            Opaque::Ip(ip) => ip.fmt(f),
            Opaque::Cidr(cidr) => cidr.fmt(f),
            Opaque::Format(format) => f.write_str(format.name()),
            Opaque::Semver(version) => version.fmt(f),
            Opaque::Authorization(_) | Opaque::Decision(_) => f.write_str(self.type_name()),
        }
    }
}
