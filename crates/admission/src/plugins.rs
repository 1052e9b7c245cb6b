//! The plugins that decide by themselves, without asking another process.

mod namespace_lifecycle;

pub use namespace_lifecycle::NamespaceLifecycle;

use crate::AdmissionPlugin;
use std::sync::Arc;

/// The plugins of a default server, in Kubernetes' order.
pub fn default_plugins() -> Vec<Arc<dyn AdmissionPlugin>> {
    vec![Arc::new(NamespaceLifecycle::default())]
}
