//! The configured webhooks.

use super::{clients::WebhookClients, webhook::Webhook};
use crate::kept::{Compiled, Forms, Kept};
use pintle_admission::AdmissionRequest;
use pintle_admission_cel::Compiler;
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use std::sync::Arc;

/// The webhooks of all configurations of one resource, in the order of the configurations' names. They are read again
/// only for a configuration that has changed.
pub(super) struct Configurations {
    kept: Kept<CompiledWebhooks, 1>,
    compiler: Compiler,
    clients: Arc<WebhookClients>,
}

/// Webhooks, and the configurations that they were read from.
#[derive(Default)]
pub(super) struct CompiledWebhooks {
    configurations: Forms<Vec<Arc<Webhook>>>,
    webhooks: Vec<Arc<Webhook>>,
}

impl CompiledWebhooks {
    /// All webhooks, in call order.
    pub(super) fn webhooks(&self) -> &[Arc<Webhook>] {
        &self.webhooks
    }
}

impl Compiled<1> for CompiledWebhooks {
    fn is_of(&self, [configurations]: &[Vec<Arc<Value>>; 1]) -> bool {
        self.configurations.are_of(configurations)
    }
}

impl Configurations {
    /// The configurations of a resource of `admissionregistration.k8s.io`.
    pub(super) fn new(resource: &str, clients: Arc<WebhookClients>) -> Configurations {
        Configurations { kept: Kept::new([resource]), compiler: Compiler::new(), clients }
    }

    /// The present webhooks.
    ///
    /// # Errors
    /// When the configurations are not cached yet and cannot be read from the store.
    pub(super) async fn current(
        &self,
        request: &AdmissionRequest<'_>,
    ) -> Result<Arc<CompiledWebhooks>, Status> {
        let compile = |last: &CompiledWebhooks, [configurations]: [Vec<Arc<Value>>; 1]| {
            let configurations =
                last.configurations.updated(configurations, |configuration| self.webhooks(configuration));
            let webhooks = configurations.iter().flat_map(|webhooks| webhooks.iter().cloned()).collect();
            CompiledWebhooks { configurations, webhooks }
        };
        self.kept.current(request, compile).await
    }

    fn webhooks(&self, configuration: &Value) -> Vec<Arc<Webhook>> {
        let name = configuration.name();
        let webhooks = configuration.items_at("webhooks").iter().enumerate();
        let read = |(place, webhook): (usize, &Value)| {
            Arc::new(Webhook::new(name, place, webhook, &self.compiler, &self.clients))
        };
        webhooks.map(read).collect()
    }
}
