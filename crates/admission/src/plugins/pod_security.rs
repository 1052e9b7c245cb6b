//! `PodSecurity`: holds pods to the Pod Security Standards that the labels of their namespace select
//! (<https://kubernetes.io/docs/concepts/security/pod-security-admission/>).

mod configuration;
mod exemptions;
mod existing_pods;
mod metrics;
mod significant_update;

use crate::{AdmissionPlugin, AdmissionRequest, Operation, PluginError, PluginSettings, Steps};
use exemptions::Exemptions;
use metrics::PodSecurityMetrics;
use pintle_machinery::{
    FieldError, GroupResource, Status, Value, ValueExt, meta::ObjectMeta, status::aggregate,
};
use pintle_pod_security::{Level, LevelVersion, Pod, Policy, Violations, evaluate};
use pintle_registry::BoxFuture;
use prometheus::core::Collector;
use significant_update::is_significant;
use std::{borrow::Cow, time::Duration};

/// The plugin.
#[derive(Debug)]
pub struct PodSecurity {
    /// The policy of namespaces without labels.
    defaults: Policy,
    exemptions: Exemptions,
    /// The time limit for the evaluation of existing pods.
    existing_pods_timeout: Duration,
    namespaces: GroupResource,
    metrics: PodSecurityMetrics,
}

impl Default for PodSecurity {
    fn default() -> PodSecurity {
        PodSecurity {
            defaults: Policy::PRIVILEGED,
            exemptions: Exemptions::default(),
            existing_pods_timeout: Duration::from_secs(1),
            namespaces: GroupResource::new("", "namespaces"),
            metrics: PodSecurityMetrics::default(),
        }
    }
}

impl PodSecurity {
    /// Creates the plugin.
    ///
    /// # Errors
    /// When the configuration is malformed or has invalid values.
    pub fn new(settings: &PluginSettings<'_>) -> Result<PodSecurity, PluginError> {
        let (defaults, exemptions) = configuration::read(settings.configuration)?;
        Ok(PodSecurity { defaults, exemptions, ..PodSecurity::default() })
    }
}

/// The subresources of pods that cannot change a pod's privileges.
const IGNORED_SUBRESOURCES: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// The objects that the plugin judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Namespace,
    Pod,
    /// An object that pods are made from, with the path of its pod template.
    Controller(&'static str),
}

impl Judged {
    fn of(resource: &GroupResource, subresource: &str) -> Option<Judged> {
        let judged = match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "namespaces") => Judged::Namespace,
            ("", "pods") => Judged::Pod,
            ("", "podtemplates") => Judged::Controller("template"),
            ("", "replicationcontrollers")
            | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
            | ("batch", "jobs") => Judged::Controller("spec.template"),
            ("batch", "cronjobs") => Judged::Controller("spec.jobTemplate.spec.template"),
            _ => return None,
        };
        let is_ignored = match judged {
            Judged::Pod => IGNORED_SUBRESOURCES.contains(&subresource),
            _ => !subresource.is_empty(),
        };
        (!is_ignored).then_some(judged)
    }
}

impl AdmissionPlugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        self.metrics.collectors()
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && judged(request).is_some()
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match judged(request) {
                Some(Judged::Namespace) => self.validate_namespace(request).await,
                Some(Judged::Pod) => self.validate_pod(request).await,
                Some(Judged::Controller(template)) => self.validate_controller(request, template).await,
                None => Ok(()),
            }
        })
    }
}

fn judged(request: &AdmissionRequest<'_>) -> Option<Judged> {
    Judged::of(&request.resource.group_resource(), request.subresource)
}

impl PodSecurity {
    fn policy_of(&self, namespace: &Value) -> (Policy, Vec<FieldError>) {
        match namespace.at("metadata.labels") {
            Some(labels) => Policy::of_labels(labels, self.defaults),
            None => (self.defaults, Vec::new()),
        }
    }

    /// Refuses invalid labels, and warns of existing pods that violate a stricter level.
    async fn validate_namespace(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        let (policy, errors) = self.policy_of(&request.object);
        let before = request.old_object.map(|old| self.policy_of(old));
        if !errors.is_empty() && before.as_ref().is_none_or(|(_, before)| *before != errors) {
            return Err(Status::invalid(&request.kind.group_kind(), request.name, &errors));
        }
        let is_stricter = match &before {
            None => true,
            Some((before, _)) => is_stricter(policy.enforce, before.enforce),
        };
        if !is_stricter {
            return Ok(());
        }
        if self.exemptions.namespaces.contains(request.namespace) {
            request.warnings.extend(self.exempt_warning(&request.object, policy));
            return Ok(());
        }
        if before.is_some() {
            let warnings = existing_pods::warnings(
                request,
                policy.enforce,
                &self.exemptions,
                self.existing_pods_timeout,
            )
            .await;
            request.warnings.extend(warnings);
        }
        Ok(())
    }

    /// The warning that an exempt namespace has a policy of its own, if it has one.
    fn exempt_warning(&self, namespace: &Value, policy: Policy) -> Option<String> {
        if policy.is_privileged() || policy.is_equivalent(&self.defaults) {
            return None;
        }
        let modes =
            namespace.at("metadata.labels").map(|labels| policy.explicit_modes(labels)).unwrap_or_default();
        let name = namespace.name();
        Some(format!(
            "namespace \"{name}\" is exempt from Pod Security, and the policy ({modes}) will be ignored"
        ))
    }

