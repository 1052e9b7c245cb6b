//! `ResourceQuota`: a namespace does not use more than its quotas allow, and every use is counted
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/>).
//!
//! Use is counted in the status of the quota when an object comes; a controller counts again what is left when one
//! goes. A request is first checked against all quotas of the namespace, then charged to one after the other; each
//! charge checks again, against the state it changes, so no two requests can use the same rest.

mod evaluator;
mod pods;
mod scopes;

use crate::plugins::quantities::{Quantities, add, quantities};
use crate::{AdmissionPlugin, AdmissionRequest, Operation};
use evaluator::Evaluator;
use pintle_machinery::{
    GroupResource, Map, Quantity, Status, StatusReason, Value, ValueExt, meta::ObjectMeta,
};
use pintle_registry::{BoxFuture, WriteOptions};

/// The plugin.
#[derive(Debug)]
pub struct ResourceQuota {
    quotas: GroupResource,
}

impl Default for ResourceQuota {
    fn default() -> ResourceQuota {
        ResourceQuota { quotas: GroupResource::new("", "resourcequotas") }
    }
}

impl AdmissionPlugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update)
            && !request.namespace.is_empty()
            && !request.is_of("", "namespaces")
            && !is_ignored(request)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let evaluator = Evaluator::of(request);
            if !evaluator.handles(request) {
                return Ok(());
            }
            let known = request.list(&self.quotas, request.namespace).await?;
            let mut charges = Vec::new();
            for quota in &known {
                // What is known may be older than the last charge.
                let quota = request.context.registry.get(&self.quotas, request.namespace, quota.name()).await;
                let Ok(quota) = quota else { continue };
                if let Some(charge) = Charge::to(&quota, &evaluator, request)? {
                    charge.apply(&quota).map_err(|why| request.forbidden(why))?;
                    charges.push((quota.name().to_owned(), charge));
                }
            }
            if !request.context.dry_run {
                for (name, charge) in charges {
                    self.charge(request, &name, &charge).await?;
                }
            }
            Ok(())
        })
    }
}

impl ResourceQuota {
    async fn charge(
        &self,
        request: &AdmissionRequest<'_>,
        name: &str,
        charge: &Charge,
    ) -> Result<(), Status> {
        let refuse = |why: String| request.forbidden(why);
        let change = |mut quota: Value| {
            let used = charge.apply(&quota).map_err(refuse)?;
            quota.set("status.used", used);
            Ok(quota)
        };
        let options = WriteOptions {
            field_manager: "kube-apiserver".to_owned(),
            subresource: "status",
            ..WriteOptions::default()
        };
        let registry = request.context.registry;
        match registry.update(&self.quotas, request.namespace, name, Box::new(change), options).await {
            Err(status) if status.reason != StatusReason::NotFound => Err(status),
            _ => Ok(()),
        }
    }
}

/// What is never counted: what is not stored, and events.
fn is_ignored(request: &AdmissionRequest<'_>) -> bool {
    matches!(
        (request.resource.group.as_str(), request.resource.resource.as_str()),
        ("" | "events.k8s.io", "events")
            | ("", "bindings")
            | ("authorization.k8s.io", "localsubjectaccessreviews")
    )
}

/// What a request adds to what a quota counts.
struct Charge {
    requested: Quantities,
    /// Status is counted, but not refused.
    is_enforced: bool,
}

