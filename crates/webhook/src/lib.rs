//! Calls webhooks: external servers, over TLS, with limits on time and size.
//!
//! A [`WebhookClient`] is created from a [`ClientConfig`] and keeps connections open between calls. It knows the
//! webhook's address and the limits of its responses, but not the contents of requests.
//!
//! **Every call has a time-out, and every response a size limit**, whatever the webhook does. Error texts are those
//! of Go's client, because clients of this server see them.
//!
//! Proxies from the environment are not used.

mod authorization_header;
mod call_error;
mod client;
mod document_client;
mod field_type;
mod kubeconfig;
mod packed_body;
mod response;
mod retry;
mod review_kind;
mod typed_review;

pub use call_error::CallError;
pub use client::{ClientConfig, Endpoint, ServiceReference, WebhookClient};
pub use document_client::{Document, DocumentClient};
pub use field_type::FieldType;
pub use kubeconfig::{ClientUser, Credentials, Kubeconfig, KubeconfigError, WebhookUsers};
pub use response::Response;
pub use retry::{AttemptResult, Backoff};
pub use review_kind::{CLIENT_SCHEME, ReviewKind};
pub use typed_review::TypedReview;
