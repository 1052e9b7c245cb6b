//! `Priority`: sets a pod's priority from its class, and allows at most one default class
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#priority>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;
use std::sync::Arc;

/// The plugin.
#[derive(Debug)]
pub struct Priority {
    classes: GroupResource,
}

impl Default for Priority {
    fn default() -> Priority {
        Priority { classes: GroupResource::new("scheduling.k8s.io", "priorityclasses") }
    }
}

/// The values that a pod gets from its priority class.
struct Established {
    class_name: String,
    priority: i64,
    preemption_policy: Option<String>,
}

impl AdmissionPlugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        let is_class = request.is_for("scheduling.k8s.io", "priorityclasses");
        match request.operation {
            Operation::Create if is_for_group(request) => true,
            Operation::Create | Operation::Update => is_class || request.is_for("", "pods"),
            Operation::Delete | Operation::Connect => false,
        }
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if is_for_group(request) {
                return self.establish_group(request).await;
            }
            if !request.is_for("", "pods") {
                return Ok(());
            }
            match request.old_object {
                Some(old) => {
                    keep_established(request.object.to_mut(), old);
                    Ok(())
                }
                None => self.establish(request).await,
            }
        })
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !request.is_for("scheduling.k8s.io", "priorityclasses")
                || !request.object.bool_at("globalDefault")
            {
                return Ok(());
            }
            let other = self.default_class(request).await?;
            match other.as_deref().map(ObjectMeta::name) {
                Some(other) if request.old_object.is_none() || other != request.object.name() => Err(request
                    .forbidden(format!(
                        "PriorityClass {other} is already marked as default. Only one default can exist"
                    ))),
                _ => Ok(()),
            }
        })
    }
}

impl Priority {
    async fn establish(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        let established = self.established(request).await?;
        let pod = &request.object;
        let priority = established.priority;
        if let Some(own) = pod.i64_at("spec.priority").filter(|own| *own != priority) {
            return Err(request.forbidden(format!(
                "the integer value of priority ({own}) must not be provided in pod spec; priority admission controller \
                 computed {priority} from the given PriorityClass name"
            )));
        }
        if let Some(policy) = &established.preemption_policy {
            let own = pod.at("spec.preemptionPolicy").and_then(Value::as_str);
            if let Some(own) = own.filter(|own| own != policy) {
                return Err(request.forbidden(format!(
                    "the string value of PreemptionPolicy ({own}) must not be provided in pod spec; priority admission \
                     controller computed {policy} from the given PriorityClass name"
                )));
            }
        }
        let pod = request.object.to_mut();
        if !established.class_name.is_empty() {
            pod.set("spec.priorityClassName", established.class_name);
        }
        pod.set("spec.priority", priority);
        if let Some(policy) = established.preemption_policy {
            pod.set("spec.preemptionPolicy", policy);
        }
        Ok(())
    }

    /// Sets the priority of a pod group from its class.
    async fn establish_group(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        let established = self.established(request).await?;
        let priority = established.priority;
        if let Some(own) = request.object.i64_at("spec.priority").filter(|own| *own != priority) {
            return Err(request.forbidden(format!(
                "priority set in the pod group ({own}) must match the priority computed ({priority}) based on the priority \
                 class set in the spec"
            )));
        }
        let group = request.object.to_mut();
        group.set("spec.priority", priority);
        if !established.class_name.is_empty() {
            group.set("spec.priorityClassName", established.class_name);
        }
        Ok(())
    }

    async fn established(&self, request: &AdmissionRequest<'_>) -> Result<Established, Status> {
        let class = match request.object.str_at("spec.priorityClassName") {
            "" => self.default_class(request).await?,
            name => match request.find(&self.classes, "", name).await? {
                Some(class) => Some(class),
                None => {
                    return Err(request.forbidden(format!("no PriorityClass with name {name} was found")));
                }
            },
        };
        Ok(match class {
            Some(class) => Established {
                class_name: class.name().to_owned(),
                priority: class.i64_at("value").unwrap_or_default(),
                preemption_policy: class.at("preemptionPolicy").and_then(Value::as_str).map(str::to_owned),
            },
            None => Established {
                class_name: String::new(),
                priority: 0,
                preemption_policy: Some("PreemptLowerPriority".to_owned()),
            },
        })
    }

