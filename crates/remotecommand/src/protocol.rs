//! The versions of the protocol of standard streams.

/// The version that WebSocket clients are translated from.
pub(crate) const V5: &str = "v5.channel.k8s.io";

/// A version of the protocol between this server and a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The first one, in which input does not end.
    V1,
    V2,
    /// With terminal sizes.
    V3,
    /// With a `Status` as the final message. The fifth version is the same over SPDY.
    V4,
}

impl Protocol {
    /// The names that a node is offered, the preferred one first.
    pub(crate) const OFFERED: [&str; 5] =
        [V5, "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];

    /// The protocol of a name. A node that names none speaks the first version.
    pub(crate) fn named(name: &str) -> Option<Protocol> {
        match name {
            V5 | "v4.channel.k8s.io" => Some(Protocol::V4),
            "v3.channel.k8s.io" => Some(Protocol::V3),
            "v2.channel.k8s.io" => Some(Protocol::V2),
            "channel.k8s.io" | "" => Some(Protocol::V1),
            _ => None,
        }
    }
}