    /// Refuses pods that violate the enforced level.
    async fn validate_pod(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        if let Some(exempt) = self.exemptions.of_request(request) {
            self.metrics.exempted(request);
            annotate(request, "exempt", exempt);
            return Ok(());
        }
        let namespace = match request.get(&self.namespaces, "", request.namespace).await {
            Ok(namespace) => namespace,
            Err(_) => {
                self.metrics.failed(request, true);
                let why = format!("failed to lookup namespace \"{}\"", request.namespace);
                return Err(Status::internal_error(why));
            }
        };
        let (policy, errors) = self.policy_of(&namespace);
        if errors.is_empty() && policy.is_privileged() {
            self.metrics.evaluated(request, true, LevelVersion::PRIVILEGED, "enforce");
            annotate(request, "enforce-policy", LevelVersion::PRIVILEGED.to_string());
            return Ok(());
        }
        if request.old_object.is_some_and(|old| !is_significant(&request.object, old)) {
            return Ok(());
        }
        let Some(pod) = Pod::new(&request.object) else { return Ok(()) };
        let judgement = self.judge(&pod, policy, &errors, true);
        judgement.conclude(request, &self.metrics)
    }

    /// Warns of objects whose pods would violate a level; the pods themselves are refused.
    async fn validate_controller(
        &self,
        request: &mut AdmissionRequest<'_>,
        template: &str,
    ) -> Result<(), Status> {
        if let Some(exempt) = self.exemptions.of_request(request) {
            self.metrics.exempted(request);
            annotate(request, "exempt", exempt);
            return Ok(());
        }
        let namespace = match request.get(&self.namespaces, "", request.namespace).await {
            Ok(namespace) => namespace,
            Err(status) => {
                self.metrics.failed(request, true);
                let why = format!("failed to lookup namespace \"{}\": {}", request.namespace, status.message);
                annotate(request, "error", why);
                return Ok(());
            }
        };
        let (policy, errors) = self.policy_of(&namespace);
        let is_privileged = |mode: LevelVersion| mode.level == Level::Privileged;
        if errors.is_empty() && is_privileged(policy.warn) && is_privileged(policy.audit) {
            return Ok(());
        }
        let Some(pod) = request.object.at(template).and_then(Pod::new) else { return Ok(()) };
        let judgement = self.judge(&pod, policy, &errors, false);
        judgement.conclude(request, &self.metrics)
    }

    fn judge(&self, pod: &Pod<'_>, policy: Policy, errors: &[FieldError], enforce: bool) -> Judgement {
        let mut judgement = Judgement::default();
        if self.exemptions.runtime_classes.contains(pod.runtime_class()) {
            judgement.annotations.push(("exempt", "runtimeClass".to_owned()));
            judgement.is_exempt = true;
            return judgement;
        }
        if !errors.is_empty() {
            judgement.has_errors = true;
            judgement.annotations.push((
                "error",
                format!("Failed to parse policy: {}", aggregate(errors.iter().map(FieldError::to_string))),
            ));
        }
        // Two modes often have the same level.
        let mut known: Vec<(LevelVersion, Violations)> = Vec::new();
        let mut violations = |mode: LevelVersion| match known.iter().find(|(own, _)| *own == mode) {
            Some((_, violations)) => violations.clone(),
            None => {
                let violations = evaluate(mode, pod);
                known.push((mode, violations.clone()));
                violations
            }
        };
        if enforce {
            judgement.annotations.push(("enforce-policy", policy.enforce.to_string()));
            let found = violations(policy.enforce);
            judgement.evaluations.push((found.is_empty(), policy.enforce, "enforce"));
            if !found.is_empty() {
                judgement.refusal = Some(format!("violates PodSecurity \"{}\": {found}", policy.enforce));
            }
        }
        let would_violate = |mode: LevelVersion, found: Violations| {
            (!found.is_empty()).then(|| format!("would violate PodSecurity \"{mode}\": {found}"))
        };
        if let Some(text) = would_violate(policy.audit, violations(policy.audit)) {
            judgement.annotations.push(("audit-violations", text));
            judgement.evaluations.push((false, policy.audit, "audit"));
        }
        if judgement.refusal.is_none() {
            judgement.warning = would_violate(policy.warn, violations(policy.warn));
            if judgement.warning.is_some() {
                judgement.evaluations.push((false, policy.warn, "warn"));
            }
        }
        judgement
    }
}

/// Whether the new level needs a look at the existing pods.
fn is_stricter(now: LevelVersion, before: LevelVersion) -> bool {
    now != before
        && now.level != Level::Privileged
        && (now.version != before.version || now.level > before.level)
}

/// The consequences of a pod's evaluation.
#[derive(Debug, Default)]
struct Judgement {
    refusal: Option<String>,
    warning: Option<String>,
    annotations: Vec<(&'static str, String)>,
    is_exempt: bool,
    /// Whether the labels of the namespace are invalid.
    has_errors: bool,
    /// Whether the mode allows the pod, its policy and its name: for the metrics.
    evaluations: Vec<(bool, LevelVersion, &'static str)>,
}

impl Judgement {
    fn conclude(
        self,
        request: &mut AdmissionRequest<'_>,
        metrics: &PodSecurityMetrics,
    ) -> Result<(), Status> {
        if self.is_exempt {
            metrics.exempted(request);
        }
        if self.has_errors {
            metrics.failed(request, false);
        }
        for (is_allowed, policy, mode) in self.evaluations {
            metrics.evaluated(request, is_allowed, policy, mode);
        }
        for (key, value) in self.annotations {
            annotate(request, key, value);
        }
        request.warnings.extend(self.warning);
        match self.refusal {
            Some(why) => Err(Status::forbidden(&request.resource.group_resource(), request.name, &why)),
            None => Ok(()),
        }
    }
}

fn annotate(request: &mut AdmissionRequest<'_>, key: &str, value: impl Into<String>) {
    let key = Cow::Owned(format!("pod-security.kubernetes.io/{key}"));
    request.audit_annotations.push((key, value.into()));
}

#[cfg(test)]
mod tests;