    /// The default class. Of several, created concurrently, the one with the lowest priority counts.
    async fn default_class(&self, request: &AdmissionRequest<'_>) -> Result<Option<Arc<Value>>, Status> {
        let classes = request.list(&self.classes, "").await?;
        let defaults = classes.into_iter().filter(|class| class.bool_at("globalDefault"));
        Ok(defaults.min_by_key(|class| class.i64_at("value").unwrap_or_default()))
    }
}

/// Whether a request is for a pod group with a priority.
fn is_for_group(request: &AdmissionRequest<'_>) -> bool {
    enabled(Gate::WorkloadAwarePreemption) && request.is_for("scheduling.k8s.io", "podgroups")
}

/// Keeps the fields for clients that do not know them and omit them from updates.
fn keep_established(pod: &mut Value, old: &Value) {
    for path in ["spec.priority", "spec.preemptionPolicy"] {
        if let (None, Some(value)) = (pod.at(path), old.at(path)) {
            pod.set(path, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    fn create(classes: &[Value], spec: Value) -> Result<Value, String> {
        let objects = Objects::new(classes.iter().map(|class| ("priorityclasses", class.clone())));
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec});
        admit(&Priority::default(), &objects, Operation::Create, "pods", "", pod, None)
            .map(|pod| pod["spec"].clone())
    }

    #[test]
    fn pods_get_the_priority_of_their_class() {
        let high = json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"});
        let default = json!({"metadata": {"name": "usual"}, "value": 42, "globalDefault": true});
        assert_eq!(
            create(std::slice::from_ref(&high), json!({})).unwrap(),
            json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"})
        );
        assert_eq!(
            create(&[high.clone(), default], json!({})).unwrap(),
            json!({"priority": 42, "priorityClassName": "usual"})
        );
        assert_eq!(
            create(std::slice::from_ref(&high), json!({"priorityClassName": "high", "priority": 1000}))
                .unwrap(),
            json!({"priority": 1000, "priorityClassName": "high", "preemptionPolicy": "Never"})
        );
        assert_eq!(
            create(std::slice::from_ref(&high), json!({"priorityClassName": "none"})).unwrap_err(),
            "pods \"p\" is forbidden: no PriorityClass with name none was found"
        );
        assert_eq!(
            create(std::slice::from_ref(&high), json!({"preemptionPolicy": ""})).unwrap_err(),
            "pods \"p\" is forbidden: the string value of PreemptionPolicy () must not be provided in pod spec; priority \
             admission controller computed PreemptLowerPriority from the given PriorityClass name"
        );
        assert_eq!(
            create(&[high], json!({"priorityClassName": "high", "priority": 7})).unwrap_err(),
            "pods \"p\" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority \
             admission controller computed 1000 from the given PriorityClass name"
        );
    }

    #[test]
    fn there_is_one_default_class() {
        let usual = json!({"metadata": {"name": "usual"}, "value": 42, "globalDefault": true});
        let objects = Objects::new([("priorityclasses", usual.clone())]);
        let check = |class: Value, old: Option<&Value>, message: &str| {
            let operation = if old.is_some() { Operation::Update } else { Operation::Create };
            let refused = admit(&Priority::default(), &objects, operation, "priorityclasses", "", class, old);
            assert_eq!(refused.err().unwrap_or_default(), message);
        };
        check(usual.clone(), Some(&usual), "");
        check(json!({"metadata": {"name": "b"}, "value": 1}), None, "");
        check(
            json!({"metadata": {"name": "b"}, "value": 1, "globalDefault": true}),
            None,
            "priorityclasses.scheduling.k8s.io \"b\" is forbidden: PriorityClass usual is already marked as default. \
             Only one default can exist",
        );
    }
}
