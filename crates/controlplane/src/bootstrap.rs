//! Creates the objects of a fresh server.

use crate::objects::unless_off;
use crate::repair::{self, NodePortRepair};
use crate::{
    Config, cluster_authentication, flow_control, identity_lease, kubernetes_service, legacy_token_tracking,
    priority_classes, rbac_policy, service_cidr, system_namespaces,
};
use jiff::Timestamp;
use pintle_machinery::Status;
use pintle_registry::Registry;

/// Creates the missing objects that every server has, and repairs leaks of an earlier run. The server becomes ready
/// afterwards.
///
/// Independent objects are written concurrently, so that the writes share a group commit.
///
/// # Errors
/// The first failure. Objects that were created stay, and a second call creates the rest.
pub async fn bootstrap(registry: &dyn Registry, config: &Config) -> Result<(), Status> {
    let now = Timestamp::now();
    let mut node_ports = NodePortRepair::default();
    let service = async {
        // The service gets its address from the block.
        unless_off(service_cidr::reconcile(registry, config, now)).await?;
        match kubernetes_service::reconcile(registry, config).await {
            // Objects of another server may prevent this. The other servers serve the cluster meanwhile, and this one
            // retries in the background.
            Err(status) if !config.exclusive && status != Status::no_such_resource() => {
                tracing::warn!(error = %status, "the kubernetes service is not there yet");
                Ok(())
            }
            result => result,
        }
    };
    tokio::try_join!(
        unless_off(service),
        unless_off(system_namespaces::reconcile(registry)),
        unless_off(priority_classes::reconcile(registry)),
        unless_off(flow_control::reconcile(registry)),
        unless_off(rbac_policy::reconcile(registry)),
        unless_off(cluster_authentication::reconcile(registry, config, now)),
        unless_off(identity_lease::renew(registry, config, now)),
        unless_off(legacy_token_tracking::reconcile(registry, now)),
        unless_off(repair::cluster_ips(registry, now)),
        unless_off(node_ports.run_once(registry, config.service_network.node_ports())),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointReconciler;
    use crate::objects::core;
    use pintle_machinery::{GroupResource, Value, ValueExt};
    use pintle_registry::testing::{MemoryRegistry, now};
    use serde_json::json;

    fn config() -> Config {
        Config {
            service_network: Default::default(),
            advertise_address: "10.20.30.40".parse().unwrap(),
            secure_port: 6443,
            exclusive: true,
            endpoint_reconciler: EndpointReconciler::MasterCount(1),
            hostname: "host".to_owned(),
            cluster_authentication: [("client-ca-file".to_owned(), "PEM".to_owned())].into(),
        }
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
        let (registry, config) = (MemoryRegistry::default(), config());
        now(bootstrap(&registry, &config)).unwrap();
        let service = stored(&registry, &core("services"), "default", "kubernetes");
        assert_eq!(
            service["spec"],
            json!({
                "type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "None",
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
        now(bootstrap(&registry, &config)).unwrap();
        // Only the lease was renewed: strategies do not run here, so no address of the service needs repair.
        assert!(registry.revision() - revision <= 2);
    }

    #[test]
    fn another_address_takes_the_place_of_the_old_one() {
        let (registry, mut config) = (MemoryRegistry::default(), config());
        now(bootstrap(&registry, &config)).unwrap();
        config.advertise_address = "fd00::7".parse().unwrap();
        config.secure_port = 7443;
        now(bootstrap(&registry, &config)).unwrap();
        let service = stored(&registry, &core("services"), "default", "kubernetes");
        assert_eq!(service["spec"]["ports"][0]["targetPort"], 7443);
        let endpoints = stored(&registry, &core("endpoints"), "default", "kubernetes");
        assert_eq!(endpoints["subsets"][0]["addresses"], json!([{"ip": "fd00::7"}]));
        let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
        assert_eq!(stored(&registry, &slices, "default", "kubernetes")["addressType"], "IPv6");
    }
}
