//! The plugins `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>).
//!
//! The configurations of webhooks, objects and static manifests, are read in a form that is kept while they are unchanged. A request is compared with
//! the rules first, so that one which no webhook applies to costs nothing but the comparison. Mutating webhooks are
//! called one after the other, each with the object that the previous one has left; validating ones side by side.
//!
//! A webhook is not trusted: its time, the size of its answer and the work of its patch are bounded, and every part of
//! the answer is checked. Configurations of admission themselves are sent to no webhook that an object configures, so that
//! a broken one can always be repaired.

mod answer;
mod call;
mod clients;
mod conditions;
mod configurations;
mod manifests;
mod metrics;
mod mutating;
mod patch;
mod plugin_config;
mod reinvocation;
mod review;
mod validating;
mod webhook;

pub use answer::{Answer, InvalidAnswer, answer};
pub use clients::WebhookClients;
pub use metrics::WebhookMetrics;
pub use mutating::MutatingAdmissionWebhook;
pub use plugin_config::{ConfiguredUsers, WebhookPluginConfig};
pub use review::ReviewVersion;
pub use validating::ValidatingAdmissionWebhook;
