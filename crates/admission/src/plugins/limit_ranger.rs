//! `LimitRanger`: sets the namespace's default requests and limits on containers, and refuses requests and limits
//! outside the namespace's bounds (<https://kubernetes.io/docs/concepts/policy/limit-range/>).

mod constraints;

use super::pods::ContainerKind;
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use constraints::{Resources, check_compute, check_storage};
use pintle_machinery::{
    GroupResource, Map, Status, Text, Value, ValueExt, meta::ObjectMeta, status::aggregate,
};
use pintle_registry::BoxFuture;
use std::sync::Arc;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The plugin.
#[derive(Debug)]
pub struct LimitRanger {
    limit_ranges: GroupResource,
}

impl Default for LimitRanger {
    fn default() -> LimitRanger {
        LimitRanger { limit_ranges: GroupResource::new("", "limitranges") }
    }
}

impl AdmissionPlugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        match request.operation {
            Operation::Create => request.is_for("", "pods") || request.is_for("", "persistentvolumeclaims"),
            Operation::Update => {
                request.is_of("", "pods") && request.subresource == "resize"
                    || request.is_for("", "persistentvolumeclaims")
            }
            Operation::Delete | Operation::Connect => false,
        }
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !request.is_of("", "pods") {
                return Ok(());
            }
            let limit_ranges = self.limit_ranges(request).await?;
            check_effort(request, &limit_ranges)?;
            for limit_range in limit_ranges {
                set_container_defaults(request.object.to_mut(), &limit_range);
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let limit_ranges = self.limit_ranges(request).await?;
            check_effort(request, &limit_ranges)?;
            for limit_range in limit_ranges {
                let object = &request.object;
                let errors = match request.is_of("", "pods") {
                    true => check_limits_of_pod(object, &limit_range),
                    false => check_limits_of_claim(object, &limit_range),
                };
                if !errors.is_empty() {
                    return Err(request.forbidden(aggregate(errors.into_iter())));
                }
            }
            Ok(())
        })
    }
}

impl LimitRanger {
    async fn limit_ranges(&self, request: &AdmissionRequest<'_>) -> Result<Vec<Arc<Value>>, Status> {
        if request.old_object.is_some_and(ObjectMeta::is_terminating) {
            return Ok(Vec::new());
        }
        let limit_ranges = request.list(&self.limit_ranges, request.namespace).await;
        limit_ranges.map_err(|status| request.forbidden(status.to_string()))
    }
}

/// The maximum number of comparisons between the containers of a pod and limits. Each may set a default or add an
/// error.
const MAX_COMPARED: usize = 100_000;

/// Refuses a pod whose containers and limits would need too many comparisons.
fn check_effort(request: &AdmissionRequest<'_>, limit_ranges: &[Arc<Value>]) -> Result<(), Status> {
    let kinds = [ContainerKind::Regular, ContainerKind::Init];
    let containers: usize = kinds.iter().map(|kind| request.object.items_at(kind.path()).len()).sum();
    let of_limit = |limit: &Value| -> usize {
        let maps = ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"];
        maps.iter().map(|name| limit.map_at(name).len()).sum()
    };
    let limits = limit_ranges.iter().flat_map(|limit_range| limit_range.items_at("spec.limits"));
    let limits: usize = limits.map(of_limit).sum();
    match containers.saturating_mul(limits) > MAX_COMPARED {
        true => Err(request.forbidden("the pod has too many containers for so many limits")),
        false => Ok(()),
    }
}

/// The limits of one type in a limit range.
fn limits<'a>(limit_range: &'a Value, limit_type: &str) -> impl Iterator<Item = &'a Value> {
    limit_range.items_at("spec.limits").iter().filter(move |limit| limit.str_at("type") == limit_type)
}

fn set_container_defaults(pod: &mut Value, limit_range: &Value) {
    let (mut requests, mut maxima) = (Map::new(), Map::new());
    for limit in limits(limit_range, "Container") {
        requests.extend(limit.map_at("defaultRequest").clone());
        maxima.extend(limit.map_at("default").clone());
    }
    let mut set = Vec::new();
    for kind in [ContainerKind::Regular, ContainerKind::Init] {
        for container in pod.items_at_mut(kind.path()) {
            for (path, defaults, what) in
                [("resources.requests", &requests, "request"), ("resources.limits", &maxima, "limit")]
            {
                let names = merge_missing(container, path, defaults);
                if !names.is_empty() {
                    let name = container.str_at("name");
                    set.push(format!("{} {what} for {} {name}", names.join(", "), kind.noun()));
                }
            }
        }
    }
    if !set.is_empty() {
        let text = format!("LimitRanger plugin set: {}", set.join("; "));
        pod.object_at_mut("metadata.annotations").insert(ANNOTATION, text.into());
    }
}

