//! Audit: which requests are told of, to whom, and how much
//! (<https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/>).
//!
//! An [`Auditor`] has a [`Policy`] and backends. For each request it is asked for an [`AuditContext`], which the parts of
//! the server that the request passes fill in; at the stages of the request the context's event goes to all backends.
//!
//! **An event is encoded once for each stage**, whatever the number of backends. **No request waits longer than its
//! backends' modes say**: `batch` never waits, and drops events when its queue is full, which is counted; `blocking` waits
//! for the backend and goes on when it fails; `blocking-strict` refuses requests that cannot be told of.
//!
//! There is no HTTP here: who serves requests takes from them what an event says.

mod auditor;
mod backend;
mod batch;
mod context;
mod encode;
mod event;
mod json;
mod log;
mod metrics;
mod policy;
mod rotating_file;
mod webhook;

pub use auditor::Auditor;
pub use backend::{Backend, BatchConfig, Mode, Throttle, TruncateConfig};
pub use context::{AuditContext, RequestMetadata};
pub use event::{Event, Level, ObjectReference, ResponseStatus, Stage, StageSet};
pub use log::{Log, LogConfig, LogFormat, LogOpenError};
pub use metrics::AuditMetrics;
pub use policy::{Attributes, Policy, PolicyError, PolicyProblem, RequestAuditConfig};
pub use rotating_file::RotationConfig;
pub use webhook::{Webhook, WebhookError};
