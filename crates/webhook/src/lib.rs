//! Calls of webhooks: servers that somebody else runs and this one asks, over TLS and with bounds for everything they could
//! do wrong.
//!
//! A [`WebhookClient`] is made of a [`ClientConfig`] and keeps connections open between calls. It knows how a webhook is
//! reached and when its answer is none, not what it is asked.
//!
//! **A webhook gets no more than its time and an answer of bounded size**, whatever it does. Errors are in the words of Go's
//! client, since they reach those who asked the server.
//!
//! Proxies from the environment are not used.

mod authorization_header;
mod call_error;
mod client;
mod connector;
mod document_client;
mod kubeconfig;
mod response;
mod retry;
mod roots;
mod service_resolver;
mod tls;

pub use call_error::{CallError, ConfigError};
pub use client::{ClientConfig, Endpoint, ServiceReference, WebhookClient};
pub use document_client::{Document, DocumentClient};
pub use kubeconfig::{Credentials, Kubeconfig, KubeconfigError};
pub use response::Response;
pub use retry::{AttemptResult, Backoff};
pub use service_resolver::{ClusterIpResolver, ServiceResolver};