/// Adds the missing entries to a list, and returns their names.
fn merge_missing(container: &mut Value, path: &str, defaults: &Map) -> Vec<String> {
    let own = container.map_at(path);
    let missing: Vec<(Text, Value)> = defaults
        .iter()
        .filter(|(name, _)| !own.contains_key(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let names: Vec<String> = missing.iter().map(|(name, _)| name.to_string()).collect();
    if !missing.is_empty() {
        container.object_at_mut(path).extend(missing);
    }
    names
}

fn check_limits_of_pod(pod: &Value, limit_range: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in limit_range.items_at("spec.limits") {
        match limit.str_at("type") {
            "Container" => {
                for kind in [ContainerKind::Regular, ContainerKind::Init] {
                    for container in pod.items_at(kind.path()) {
                        errors.extend(check_compute(limit, &Resources::of_container(container)));
                    }
                }
            }
            "Pod" => errors.extend(check_compute(limit, &Resources::of_pod(pod))),
            _ => {}
        }
    }
    errors
}

fn check_limits_of_claim(claim: &Value, limit_range: &Value) -> Vec<String> {
    let resources = Resources::of_claim(claim);
    limits(limit_range, "PersistentVolumeClaim").flat_map(|limit| check_storage(limit, &resources)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    fn create(resource: &str, spec: Value) -> Result<Value, String> {
        let limit_range = json!({
            "metadata": {"name": "limits", "namespace": "n"},
            "spec": {"limits": [
                {
                    "type": "Container",
                    "min": {"cpu": "100m", "memory": "16Mi"}, "max": {"cpu": "1", "memory": "512Mi"},
                    "default": {"cpu": "500m", "memory": "128Mi"},
                    "defaultRequest": {"cpu": "200m", "memory": "64Mi"},
                    "maxLimitRequestRatio": {"cpu": "5"},
                },
                {"type": "Pod", "max": {"cpu": "1500m"}},
                {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}},
            ]},
        });
        let objects = Objects::new([("limitranges", limit_range)]);
        let object = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": spec});
        admit(&LimitRanger::default(), &objects, Operation::Create, resource, "", object, None)
    }

    #[test]
    fn containers_get_defaults_and_the_pod_says_so() {
        let pod = create(
            "pods",
            json!({
                "initContainers": [{"name": "i"}],
                "containers": [
                    {"name": "c"},
                    {"name": "d", "resources": {"limits": {"cpu": "300m"}, "requests": {"cpu": "300m", "memory": "100Mi"}}},
                ],
            }),
        )
        .unwrap();
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            json!(
                "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; \
                 memory limit for container d; cpu, memory request for init container i; cpu, memory limit for init \
                 container i"
            )
        );
        assert_eq!(
            pod["spec"]["containers"][1]["resources"],
            json!({"limits": {"cpu": "300m", "memory": "128Mi"}, "requests": {"cpu": "300m", "memory": "100Mi"}})
        );
    }

    #[test]
    fn bounds_are_kept() {
        let check = |limits: Value, requests: Value, message: &str| {
            let container = json!({"name": "c", "resources": {"limits": limits, "requests": requests}});
            let refused = create("pods", json!({"containers": [container]})).err().unwrap_or_default();
            assert_eq!(refused.trim_start_matches("pods \"x\" is forbidden: "), message);
        };
        check(json!({"cpu": "1"}), json!({"cpu": "1"}), "");
        check(
            json!({"cpu": "2"}),
            json!({"cpu": "1"}),
            "[maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2]",
        );
        check(
            json!({"memory": "64Mi"}),
            json!({"memory": "1Mi"}),
            "minimum memory usage per Container is 16Mi, but request is 1Mi",
        );
        check(
            json!({"cpu": "1"}),
            json!({"cpu": "150m"}),
            "cpu max limit to request ratio per Container is 5, but provided ratio is 6.666667",
        );
    }

    #[test]
    fn very_many_containers_are_not_held_against_very_many_limits() {
        let defaults: Map = (0..2000).map(|number| (format!("a.b/r{number}"), json!("1"))).collect();
        let limit_range = json!({
            "metadata": {"name": "limits", "namespace": "n"},
            "spec": {"limits": [{"type": "Container", "default": defaults}]},
        });
        let objects = Objects::new([("limitranges", limit_range)]);
        let create = |containers: usize| {
            let containers: Vec<Value> =
                (0..containers).map(|number| json!({"name": format!("c{number}")})).collect();
            let pod =
                json!({"metadata": {"name": "x", "namespace": "n"}, "spec": {"containers": containers}});
            admit(&LimitRanger::default(), &objects, Operation::Create, "pods", "", pod, None)
        };
        assert_eq!(
            create(51).err().as_deref(),
            Some("pods \"x\" is forbidden: the pod has too many containers for so many limits")
        );
        assert!(create(50).is_ok());
    }

    #[test]
    fn claims_are_neither_too_small_nor_too_large() {
        let check = |size: &str, message: &str| {
            let spec = json!({"resources": {"requests": {"storage": size}}});
            let refused = create("persistentvolumeclaims", spec).err().unwrap_or_default();
            assert_eq!(refused.trim_start_matches("persistentvolumeclaims \"x\" is forbidden: "), message);
        };
        check("5Gi", "");
        check("100Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 100Mi");
        check("11Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi");
    }
}
