//! The proxy between servers of different versions: a request for a resource that this server lacks, and another server of
//! the cluster serves, is forwarded to that server
//! (<https://kubernetes.io/docs/concepts/architecture/mixed-version-proxy/>).
//!
//! ```text
//!   identity leases ──► Identities ──┐                           definitions, API services ──► Exclusions
//!                                    ▼                                                             │
//!   endpoint leases ──────────► PeerProxy: asks each peer for its discovery ──► Catalog ◄──────────┘
//!          │                                                                       │
//!          └────────► handler of requests ◄────────────────────────────────────────┘
//! ```
//!
//! Servers find each other by two leases: an object in the API, which names the server, and a key in the store, which has
//! its address ([`EndpointLeases`]). Both have kube-apiserver's form, so that both kinds of servers forward to each other.
//! Only those who can write to the store can name an address. A request is forwarded once: the server that gets it serves
//! it itself.
//!
//! Custom resources and the resources of extension servers are the same for all servers of a cluster, and never forwarded
//! ([`exclusions`]).

mod catalog;
mod discovery;
mod endpoint_leases;
mod exclusions;
mod handler;
mod identities;
mod metrics;
mod peer_client;
mod peer_proxy;

pub use endpoint_leases::{EndpointLeases, PeerEndpoint};
pub use handler::Forwarder;
pub use metrics::PeerMetrics;
pub use peer_client::PeerClient;
pub use peer_proxy::{PeerProxy, Sources};
