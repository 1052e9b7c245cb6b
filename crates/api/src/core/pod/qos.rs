//! Computes the quality of service class of a pod from its requests and limits
//! (<https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/>).

use crate::resource_list::{self, Quantities};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};

/// The class in the status, or else the computed one.
pub(super) fn qos_class(pod: &Value) -> &str {
    match pod.str_at("status.qosClass") {
        "" => compute(pod),
        class => class,
    }
}

/// Computes the class from the resources. Ephemeral containers have none.
pub(super) fn compute(pod: &Value) -> &'static str {
    let mut requests = Quantities::new();
    let mut limits = Quantities::new();
    let mut all_limited = true;
    if let Some(resources) = pod.at("spec.resources").filter(|_| enabled(Gate::PodLevelResources)) {
        resource_list::add(&mut requests, resources.map_at("requests"), counts);
        resource_list::add(&mut limits, resources.map_at("limits"), counts);
        all_limited = resources.map_at("limits").is_empty() || limits.len() == 2;
    } else {
        for container in pod.items_at("spec.containers").iter().chain(pod.items_at("spec.initContainers")) {
            resource_list::add(&mut requests, container.map_at("resources.requests"), counts);
            let mut own = Quantities::new();
            resource_list::add(&mut own, container.map_at("resources.limits"), counts);
            all_limited &= own.len() == 2;
            resource_list::add(&mut limits, container.map_at("resources.limits"), counts);
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Whether a resource affects the class.
fn counts(name: &str) -> bool {
    matches!(name, "cpu" | "memory")
}

#[cfg(test)]
mod tests {
    use super::qos_class;
    use pintle_machinery::{Value, json};

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let guaranteed = json!({"requests": both, "limits": {"cpu": "1000m", "memory": "1024Mi"}});
        let rows: &[(Value, Value, &str)] = &[
            (json!([{}]), Value::Null, "BestEffort"),
            (json!([{"resources": {"requests": {"cpu": "0"}}}]), Value::Null, "BestEffort"),
            (json!([{"resources": {"requests": {"example.com/gpu": "1"}}}]), Value::Null, "BestEffort"),
            (json!([{"resources": guaranteed}]), Value::Null, "Guaranteed"),
            (json!([{"resources": guaranteed}, {}]), Value::Null, "Burstable"),
            (json!([{"resources": {"requests": {"cpu": "1"}}}]), Value::Null, "Burstable"),
            (
                json!([{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]),
                Value::Null,
                "Burstable",
            ),
            (json!([{}]), guaranteed.clone(), "Guaranteed"),
            (json!([{"resources": guaranteed}]), json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!([{"resources": guaranteed}]), json!({}), "BestEffort"),
        ];
        for (containers, resources, class) in rows {
            let pod = json!({"spec": {"containers": containers, "resources": resources}});
            assert_eq!(qos_class(&pod), *class, "{pod}");
        }
        assert_eq!(qos_class(&json!({"status": {"qosClass": "Burstable"}})), "Burstable");
    }
}
