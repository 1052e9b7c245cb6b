//! Resolves services to addresses.

use pintle_machinery::{GroupResource, Value, ValueExt};
use pintle_registry::{BoxFuture, Registry};
use std::{
    future::ready,
    sync::{Arc, OnceLock},
};

/// Resolves a service to an address.
pub trait ServiceResolver: Send + Sync {
    /// The address `host:port` for a port of a service.
    ///
    /// # Errors
    /// The reason why the service cannot be resolved, as a text for clients.
    fn resolve<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<String, String>>;
}

/// A resolver that is only known later: webhooks are configured before there is a registry of services.
#[derive(Default)]
pub struct LateServiceResolver(OnceLock<Arc<dyn ServiceResolver>>);

impl LateServiceResolver {
    /// Sets the resolver. Only the first call has an effect.
    pub fn set(&self, resolver: Arc<dyn ServiceResolver>) {
        let _ = self.0.set(resolver);
    }
}

impl ServiceResolver for LateServiceResolver {
    fn resolve<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<String, String>> {
        match self.0.get() {
            Some(resolver) => resolver.resolve(namespace, name, port),
            None => Box::pin(ready(Err("services are not known yet".to_owned()))),
        }
    }
}

/// Resolves a service to its cluster IP or external name, from this server's own services.
pub struct ClusterIpResolver(Arc<dyn Registry>);

impl ClusterIpResolver {
    /// A resolver that reads from this registry.
    pub fn new(registry: Arc<dyn Registry>) -> ClusterIpResolver {
        ClusterIpResolver(registry)
    }
}

impl ServiceResolver for ClusterIpResolver {
    fn resolve<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let services = GroupResource::new("", "services");
            let service = self.0.get_cached(&services, namespace, name).await;
            // The reference's error text has less than the registry's, because it comes from a cache of services.
            let service = service.map_err(|status| match status.code {
                404 => format!("service \"{name}\" not found"),
                _ => status.message,
            })?;
            address(&service, name, port)
        })
    }
}

fn address(service: &Value, name: &str, port: u16) -> Result<String, String> {
    let cluster_ip = service.str_at("spec.clusterIP");
    match service.str_at("spec.type") {
        "ExternalName" => Ok(join(service.str_at("spec.externalName"), port)),
        "ClusterIP" if cluster_ip == "None" => {
            Err("cannot route to service with ClusterIP \"None\"".to_owned())
        }
        "ClusterIP" | "NodePort" | "LoadBalancer" => {
            let has_port = |own: &Value| own.i64_at("port") == Some(i64::from(port));
            match service.items_at("spec.ports").iter().any(has_port) {
                true => Ok(join(cluster_ip, port)),
                false => Err(format!("no service port {port} found for service \"{name}\"")),
            }
        }
        other => Err(format!("unsupported service type \"{other}\"")),
    }
}

fn join(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn services_are_reached_by_their_type() {
        let check = |spec: Value, expected: Result<&str, &str>| {
            let found = address(&json!({"spec": spec}), "s", 443);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{spec}");
        };
        let ports = json!([{"port": 443}]);
        check(json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": ports}), Ok("10.0.0.7:443"));
        check(json!({"type": "NodePort", "clusterIP": "fd00::1", "ports": ports}), Ok("[fd00::1]:443"));
        check(json!({"type": "ExternalName", "externalName": "e.example.com"}), Ok("e.example.com:443"));
        check(
            json!({"type": "ClusterIP", "clusterIP": "None", "ports": ports}),
            Err("cannot route to service with ClusterIP \"None\""),
        );
        check(
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{"port": 80}]}),
            Err("no service port 443 found for service \"s\""),
        );
    }
}