impl Charge {
    /// The charge to a quota; `None` when the quota is about something else, or nothing is added.
    fn to(
        quota: &Value,
        evaluator: &Evaluator,
        request: &AdmissionRequest<'_>,
    ) -> Result<Option<Charge>, Status> {
        let (object, now) = (&request.object, request.context.now);
        let hard = quota.map_at("status.hard");
        let counted: Vec<&str> =
            hard.keys().map(String::as_str).filter(|name| evaluator.counts(name)).collect();
        let is_about = |object: &Value| {
            !counted.is_empty() && scopes::of(quota).all(|scope| evaluator.is_in_scope(&scope, object))
        };
        if !is_about(object) {
            return Ok(None);
        }
        let name = quota.name();
        evaluator
            .check_constraints(&counted, object)
            .map_err(|why| request.forbidden(format!("failed quota: {name}: {why}")))?;
        let used = quota.map_at("status.used");
        if counted.iter().any(|name| !used.contains_key(*name)) {
            let resources = counted.join(",");
            return Err(
                request.forbidden(format!("status unknown for quota: {name}, resources: {resources}"))
            );
        }
        let mut usage = evaluator.usage(object, now);
        let negative: Vec<&str> =
            usage.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            let resources = negative.join(",");
            return Err(request.forbidden(format!("quota usage is negative for resource(s): {resources}")));
        }
        if let Some(old) = request.old_object
            && request.operation == Operation::Update
            && is_about(old)
        {
            subtract(&mut usage, &evaluator.usage(old, now));
        }
        usage.retain(|name, amount| !amount.is_zero() && hard.contains_key(name));
        if usage.is_empty() {
            return Ok(None);
        }
        Ok(Some(Charge { requested: usage, is_enforced: request.subresource != "status" }))
    }

    /// What the quota has counted with the charge, or why that is too much.
    fn apply(&self, quota: &Value) -> Result<Map, String> {
        let (hard, used) = (quantities(quota.map_at("status.hard")), quantities(quota.map_at("status.used")));
        let mut sum = used.clone();
        add(&mut sum, &self.requested);
        let is_exceeded = |name: &String| match (sum.get(name), hard.get(name)) {
            (Some(sum), Some(hard)) => sum > hard,
            _ => false,
        };
        let exceeded: Vec<&String> = self.requested.keys().filter(|name| is_exceeded(name)).collect();
        if self.is_enforced && !exceeded.is_empty() {
            return Err(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name(),
                shown(&self.requested, &exceeded),
                shown(&used, &exceeded),
                shown(&hard, &exceeded)
            ));
        }
        Ok(sum.iter().map(|(name, amount)| (name.clone(), Value::from(amount))).collect())
    }
}

/// Takes away what was counted before; what becomes less is not given back.
fn subtract(usage: &mut Quantities, before: &Quantities) {
    for (name, amount) in usage.iter_mut() {
        if let Some(before) = before.get(name) {
            amount.sub(before);
        }
        if amount.sign() <= 0 {
            *amount = Quantity::default();
        }
    }
}

