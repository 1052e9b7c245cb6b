//! Publishes the configured block of service addresses as a `ServiceCIDR` object
//! (<https://kubernetes.io/docs/tasks/network/extend-service-ip-ranges/>).

use crate::controller::{Controller, OBJECTS_INTERVAL};
use crate::objects::create_if_missing;
use jiff::Timestamp;
use pintle_api::core::service::{ServiceNetwork, service_cidrs};
use pintle_machinery::{
    Status, ValueExt, json,
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
    let object = registry.get(&service_cidrs(), "", NAME).await?;
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
