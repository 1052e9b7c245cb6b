//! The configured webhooks.

use super::{clients::WebhookClients, webhook::Webhook};
use parking_lot::Mutex;
use pintle_admission::{AdmissionRequest, ListState};
use pintle_admission_cel::Compiler;
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use std::sync::Arc;

/// The webhooks of all configurations of one resource, in the order of the configurations' names. They are read again
/// only for a configuration that has changed.
pub(super) struct Configurations {
    resource: GroupResource,
    compiler: Compiler,
    clients: Arc<WebhookClients>,
    last: Mutex<Last>,
}

/// The webhooks, and the state of the cache from which they were read.
#[derive(Default)]
struct Last {
    compiled: Arc<Compiled>,
    state: Option<ListState>,
}

/// Webhooks, and the configurations that they were read from.
#[derive(Default)]
pub(super) struct Compiled {
    configurations: Vec<(Arc<Value>, Vec<Arc<Webhook>>)>,
    webhooks: Vec<Arc<Webhook>>,
}

impl Compiled {
    /// All webhooks, in call order.
    pub(super) fn webhooks(&self) -> &[Arc<Webhook>] {
        &self.webhooks
    }
}

impl Configurations {
    /// The configurations of a resource of `admissionregistration.k8s.io`.
    pub(super) fn new(resource: &str, clients: Arc<WebhookClients>) -> Configurations {
        Configurations {
            resource: GroupResource::new("admissionregistration.k8s.io", resource),
            compiler: Compiler::new(),
            clients,
            last: Mutex::default(),
        }
    }

    /// The present webhooks.
    ///
    /// # Errors
    /// When the configurations are not cached yet and cannot be read from the store.
    pub(super) async fn current(&self, request: &AdmissionRequest<'_>) -> Result<Arc<Compiled>, Status> {
        let last = {
            let last = self.last.lock();
            if let Some(state) = &last.state
                && request.lister.is_in_state(&self.resource, state)
            {
                return Ok(last.compiled.clone());
            }
            last.compiled.clone()
        };
        // The state is older than the list, if they differ at all, so that no change is missed.
        let state = request.lister.state(&self.resource);
        let configurations = request.list(&self.resource, "").await?;
        let is_unchanged = last.configurations.len() == configurations.len()
            && last.configurations.iter().zip(&configurations).all(|((own, _), other)| is_same(own, other));
        if is_unchanged {
            self.last.lock().state = state;
            return Ok(last);
        }
        let compiled = Arc::new(self.compile(configurations, &last));
        *self.last.lock() = Last { compiled: compiled.clone(), state };
        Ok(compiled)
    }

    fn compile(&self, configurations: Vec<Arc<Value>>, last: &Compiled) -> Compiled {
        let mut compiled = Compiled::default();
        for configuration in configurations {
            let kept = last.configurations.iter().find(|(own, _)| is_same(own, &configuration));
            let webhooks = match kept {
                Some((_, webhooks)) => webhooks.clone(),
                None => self.webhooks(&configuration),
            };
            compiled.webhooks.extend(webhooks.iter().cloned());
            compiled.configurations.push((configuration, webhooks));
        }
        compiled
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

/// Whether two configurations are one, in one state.
fn is_same(one: &Arc<Value>, other: &Arc<Value>) -> bool {
    let field = |path: &str| one.str_at(path) == other.str_at(path);
    Arc::ptr_eq(one, other) || field("metadata.uid") && field("metadata.resourceVersion")
}
