//! Connects to other servers: webhooks, extension API servers.
//!
//! A [`Connector`] opens connections: it resolves services by a [`ServiceResolver`], and negotiates TLS as
//! [`TlsSettings`] say. [`Connections`] keep them for later requests. Failures have the texts of Go's client ([`Cause`]),
//! because clients of this server see them.
//!
//! Proxies from the environment are not used.

mod cause;
mod certificate_defects;
mod client;
mod client_certificate;
mod config_error;
mod connections;
mod connector;
mod dialer;
mod direct;
mod egress;
mod http1;
mod http2;
mod incoming_body;
mod kept;
mod link;
mod network;
mod outbound;
mod rest_client_metrics;
mod roots;
mod service_resolver;
mod tls_settings;
mod unanswered;
mod upstream_body;

pub use cause::Cause;
pub use certificate_defects::Peers;
pub use client::Client;
pub use client_certificate::ClientCertificate;
pub use config_error::ConfigError;
pub use connections::{Connections, Failed};
pub use connector::{Connector, Destination, Stream};
pub use dialer::Dialer;
pub use egress::{EgressConfigError, EgressMetrics, EgressSelector};
pub use incoming_body::{IncomingBody, IncomingBodyError};
pub use link::{Link, Tunnel};
pub use network::Network;
pub use outbound::Outbound;
pub use rest_client_metrics::{RestClientMetrics, RestClientSeries};
pub use service_resolver::ServiceResolver;
pub use tls_settings::TlsSettings;
pub use upstream_body::{UpstreamBody, empty_body};