fn shown(list: &Quantities, names: &[&String]) -> String {
    let parts: Vec<String> =
        names.iter().filter_map(|name| Some(format!("{name}={}", list.get(*name)?))).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use serde_json::json;

    fn quota(name: &str, hard: Value, used: Value, spec: Value) -> (&'static str, Value) {
        let status = json!({"hard": hard, "used": used});
        (
            "resourcequotas",
            json!({"metadata": {"name": name, "namespace": "n"}, "spec": spec, "status": status}),
        )
    }

    fn write(
        quota: (&'static str, Value),
        resource: &str,
        object: Value,
        old: Option<&Value>,
    ) -> (String, Value) {
        let objects = Objects::new([quota]);
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let refused = admit(&ResourceQuota::default(), &objects, operation, resource, "", object, old).err();
        let used = objects.first("resourcequotas").map_at("status.used").clone();
        let refused = refused.unwrap_or_default();
        (refused.split_once("is forbidden: ").map_or(refused.clone(), |(_, why)| why.to_owned()), used.into())
    }

    fn object(spec: Value) -> Value {
        json!({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "1"}, "spec": spec})
    }

    #[test]
    fn objects_are_counted_and_refused() {
        let check = |resource: &str, spec: Value, hard: Value, used: Value, why: &str, after: Value| {
            let (refused, counted) = write(quota("q", hard, used, json!({})), resource, object(spec), None);
            assert_eq!((refused.as_str(), counted), (why, after));
        };
        let one = json!({"count/configmaps": "1"});
        check("configmaps", json!({}), one.clone(), json!({"count/configmaps": "0"}), "", one.clone());
        check(
            "configmaps",
            json!({}),
            one.clone(),
            one.clone(),
            "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1",
            one.clone(),
        );
        check(
            "secrets",
            json!({}),
            json!({"secrets": "1"}),
            json!({"secrets": "0"}),
            "",
            json!({"secrets": "1"}),
        );
        check("secrets", json!({}), one.clone(), one.clone(), "", one.clone());
        check(
            "secrets",
            json!({}),
            json!({"secrets": "1"}),
            json!({}),
            "status unknown for quota: q, resources: secrets",
            json!({}),
        );
        check(
            "services",
            json!({"type": "LoadBalancer", "ports": [{}, {}]}),
            json!({"services.nodeports": "2", "services.loadbalancers": "1"}),
            json!({"services.nodeports": "0", "services.loadbalancers": "0"}),
            "",
            json!({"services.nodeports": "2", "services.loadbalancers": "1"}),
        );
        check(
            "persistentvolumeclaims",
            json!({"storageClassName": "gold", "resources": {"requests": {"storage": "2Gi"}}}),
            json!({"requests.storage": "3Gi", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}),
            json!({"requests.storage": "0", "gold.storageclass.storage.k8s.io/requests.storage": "0"}),
            "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi, used: \
             gold.storageclass.storage.k8s.io/requests.storage=0, limited: \
             gold.storageclass.storage.k8s.io/requests.storage=1Gi",
            json!({"requests.storage": "0", "gold.storageclass.storage.k8s.io/requests.storage": "0"}),
        );
    }

    #[test]
    fn updates_pay_the_difference() {
        let claim = |size: &str| object(json!({"resources": {"requests": {"storage": size}}}));
        let check = |size: &str, after: &str, is_allowed: bool| {
            let hard = json!({"requests.storage": "3Gi"});
            let quota = quota("q", hard, json!({"requests.storage": "2Gi"}), json!({}));
            let (refused, used) = write(quota, "persistentvolumeclaims", claim(size), Some(&claim("1Gi")));
            assert_eq!((refused.is_empty(), used), (is_allowed, json!({"requests.storage": after})));
        };
        check("1Gi", "2Gi", true);
        check("2Gi", "3Gi", true);
        check("3Gi", "2Gi", false);
        check("512Mi", "2Gi", true);
    }

    #[test]
    fn pods_say_what_they_need_and_are_in_scope() {
        let check = |spec: Value, scopes: Value, why: &str, after: Value| {
            let hard = json!({"pods": "2", "requests.cpu": "1"});
            let quota = quota("q", hard, json!({"pods": "0", "requests.cpu": "0"}), scopes);
            assert_eq!(write(quota, "pods", object(spec), None), (why.to_owned(), after));
        };
        let none = json!({"pods": "0", "requests.cpu": "0"});
        let asks =
            |cpu: &str| json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
        check(asks("600m"), json!({}), "", json!({"pods": "1", "requests.cpu": "600m"}));
        check(
            asks("2"),
            json!({}),
            "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1",
            none.clone(),
        );
        let silent = json!({"containers": [{"name": "c"}, {"name": "b"}]});
        check(silent.clone(), json!({}), "failed quota: q: must specify requests.cpu for: b,c", none.clone());
        check(silent, json!({"scopes": ["NotBestEffort"]}), "", none.clone());
        check(asks("2"), json!({"scopes": ["Terminating"]}), "", none.clone());
        let class = |operator: &str, values: Value| {
            let expression = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
            json!({"scopeSelector": {"matchExpressions": [expression]}})
        };
        check(asks("2"), class("In", json!(["high"])), "", none.clone());
        check(
            asks("600m"),
            class("NotIn", json!(["high"])),
            "",
            json!({"pods": "1", "requests.cpu": "600m"}),
        );
        check(asks("2"), class("Exists", json!([])), "", none);
    }
}
