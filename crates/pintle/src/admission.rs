//! Assembles the admission chain: the plugins of the admission crate, and those of other crates.

use crate::{
    Options, authorization::Authorization, manifest_files::ManifestFiles, rest_mapper::ChainRestMapper,
    run_error::RunError,
};
use pintle_admission::{
    AdmissionChain, AdmissionConfiguration, AdmissionMetrics, ChainConfig, PluginFactories,
    plugins::OwnerReferencesPermissionEnforcement,
};
use pintle_api::admissionregistration::default_and_validate;
use pintle_dialer::Outbound;
use pintle_dynamic_admission::{
    ConditionMetrics, ImagePolicyWebhook,
    policies::{
        mutating::{MutatingPolicies, MutationMetrics},
        plugin_config,
        validating::{PolicyMetrics, ValidatingPolicies},
    },
    static_manifests::ManifestLoader,
    webhooks::{
        ConfiguredUsers, MutatingAdmissionWebhook, ValidatingAdmissionWebhook, WebhookClients,
        WebhookMetrics, WebhookPluginConfig,
    },
};
use pintle_feature_gates::Gate;
use prometheus::core::Collector;
use std::sync::Arc;

/// The admission chain, and the parts of its plugins that are started after it is created.
pub(crate) struct Admission {
    pub(crate) chain: AdmissionChain,
    /// The resources of kinds, which the servers provide.
    pub(crate) rest_mapper: Arc<ChainRestMapper>,
    metrics: AdmissionMetrics,
    dynamic_metrics: DynamicMetrics,
    manifests: ManifestLoader,
}

/// The metrics of webhooks and policies.
#[derive(Clone)]
struct DynamicMetrics {
    conditions: ConditionMetrics,
    mutations: MutationMetrics,
    validations: PolicyMetrics,
    webhooks: WebhookMetrics,
}

impl DynamicMetrics {
    fn new() -> Result<DynamicMetrics, prometheus::Error> {
        let conditions = ConditionMetrics::new()?;
        Ok(DynamicMetrics {
            mutations: MutationMetrics::new()?,
            validations: PolicyMetrics::new()?,
            webhooks: WebhookMetrics::new(conditions.clone())?,
            conditions,
        })
    }

    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.conditions.clone()),
            Box::new(self.mutations.clone()),
            Box::new(self.validations.clone()),
            Box::new(self.webhooks.clone()),
        ]
    }
}

impl Admission {
    /// Loads the configuration that the options name, and creates the plugins.
    pub(crate) fn load(
        options: &Options,
        authorization: &Authorization,
        outbound: &Outbound,
    ) -> Result<Admission, RunError> {
        let has_mutating_policies = options.features.is_open(Gate::MutatingAdmissionPolicy);
        let manifests = ManifestLoader::new(default_and_validate, &options.identity());
        let options = &options.admission;
        let configuration = match &options.config_file {
            Some(path) => AdmissionConfiguration::read(path)?,
            None => AdmissionConfiguration::default(),
        };
        let dynamic_metrics = DynamicMetrics::new()?;
        let rest_mapper = Arc::new(ChainRestMapper::default());
        let mut factories = PluginFactories::default();
        factories.add("ImagePolicyWebhook", |settings| Ok(Arc::new(ImagePolicyWebhook::new(settings)?)));
        add_webhooks(&mut factories, outbound, authorization, &dynamic_metrics.webhooks, &manifests);
        add_policies(&mut factories, has_mutating_policies, authorization, &dynamic_metrics, &manifests);
        let mapper = rest_mapper.clone();
        factories.add("OwnerReferencesPermissionEnforcement", move |_| {
            Ok(Arc::new(OwnerReferencesPermissionEnforcement::new(mapper.clone())))
        });
        // The node authorizer decides by the paths of requests; without the plugin, a node could create any pod.
        let further_defaults = if authorization.has_nodes() { vec!["NodeRestriction"] } else { Vec::new() };
        let config = ChainConfig { further_defaults, configuration, factories, ..options.chain_config() };
        let metrics = AdmissionMetrics::new()?;
        let chain = config.chain()?.measured(&metrics);
        Ok(Admission { chain, rest_mapper, metrics, dynamic_metrics, manifests })
    }

    /// The metrics of the chain and of its plugins, for registration.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors = self.metrics.collectors();
        collectors.extend(self.dynamic_metrics.collectors());
        collectors.extend(self.chain.collectors());
        collectors.extend(self.manifests.directories().iter().flat_map(|directory| directory.collectors()));
        collectors
    }

    /// The directories of static manifests, for reloading.
    pub(crate) fn manifest_files(&self) -> impl Iterator<Item = ManifestFiles> {
        self.manifests.directories().into_iter().map(ManifestFiles::new)
    }
}

/// Adds the plugins that call webhooks.
fn add_webhooks(
    factories: &mut PluginFactories,
    outbound: &Outbound,
    authorization: &Authorization,
    metrics: &WebhookMetrics,
    manifests: &ManifestLoader,
) {
    let clients = {
        let outbound = outbound.clone();
        move |users: ConfiguredUsers| Arc::new(WebhookClients::new(outbound.clone(), users))
    };
    let (of_mutating, authorizer) = (clients.clone(), authorization.authorizer());
    let (counted, loader) = (metrics.clone(), manifests.clone());
    factories.add("MutatingAdmissionWebhook", move |settings| {
        let config = WebhookPluginConfig::read(settings.configuration)?;
        let clients = of_mutating(config.users);
        let plugin = MutatingAdmissionWebhook::new(clients, authorizer.clone(), counted.clone());
        Ok(Arc::new(plugin.with_manifests(config.manifests.as_deref(), &loader)?))
    });
    let (authorizer, counted, loader) = (authorization.authorizer(), metrics.clone(), manifests.clone());
    factories.add("ValidatingAdmissionWebhook", move |settings| {
        let config = WebhookPluginConfig::read(settings.configuration)?;
        let clients = clients(config.users);
        let plugin = ValidatingAdmissionWebhook::new(clients, authorizer.clone(), counted.clone());
        Ok(Arc::new(plugin.with_manifests(config.manifests.as_deref(), &loader)?))
    });
}

/// Adds the plugins that evaluate policies.
fn add_policies(
    factories: &mut PluginFactories,
    has_mutating_policies: bool,
    authorization: &Authorization,
    metrics: &DynamicMetrics,
    manifests: &ManifestLoader,
) {
    let (authorizer, counted, loader) = (authorization.authorizer(), metrics.clone(), manifests.clone());
    factories.add("MutatingAdmissionPolicy", move |settings| {
        let directory = plugin_config::mutating_manifests(settings.configuration)?;
        let DynamicMetrics { mutations, conditions, .. } = counted.clone();
        let plugin = MutatingPolicies::new(has_mutating_policies, authorizer.clone(), mutations, conditions);
        Ok(Arc::new(plugin.with_manifests(directory.as_deref(), &loader)?))
    });
    let (authorizer, counted, loader) = (authorization.authorizer(), metrics.clone(), manifests.clone());
    factories.add("ValidatingAdmissionPolicy", move |settings| {
        let directory = plugin_config::validating_manifests(settings.configuration)?;
        let DynamicMetrics { validations, conditions, .. } = counted.clone();
        let plugin = ValidatingPolicies::new(authorizer.clone(), validations, conditions);
        Ok(Arc::new(plugin.with_manifests(directory.as_deref(), &loader)?))
    });
}
