//! `ResourceQuota`: refuses requests that would exceed a quota of their namespace
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/>).
//!
//! Admission adds the usage of new and changed objects to the status of the quotas. It never subtracts: the quota
//! controller recalculates the usage when objects are deleted, or were not stored after all.
//!
//! First the request is checked against the cached state of each quota, so that a refused request changes none. Then
//! the usage is added to each stored quota, with a second check, because other requests may have come first.

mod claim;
mod device_claim;
mod evaluator;
mod extended_resources;
mod limited_resources;
mod pod;
mod scopes;
mod service;

use super::{
    own_writes::write_options,
    quantities::{Quantities, add, quantities},
};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, PluginError, PluginSettings, Steps};
use evaluator::Evaluator;
use limited_resources::LimitedResources;
use pintle_machinery::{GroupResource, Map, Status, StatusReason, Text, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{BoxFuture, WriteOptions};

/// The plugin.
#[derive(Debug)]
pub struct ResourceQuota {
    quotas: GroupResource,
    limited: LimitedResources,
}

impl Default for ResourceQuota {
    fn default() -> ResourceQuota {
        ResourceQuota {
            quotas: GroupResource::new("", "resourcequotas"),
            limited: LimitedResources::default(),
        }
    }
}

impl ResourceQuota {
    /// Creates the plugin.
    ///
    /// # Errors
    /// When the configuration is malformed, or limits no resource.
    pub fn new(settings: &PluginSettings<'_>) -> Result<ResourceQuota, PluginError> {
        let limited = LimitedResources::read(settings.configuration)?;
        Ok(ResourceQuota { limited, ..ResourceQuota::default() })
    }
}

/// Resources that no quota counts: those that are not stored, and events.
const IGNORED: [(&str, &str); 9] = [
    ("", "bindings"),
    ("", "events"),
    ("", "namespaces"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("events.k8s.io", "events"),
];

impl AdmissionPlugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        !request.namespace.is_empty()
            && !IGNORED.iter().any(|(group, resource)| request.is_of(group, resource))
            && Evaluator::of(request.resource).handles(request.operation, request.subresource)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let mut evaluator = Evaluator::of(request.resource);
            if !evaluator.may_change_usage(request) {
                return Ok(());
            }
            // Few namespaces have quotas; those quotas are read from the store.
            let has_quotas = !request.list(&self.quotas, request.namespace).await?.is_empty();
            if !has_quotas && self.limited.is_empty() {
                return Ok(());
            }
            evaluator.read_dependencies(request).await?;
            let quotas = request.context.registry.list(&self.quotas, request.namespace).await?;
            let charges = self.charges(&evaluator, request, &quotas)?;
            if request.context.dry_run {
                return Ok(());
            }
            for charge in &charges {
                self.store(charge, request).await?;
            }
            Ok(())
        })
    }
}

/// The amounts that a request adds to the usage of one quota.
struct Charge<'a> {
    quota: &'a Value,
    requested: Quantities,
}

