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
/// terminating. An object with other blocks is left alone: the cluster's addresses come from those.
async fn reconcile(registry: &dyn Registry, network: &ServiceNetwork, now: Timestamp) -> Result<(), Status> {
    let cidrs = network.cidrs();
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": NAME},
        "spec": {"cidrs": cidrs},
    });
    create_if_missing(registry, &service_cidrs(), "", object).await?;
    let wanted = json!(cidrs);
    let mark_ready = |mut object: Value| {
        let conditions = object.items_at("status.conditions");
        let ready = conditions.iter().find(|condition| condition.str_at("type") == "Ready");
        let is_said = ready.is_some_and(|condition| condition.str_at("status") != "Unknown");
        if object.at("spec.cidrs") != Some(&wanted) || object.is_terminating() || is_said {
            return Ok(object);
        }
        let mut conditions: Vec<Value> =
            conditions.iter().filter(|condition| condition.str_at("type") != "Ready").cloned().collect();
        conditions.push(json!({
            "type": "Ready",
            "status": "True",
            "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": format_time(now),
        }));
        object.set("status.conditions", conditions);
        Ok(object)
    };
    let options = WriteOptions { subresource: "status", ..write_options() };
    registry.update(&service_cidrs(), "", NAME, Box::new(mark_ready), options).await?;
    Ok(())
}
