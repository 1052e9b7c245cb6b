//! Publishes the configured block of service addresses as a `ServiceCIDR` object
//! (<https://kubernetes.io/docs/tasks/network/extend-service-ip-ranges/>).

use crate::controller::{Controller, OBJECTS_INTERVAL};
use crate::objects::{create_if_missing, write_options};
use jiff::Timestamp;
use pintle_api::core::service::{ServiceNetwork, service_cidrs};
use pintle_machinery::{
    Status, Value, ValueExt, json,
    meta::{ObjectMeta, format_time},
};
use pintle_registry::{Registry, WriteOptions};
use std::{sync::Arc, time::Duration};

const NAME: &str = "kubernetes";
/// The field manager of the condition, as in the reference.
const FIELD_MANAGER: &str = "kubernetes-service-cidr-controller";

/// Maintains the `ServiceCIDR` of the configured block.
pub struct ServiceCidr {
    /// The network from which services get addresses; shared with the services' strategy.
    pub service_network: Arc<ServiceNetwork>,
}

impl Controller for ServiceCidr {
    const NAME: &'static str = "service CIDR";
    const INTERVAL: Duration = OBJECTS_INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        reconcile(registry, &self.service_network, Timestamp::now()).await
    }
}

/// Creates the object, and sets its `Ready` condition to true unless it already has a value or the object is
/// terminating. An object with one block gets the second of a configuration that has become dual-stack. One with other
/// blocks is left alone: the cluster's addresses come from those.
async fn reconcile(registry: &dyn Registry, network: &ServiceNetwork, now: Timestamp) -> Result<(), Status> {
    let cidrs = network.cidrs();
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": NAME},
        "spec": {"cidrs": cidrs},
    });
    create_if_missing(registry, &service_cidrs(), "", object).await?;
    let object = registry.get(&service_cidrs(), "", NAME).await?;
    if is_upgraded(&object, &cidrs) {
        let change = |mut object: Value| {
            if is_upgraded(&object, &cidrs) {
                object.set("spec.cidrs", json!(cidrs));
            }
            Ok(object)
        };
        let updated = registry.update(&service_cidrs(), "", NAME, Box::new(change), write_options()).await;
        if let Err(status) = updated {
            // A policy may forbid it; the server starts anyway, as the reference does.
            tracing::error!(why = status.message, to = ?cidrs, "the default ServiceCIDR cannot be updated to dual-stack");
        }
        return Ok(());
    }
    let conditions = object.items_at("status.conditions");
    let ready = conditions.iter().find(|condition| condition.str_at("type") == "Ready");
    let is_said = ready.is_some_and(|condition| condition.str_at("status") != "Unknown");
    if object.at("spec.cidrs") != Some(&json!(cidrs)) || object.is_terminating() || is_said {
        return Ok(());
    }
    let configuration = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": NAME},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": format_time(now),
        }]},
    });
    let options = WriteOptions {
        field_manager: FIELD_MANAGER.to_owned(),
        subresource: "status",
        ..WriteOptions::default()
    };
    registry.apply(&service_cidrs(), "", NAME, configuration, options).await?;
    Ok(())
}

/// Whether the configured blocks are the object's one and another one.
fn is_upgraded(object: &Value, cidrs: &[String]) -> bool {
    match (object.items_at("spec.cidrs"), cidrs) {
        ([only], [first, _]) => only.as_str() == Some(first),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_go_forms::Cidr;
    use pintle_registry::testing::{MemoryRegistry, now};

    fn network(cidrs: &[&str]) -> ServiceNetwork {
        let cidrs = cidrs.iter().map(|cidr| Cidr::parse_sloppy(cidr).unwrap()).collect();
        ServiceNetwork::new(cidrs, Default::default()).unwrap()
    }

    #[test]
    fn one_block_gets_the_second_of_a_dual_stack_configuration() {
        let (v4, other, v6) = ("10.0.0.0/24", "10.1.0.0/24", "2001:db8::/112");
        for (first, second, expected) in [
            (vec![v4], vec![v4, v6], vec![v4, v6]),
            (vec![v6], vec![v6, v4], vec![v6, v4]),
            (vec![v4], vec![v6, v4], vec![v4]),
            (vec![v4], vec![other, v6], vec![v4]),
            (vec![v4, v6], vec![v4], vec![v4, v6]),
        ] {
            let registry = MemoryRegistry::default();
            for configured in [&first, &second, &second] {
                now(reconcile(&registry, &network(configured), Timestamp::now())).unwrap();
            }
            let object = registry.stored(&service_cidrs(), "", NAME).unwrap();
            assert_eq!(object.at("spec.cidrs"), Some(&json!(expected)), "{first:?} {second:?}");
            assert_eq!(object.items_at("status.conditions").len(), 1);
        }
    }
}
