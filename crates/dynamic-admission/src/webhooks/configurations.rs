//! The configured webhooks.

use super::{clients::WebhookClients, webhook::Webhook};
use crate::{
    kept::{Compiled, Forms, Kept},
    matching::is_exempt,
    static_manifests::{ManifestKinds, ManifestLoader, Manifests},
};
use pintle_admission::{AdmissionRequest, PluginError};
use pintle_admission_cel::Compiler;
use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use std::{path::Path, sync::Arc};

/// The webhooks of all configurations of one resource, in the order of the configurations' names. They are read again
/// only for a configuration that has changed.
pub(super) struct Configurations {
    kept: Kept<CompiledWebhooks, 1>,
    reader: Arc<WebhookReader>,
    manifests: Option<Arc<Manifests<Webhooks>>>,
}

type Webhooks = Vec<Arc<Webhook>>;

/// Webhooks, and the configurations that they were read from.
#[derive(Default)]
struct CompiledWebhooks {
    configurations: Forms<Webhooks>,
    webhooks: Webhooks,
}

impl Compiled<1> for CompiledWebhooks {
    fn is_of(&self, [configurations]: &[Vec<Arc<Value>>; 1]) -> bool {
        self.configurations.are_of(configurations)
    }
}

/// The webhooks that may be called for a request.
pub(super) struct PresentWebhooks {
    manifests: Option<Arc<Webhooks>>,
    configured: Option<Arc<CompiledWebhooks>>,
}

impl PresentWebhooks {
    /// The webhooks in call order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Webhook>> {
        let manifests = self.manifests.iter().flat_map(|webhooks| webhooks.iter());
        manifests.chain(self.configured.iter().flat_map(|compiled| &compiled.webhooks))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl Configurations {
    /// The configurations of a resource of `admissionregistration.k8s.io`.
    pub(super) fn new(resource: &str, clients: Arc<WebhookClients>) -> Configurations {
        let reader = Arc::new(WebhookReader { compiler: Compiler::new(), clients });
        Configurations { kept: Kept::new([resource]), reader, manifests: None }
    }

    /// Adds the webhooks of the manifests in a directory.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub(super) fn with_manifests(
        self,
        plugin: &'static str,
        directory: Option<&Path>,
        kinds: &'static ManifestKinds<1>,
        loader: &ManifestLoader,
    ) -> Result<Configurations, PluginError> {
        let reader = self.reader.clone();
        let compile = move |[configurations]: [Vec<Arc<Value>>; 1]| {
            configurations
                .iter()
                .flat_map(|configuration| reader.webhooks("manifest/", configuration))
                .collect()
        };
        let manifests = loader.load(plugin, directory, kinds, compile)?;
        Ok(Configurations { manifests, ..self })
    }

    /// Whether any webhook may be called for a request. Those of objects are not for the objects that configure
    /// admission.
    pub(super) fn handle(&self, request: &AdmissionRequest<'_>) -> bool {
        self.manifests.is_some() || !is_exempt(request.kind)
    }

    /// The present webhooks for a request.
    ///
    /// # Errors
    /// When the configurations are not cached yet and cannot be read from the store.
    pub(super) async fn present(&self, request: &AdmissionRequest<'_>) -> Result<PresentWebhooks, Status> {
        let manifests = self.manifests.as_ref().map(|manifests| manifests.in_force());
        if is_exempt(request.kind) {
            return Ok(PresentWebhooks { manifests, configured: None });
        }
        let compile = |last: &CompiledWebhooks, [configurations]: [Vec<Arc<Value>>; 1]| {
            let configurations = last
                .configurations
                .updated(configurations, |configuration| self.reader.webhooks("", configuration));
            let webhooks = configurations.iter().flat_map(|webhooks| webhooks.iter().cloned()).collect();
            CompiledWebhooks { configurations, webhooks }
        };
        let configured = Some(self.kept.current(request, compile).await?);
        Ok(PresentWebhooks { manifests, configured })
    }
}

/// Reads the webhooks of configurations.
struct WebhookReader {
    compiler: Compiler,
    clients: Arc<WebhookClients>,
}

impl WebhookReader {
    /// The webhooks of a configuration; `source` tells them from those of another source with the same names.
    fn webhooks(&self, source: &str, configuration: &Value) -> Webhooks {
        let name = configuration.name();
        let webhooks = configuration.items_at("webhooks").iter().enumerate();
        let read = |(place, webhook): (usize, &Value)| {
            let id = format!("{source}{name}/{}/{place}", webhook.str_at("name"));
            Arc::new(Webhook::new(id, name, webhook, &self.compiler, &self.clients))
        };
        webhooks.map(read).collect()
    }
}
