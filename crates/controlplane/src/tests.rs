//! Tests of all controllers together.

use crate::objects::core;
use crate::*;
use pintle_api::core::service::ServiceNetwork;
use pintle_machinery::{GroupResource, Status, Value, ValueExt, json};
use pintle_registry::testing::{MemoryRegistry, now};
use std::sync::Arc;

fn kubernetes_service() -> KubernetesService {
    KubernetesService {
        service_network: Default::default(),
        advertise_address: "10.20.30.40".parse().unwrap(),
        secure_port: 6443,
        node_port: None,
        exclusive: true,
        endpoint_reconciler: EndpointReconciler::MasterCount(1),
    }
}

fn start_all(registry: &MemoryRegistry, service: &KubernetesService) -> Result<(), Status> {
    let service_network: Arc<ServiceNetwork> = Arc::default();
    let data = [("client-ca-file".to_owned(), "PEM".to_owned())].into();
    now(start(&ServiceCidr { service_network: service_network.clone() }, registry))?;
    now(start(service, registry))?;
    now(start(&SystemNamespaces, registry))?;
    now(bootstrap_priority_classes(registry))?;
    now(start(&FlowControlObjects, registry))?;
    now(bootstrap_roles(registry))?;
    now(start(&ClusterAuthenticationInfo { data, exclusive: true }, registry))?;
    let peer_address = Some("10.20.30.40:6443".to_owned());
    now(start(&IdentityLease { hostname: "host".to_owned(), exclusive: true, peer_address }, registry))?;
    now(start(&IdentityLeaseGarbageCollector, registry))?;
    now(start(&LegacyTokenTracking, registry))?;
    now(start(&ServiceIpRepair::new(service_network, "host").unwrap(), registry))
}

fn stored(registry: &MemoryRegistry, resource: &GroupResource, namespace: &str, name: &str) -> Value {
    let mut object = registry.stored(resource, namespace, name).unwrap();
    for member in ["uid", "resourceVersion"] {
        object.remove_at(&format!("metadata.{member}"));
    }
    object
}

#[test]
fn a_fresh_server_gets_its_objects_once() {
    let (registry, kubernetes) = (MemoryRegistry::default(), kubernetes_service());
    start_all(&registry, &kubernetes).unwrap();
    let service = stored(&registry, &core("services"), "default", "kubernetes");
    assert_eq!(
        service["spec"],
        json!({
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}]
        })
    );
    let endpoints = stored(&registry, &core("endpoints"), "default", "kubernetes");
    assert_eq!(
        endpoints["subsets"],
        json!([{
            "addresses": [{"ip": "10.20.30.40"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]
        }])
    );
    let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
    let slice = stored(&registry, &slices, "default", "kubernetes");
    assert_eq!(
        (&slice["addressType"], &slice["endpoints"]),
        (&json!("IPv4"), &json!([{"addresses": ["10.20.30.40"], "conditions": {"ready": true}}]))
    );
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        stored(&registry, &core("namespaces"), "", namespace);
    }
    let authentication =
        stored(&registry, &core("configmaps"), "kube-system", "extension-apiserver-authentication");
    assert_eq!(authentication["data"], json!({"client-ca-file": "PEM"}));
    let classes = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    assert_eq!(stored(&registry, &classes, "", "system-node-critical")["value"], 2000001000);
    let cidrs = GroupResource::new("networking.k8s.io", "servicecidrs");
    let cidr = stored(&registry, &cidrs, "", "kubernetes");
    assert_eq!(cidr["spec"], json!({"cidrs": ["10.0.0.0/24"]}));
    assert_eq!(cidr["status"]["conditions"][0]["status"], "True");

    let revision = registry.revision();
    start_all(&registry, &kubernetes).unwrap();
    // Only the lease was renewed: strategies do not run here, so no address of the service needs repair.
    assert!(registry.revision() - revision <= 2);
}

#[test]
fn another_address_takes_the_place_of_the_old_one() {
    let (registry, mut kubernetes) = (MemoryRegistry::default(), kubernetes_service());
    start_all(&registry, &kubernetes).unwrap();
    kubernetes.advertise_address = "fd00::7".parse().unwrap();
    kubernetes.secure_port = 7443;
    start_all(&registry, &kubernetes).unwrap();
    let service = stored(&registry, &core("services"), "default", "kubernetes");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 7443);
    let endpoints = stored(&registry, &core("endpoints"), "default", "kubernetes");
    assert_eq!(endpoints["subsets"][0]["addresses"], json!([{"ip": "fd00::7"}]));
    let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
    assert_eq!(stored(&registry, &slices, "default", "kubernetes")["addressType"], "IPv6");
}