impl ResourceQuota {
    /// The amounts that the request adds to each quota that counts it. All these quotas allow the request.
    fn charges<'a>(
        &self,
        evaluator: &Evaluator,
        request: &AdmissionRequest<'_>,
        quotas: &'a [Value],
    ) -> Result<Vec<Charge<'a>>, Status> {
        let object = &request.object;
        let usage = evaluator.usage(object, request.context.now);
        let mut limits = self.limited.of(request, evaluator, &usage);
        for quota in quotas {
            limits.cover_scopes(quota, evaluator, object);
        }
        let counting: Vec<&Value> = quotas.iter().filter(|quota| evaluator.matches(quota, object)).collect();
        for quota in &counting {
            check_is_ready(evaluator, request, quota)?;
            limits.cover_names(quota.map_at("status.hard").keys().filter(|name| evaluator.counts(name)));
        }
        let negative =
            names(usage.iter().filter(|(_, quantity)| quantity.sign() < 0).map(|(name, _)| name.as_str()));
        if !negative.is_empty() {
            return Err(request.forbidden(format!("quota usage is negative for resource(s): {negative}")));
        }
        let old = request.old_object.filter(|_| request.operation == Operation::Update);
        let increase_of_usage = || match old {
            Some(old) => increase(&usage, &evaluator.usage(old, request.context.now)),
            None => usage.clone(),
        };
        let uses_more = |requested: &Quantities| requested.values().any(|quantity| !quantity.is_zero());
        let mut requests = Vec::new();
        for quota in counting {
            let requested = match old.is_some_and(|old| evaluator.matches(quota, old)) {
                true => increase_of_usage(),
                false => usage.clone(),
            };
            requests.push((quota, requested));
        }
        let is_charged = match requests.as_slice() {
            [] => !self.limited.is_empty() && uses_more(&increase_of_usage()),
            requests => requests.iter().any(|(_, requested)| uses_more(requested)),
        };
        if is_charged {
            limits.check(request)?;
        }
        let mut charges = Vec::new();
        for (quota, mut requested) in requests {
            let hard = quota.map_at("status.hard");
            requested.retain(|name, quantity| !quantity.is_zero() && hard.contains_key(name));
            if !requested.is_empty() {
                charge(quota, &requested, request)?;
                charges.push(Charge { quota, requested });
            }
        }
        Ok(charges)
    }

    async fn store(&self, charged: &Charge<'_>, request: &AdmissionRequest<'_>) -> Result<(), Status> {
        let change = |mut quota: Value| {
            let used = charge(&quota, &charged.requested, request)?;
            quota.set("status.used", used);
            Ok(quota)
        };
        let options = WriteOptions { subresource: "status", ..write_options() };
        let registry = request.context.registry;
        let written =
            registry.update(&self.quotas, request.namespace, charged.quota.name(), Box::new(change), options);
        match written.await {
            // A quota that was deleted in the meantime limits nothing.
            Err(status) if status.reason == StatusReason::NotFound => Ok(()),
            written => written.map(drop),
        }
    }
}

/// Refuses an object that a quota cannot count, because requests are missing or the quota's usage is not calculated
/// yet.
fn check_is_ready(
    evaluator: &Evaluator,
    request: &AdmissionRequest<'_>,
    quota: &Value,
) -> Result<(), Status> {
    let hard = quota.map_at("status.hard");
    let restricted: Vec<&str> = hard.keys().map(Text::as_str).filter(|name| evaluator.counts(name)).collect();
    let quota_name = quota.name();
    if let Some(why) = evaluator.missing(&restricted, &request.object) {
        return Err(request.forbidden(format!("failed quota: {quota_name}: {why}")));
    }
    let used = quota.map_at("status.used");
    if restricted.iter().any(|name| !used.contains_key(name)) {
        let restricted = names(restricted.into_iter());
        return Err(
            request.forbidden(format!("status unknown for quota: {quota_name}, resources: {restricted}"))
        );
    }
    Ok(())
}

/// Returns the usage with the requested amounts added, or a refusal when that exceeds the quota. A write to `status`
/// only adds usage and is never refused.
fn charge(quota: &Value, requested: &Quantities, request: &AdmissionRequest<'_>) -> Result<Map, Status> {
    let (old, hard) = (quantities(quota.map_at("status.used")), quantities(quota.map_at("status.hard")));
    let mut used = old.clone();
    add(&mut used, requested);
    let is_exceeded = |name: &String| {
        requested.contains_key(name)
            && matches!((used.get(name), hard.get(name)), (Some(used), Some(hard)) if used > hard)
    };
    let exceeded: Vec<&String> = hard.keys().filter(|name| is_exceeded(name)).collect();
    if exceeded.is_empty() || request.subresource == "status" {
        return Ok(used.iter().map(|(name, quantity)| (name.clone(), Value::from(quantity))).collect());
    }
    let shown = |list: &Quantities| {
        let amounts = exceeded.iter().filter_map(|name| Some(format!("{name}={}", list.get(*name)?)));
        amounts.collect::<Vec<_>>().join(",")
    };
    Err(request.forbidden(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name(),
        shown(requested),
        shown(&old),
        shown(&hard)
    )))
}

/// The increase of the usage. A decrease counts as zero.
fn increase(usage: &Quantities, old: &Quantities) -> Quantities {
    let mut increase = usage.clone();
    for (name, quantity) in &mut increase {
        if let Some(old) = old.get(name) {
            quantity.sub(old);
        }
    }
    increase.retain(|_, quantity| quantity.sign() > 0);
    increase
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
