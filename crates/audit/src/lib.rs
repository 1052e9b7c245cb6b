//! Auditing: selects requests, and writes their events to backends
//! (<https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/>).
//!
//! An [`Auditor`] has a [`Policy`] and backends. It creates an [`AuditContext`] for each selected request; the parts
//! of the server that handle the request add their data to the context, and at each stage its event is sent to all
//! backends.
//!
//! **An event is encoded once per stage**, whatever the number of backends. **A request waits only as the modes of
//! the backends require**: `batch` never waits, and drops events when its queue is full, which is counted; `blocking`
//! waits for the backend and continues when it fails; `blocking-strict` refuses requests that cannot be audited.
//!
//! The crate does not depend on HTTP: the server passes the data of the requests.

mod auditor;
mod backend;
mod backends;
mod batch;
mod context;
mod encode;
mod event;
mod json;
mod latencies;
mod log;
mod metrics;
mod policy;
mod room;
mod rotating_file;
mod target;
mod webhook;

pub use auditor::Auditor;
pub use backend::{Backend, Mode, TruncateConfig};
pub use batch::{BatchConfig, Throttle};
pub use context::{AuditContext, RequestMetadata};
pub use event::{Event, Level, ObjectReference, ResponseStatus, Stage, StageSet};
pub use latencies::Layer;
pub use log::{Log, LogConfig, LogFormat, LogOpenError};
pub use metrics::AuditMetrics;
pub use policy::{Attributes, Policy, PolicyError, PolicyProblem, RequestAuditConfig};
pub use rotating_file::RotationConfig;
pub use webhook::{Webhook, WebhookError};
