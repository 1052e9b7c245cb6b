//! The admission chain: calls all plugins in their order.

use crate::{
    AdmissionMetrics, AdmissionPlugin, AdmissionRequest, Step,
    metrics::{Durations, Labels},
};
use pintle_machinery::Status;
use prometheus::core::Collector;
use std::{sync::Arc, time::Instant};

/// The plugins that every write passes. The first refusal ends the request.
#[derive(Clone, Default)]
pub struct AdmissionChain {
    plugins: Vec<Arc<dyn AdmissionPlugin>>,
    durations: Option<Arc<ChainDurations>>,
}

/// The durations of the plugins, in their order, and of all together.
struct ChainDurations {
    plugins: Vec<Durations>,
    steps: Durations,
}

impl AdmissionChain {
    /// A chain of these plugins, called in this order.
    pub fn new(plugins: Vec<Arc<dyn AdmissionPlugin>>) -> AdmissionChain {
        AdmissionChain { plugins, durations: None }
    }

    /// The same chain, whose calls are measured.
    #[must_use]
    pub fn measured(mut self, metrics: &AdmissionMetrics) -> AdmissionChain {
        let plugins = self.plugins.iter().map(|plugin| metrics.of_plugin(plugin.name())).collect();
        self.durations = Some(Arc::new(ChainDurations { plugins, steps: metrics.of_steps() }));
        self
    }

    /// The names of the plugins, in call order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|plugin| plugin.name())
    }

    /// The plugins' own metrics.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        self.plugins.iter().flat_map(|plugin| plugin.collectors()).collect()
    }

    /// Calls [`AdmissionPlugin::admit`] of every plugin that handles the request; plugins may change the object. All are
    /// called once more if one of them asks for it with [`crate::Reinvocation::request`]. Managed fields that they have made
    /// invalid are restored, with a warning.
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn admit(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        let started = Instant::now();
        let mut result = self.call(Step::Admit, started, request).await;
        if result.is_ok() && request.reinvocation.begin_second_round() {
            result = self.call(Step::Admit, Instant::now(), request).await;
        }
        self.observe_step(Step::Admit, started, request, result.is_err());
        result?;
        if request.managed_fields.are_changed() {
            request.warnings.extend(request.managed_fields.restore(request.object.to_mut()));
        }
        Ok(())
    }

    /// Calls [`AdmissionPlugin::validate`] of every plugin that handles the request. Plugins may add warnings but not
    /// change the object.
    ///
    /// # Errors
    /// The `Status` of the first refusal.
    pub async fn validate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        let started = Instant::now();
        let result = self.call(Step::Validate, started, request).await;
        self.observe_step(Step::Validate, started, request, result.is_err());
        result
    }

    async fn call(
        &self,
        step: Step,
        mut started: Instant,
        request: &mut AdmissionRequest<'_>,
    ) -> Result<(), Status> {
        for (place, plugin) in self.plugins.iter().enumerate() {
            if !plugin.steps().contain(step) || !plugin.handles(request) {
                continue;
            }
            let result = match step {
                Step::Admit => plugin.admit(request).await,
                Step::Validate => plugin.validate(request).await,
            };
            let durations = self.durations.as_ref().and_then(|durations| durations.plugins.get(place));
            if let Some(durations) = durations {
                let ended = Instant::now();
                let labels = Labels { step, operation: request.operation, rejected: result.is_err() };
                durations.observe(labels, ended - started);
                started = ended;
            }
            result?;
        }
        Ok(())
    }

    fn observe_step(&self, step: Step, started: Instant, request: &AdmissionRequest<'_>, rejected: bool) {
        if let Some(durations) = &self.durations {
            durations
                .steps
                .observe(Labels { step, operation: request.operation, rejected }, started.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Operation,
        plugins::{AlwaysDeny, DenyServiceExternalIps, TaintNodesByCondition},
        testing::Request,
    };
    use pintle_machinery::json;
    use std::time::Duration;

    #[test]
    fn calls_are_measured_by_plugin_and_step() {
        let metrics = AdmissionMetrics::new().unwrap();
        let chain = AdmissionChain::new(vec![Arc::new(AlwaysDeny)]).measured(&metrics);
        let durations = chain.durations.as_ref().unwrap();
        let duration = Duration::from_millis(1);
        let labels = Labels { step: Step::Validate, operation: Operation::Create, rejected: true };
        durations.plugins[0].observe(labels, duration);
        let labels = Labels { step: Step::Admit, operation: Operation::Connect, rejected: false };
        durations.steps.observe(labels, duration);
        let families: Vec<_> =
            metrics.collectors().iter().flat_map(|collector| collector.collect()).collect();
        let labels = |place: usize| -> Vec<String> {
            let metrics = families[place].get_metric();
            metrics[0].get_label().iter().map(|label| label.value().to_owned()).collect()
        };
        assert_eq!(labels(0), ["AlwaysDeny", "CREATE", "true", "validate"]);
        assert_eq!(labels(1), ["CONNECT", "false", "admit"]);
        assert_eq!(labels(2), ["CONNECT", "false", "admit"]);
    }

    #[test]
    fn plugins_are_measured_in_their_steps_alone() {
        let metrics = AdmissionMetrics::new().unwrap();
        let plugins: Vec<Arc<dyn AdmissionPlugin>> =
            vec![Arc::new(TaintNodesByCondition), Arc::new(DenyServiceExternalIps)];
        let chain = AdmissionChain::new(plugins).measured(&metrics);
        for resource in ["nodes", "services"] {
            let mut request = Request::new(Operation::Create, "", "v1", resource, "");
            request.object = json!({"metadata": {"name": "a"}});
            let result = request.with(async |request| {
                chain.admit(request).await?;
                chain.validate(request).await
            });
            result.unwrap();
        }
        let families = metrics.collectors()[0].collect();
        let labels = |metric: &prometheus::proto::Metric| -> Vec<String> {
            metric.get_label().iter().map(|label| label.value().to_owned()).collect()
        };
        let mut measured: Vec<_> = families[0].get_metric().iter().map(labels).collect();
        measured.sort();
        assert_eq!(
            measured,
            [
                ["DenyServiceExternalIPs", "CREATE", "false", "validate"],
                ["TaintNodesByCondition", "CREATE", "false", "admit"],
            ]
        );
    }
}
