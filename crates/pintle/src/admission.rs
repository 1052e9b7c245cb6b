//! Assembles the admission chain: the plugins of the admission crate, and those of other crates.

use crate::{Options, authorization::Authorization, rest_mapper::ChainRestMapper, run_error::RunError};
use pintle_admission::{
    AdmissionChain, AdmissionConfiguration, AdmissionMetrics, ChainConfig, PluginFactories,
    plugins::OwnerReferencesPermissionEnforcement,
};
use pintle_dialer::Outbound;
use pintle_dynamic_admission::{
    ConditionMetrics, ImagePolicyWebhook,
    policies::{
        mutating::{MutatingPolicies, MutationMetrics},
        plugin_config,
        validating::{PolicyMetrics, ValidatingPolicies},
    },
    webhooks::{
        ConfiguredUsers, MutatingAdmissionWebhook, ValidatingAdmissionWebhook, WebhookClients, WebhookMetrics,
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
        let options = &options.admission;
        let configuration = match &options.config_file {
            Some(path) => AdmissionConfiguration::read(path)?,
            None => AdmissionConfiguration::default(),
        };
        let assemble = |error: prometheus::Error| RunError::Assemble(error.to_string());
        let dynamic_metrics = DynamicMetrics::new().map_err(assemble)?;
        let rest_mapper = Arc::new(ChainRestMapper::default());
        let mut factories = PluginFactories::default();
        factories.add("ImagePolicyWebhook", |settings| Ok(Arc::new(ImagePolicyWebhook::new(settings)?)));
        add_webhooks(&mut factories, outbound, authorization, &dynamic_metrics.webhooks);
        add_policies(&mut factories, has_mutating_policies, authorization, &dynamic_metrics);
        let mapper = rest_mapper.clone();
        factories.add("OwnerReferencesPermissionEnforcement", move |_| {
            Ok(Arc::new(OwnerReferencesPermissionEnforcement::new(mapper.clone())))
        });
        // The node authorizer decides by the paths of requests; without the plugin, a node could create any pod.
        let further_defaults = if authorization.has_nodes() { vec!["NodeRestriction"] } else { Vec::new() };
        let config = ChainConfig { further_defaults, configuration, factories, ..options.chain_config() };
        let metrics = AdmissionMetrics::new().map_err(assemble)?;
        let chain = config.chain()?.measured(&metrics);
        Ok(Admission { chain, rest_mapper, metrics, dynamic_metrics })
    }

    /// The metrics of the chain and of its plugins, for registration.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let mut collectors = self.metrics.collectors();
        collectors.extend(self.dynamic_metrics.collectors());
        collectors.extend(self.chain.collectors());
        collectors
    }
}

/// Adds the plugins that call webhooks.
fn add_webhooks(
    factories: &mut PluginFactories,
    outbound: &Outbound,
    authorization: &Authorization,
    metrics: &WebhookMetrics,
) {
    let clients = {
        let outbound = outbound.clone();
        move |configuration: Option<&[u8]>| {
            let users = ConfiguredUsers::of_configuration(configuration)?;
            Ok(Arc::new(WebhookClients::new(outbound.clone(), users)))
        }
    };
    let (of_mutating, authorizer, counted) = (clients.clone(), authorization.authorizer(), metrics.clone());
    factories.add("MutatingAdmissionWebhook", move |settings| {
        let clients = of_mutating(settings.configuration)?;
        Ok(Arc::new(MutatingAdmissionWebhook::new(clients, authorizer.clone(), counted.clone())))
    });
    let (authorizer, counted) = (authorization.authorizer(), metrics.clone());
    factories.add("ValidatingAdmissionWebhook", move |settings| {
        let clients = clients(settings.configuration)?;
        Ok(Arc::new(ValidatingAdmissionWebhook::new(clients, authorizer.clone(), counted.clone())))
    });
}

/// Adds the plugins that evaluate policies.
fn add_policies(
    factories: &mut PluginFactories,
    has_mutating_policies: bool,
    authorization: &Authorization,
    metrics: &DynamicMetrics,
) {
    let (authorizer, counted) = (authorization.authorizer(), metrics.clone());
    factories.add("MutatingAdmissionPolicy", move |settings| {
        plugin_config::check_mutating(settings.configuration)?;
        let DynamicMetrics { mutations, conditions, .. } = counted.clone();
        Ok(Arc::new(MutatingPolicies::new(has_mutating_policies, authorizer.clone(), mutations, conditions)))
    });
    let (authorizer, counted) = (authorization.authorizer(), metrics.clone());
    factories.add("ValidatingAdmissionPolicy", move |settings| {
        plugin_config::check_validating(settings.configuration)?;
        let DynamicMetrics { validations, conditions, .. } = counted.clone();
        Ok(Arc::new(ValidatingPolicies::new(authorizer.clone(), validations, conditions)))
    });
}
