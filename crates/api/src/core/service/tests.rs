//! Tests complete writes of services: allocation and release of addresses and ports.

use super::strategy::ServiceStrategy;
use super::*;
use pintle_machinery::{Status, Value, Value as Json, ValueExt, json};
use pintle_registry::{
    Registry, Strategy, WriteOptions,
    testing::{MemoryRegistry, now, with_context},
};

struct Cluster {
    registry: MemoryRegistry,
    strategy: ServiceStrategy,
}

impl Cluster {
    fn new(cidr: &str) -> Cluster {
        let registry = MemoryRegistry::default();
        let range = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [cidr]}});
        now(registry.create(&service_cidrs(), "", range, WriteOptions::default())).unwrap();
        Cluster { registry, strategy: ServiceStrategy { network: Arc::default() } }
    }

    /// Creates a service as the registry store does; `invalid` makes the write fail after the allocation.
    fn create_or_fail(&self, spec: Json, dry_run: bool, invalid: bool) -> Result<Value, Status> {
        let mut service = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec});
        self.strategy.set_defaults(&mut service);
        with_context(&self.registry, "n", dry_run, |context| {
            let finish = now(self.strategy.begin_create(context, &mut service))?.unwrap();
            self.strategy.prepare_for_create(context, &mut service);
            let errors = self.strategy.validate(context, &service);
            let stored = errors.is_empty() && !invalid;
            now(finish(stored, &self.registry));
            if stored { Ok(service) } else { Err(families::invalid(&Value::Null, errors)) }
        })
    }

    fn create(&self, spec: Json) -> Result<Value, Status> {
        self.create_or_fail(spec, false, false)
    }

    fn update(&self, old: &Value, spec: Json) -> Result<Value, Status> {
        let mut service = old.clone();
        service.set("spec", spec);
        self.strategy.set_defaults(&mut service);
        with_context(&self.registry, "n", false, |context| {
            let finish = now(self.strategy.begin_update(context, &mut service, old))?.unwrap();
            self.strategy.prepare_for_update(context, &mut service, old);
            service.set("metadata.resourceVersion", "1");
            let errors = self.strategy.validate_update(context, &service, old);
            now(finish(errors.is_empty(), &self.registry));
            if errors.is_empty() { Ok(service) } else { Err(families::invalid(&service, errors)) }
        })
    }

    fn delete(&self, service: &Value) {
        with_context(&self.registry, "n", false, |context| now(self.strategy.after_delete(context, service)));
    }

    fn taken(&self) -> (Vec<String>, Vec<i64>) {
        let ips = now(self.registry.list(&ip_addresses(), "")).unwrap();
        let ips = ips.iter().map(|ip| ip.str_at("metadata.name").to_owned()).collect();
        let range = PortRange::default();
        let ports = self.registry.stored(&node_port_allocations(), "", RANGE_ALLOCATION_NAME);
        (ips, PortSet::decode(range, &ports.unwrap_or_default()).iter().collect())
    }
}

fn node_port_service(ports: &[(&str, i64)]) -> Json {
    let ports: Vec<Json> = ports
        .iter()
        .enumerate()
        .map(|(index, (name, node_port))| {
            let mut port = json!({"name": name, "port": 80 + index});
            if *node_port != 0 {
                port["nodePort"] = (*node_port).into();
            }
            port
        })
        .collect();
    json!({"type": "NodePort", "clusterIP": "10.0.0.5", "ports": ports})
}

#[test]
fn what_a_service_takes_is_given_back_when_it_goes() {
    let cluster = Cluster::new("10.0.0.0/24");
    let service = cluster.create(json!({"ports": [{"port": 80}]})).unwrap();
    let ip = service.str_at("spec.clusterIP").to_owned();
    assert_eq!(service["spec"]["clusterIPs"], json!([ip]));
    assert_eq!(cluster.taken().0, [ip]);
    let object = now(cluster.registry.list(&ip_addresses(), "")).unwrap().remove(0);
    assert_eq!(object["spec"]["parentRef"], json!({"resource": "services", "namespace": "n", "name": "a"}));
    cluster.delete(&service);
    assert_eq!(cluster.taken(), (vec![], vec![]));
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    let cluster = Cluster::new("10.0.0.0/24");
    let spec = node_port_service(&[("x", 30001), ("y", 0)]);
    assert!(cluster.create_or_fail(spec.clone(), false, true).is_err());
    assert_eq!(cluster.taken(), (vec![], vec![]));
    let service = cluster.create(spec).unwrap();
    let before = cluster.taken();
    assert!(cluster.update(&service, node_port_service(&[("x", 30002), ("Bad_Name", 30003)])).is_err());
    assert_eq!(cluster.taken(), before);
    let status = cluster.create(node_port_service(&[("x", 30009), ("y", 30001)])).unwrap_err();
    assert!(status.message.contains("failed to allocate IP 10.0.0.5: provided IP is already allocated"));
    let mut other = node_port_service(&[("x", 30009), ("y", 30001)]);
    other["clusterIP"] = json!("10.0.0.6");
    let status = cluster.create(other).unwrap_err();
    let message = "spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated";
    assert!(status.message.ends_with(message), "{status}");
    assert_eq!(cluster.taken(), before);
}

#[test]
fn a_dry_run_takes_nothing_but_sees_taken_ports() {
    let cluster = Cluster::new("10.0.0.0/24");
    cluster.create(node_port_service(&[("x", 30001)])).unwrap();
    let (before, revision) = (cluster.taken(), cluster.registry.revision());
    let dry = cluster.create_or_fail(json!({"ports": [{"port": 80}]}), true, false).unwrap();
    assert_eq!(dry.str_at("spec.clusterIP"), "10.0.0.0");
    assert!(cluster.create_or_fail(node_port_service(&[("x", 30002)]), true, false).is_ok());
    assert!(cluster.create_or_fail(node_port_service(&[("x", 30001)]), true, false).is_err());
    assert_eq!((cluster.taken(), cluster.registry.revision()), (before, revision));
}

#[test]
fn a_change_of_type_gives_back_and_takes() {
    let cluster = Cluster::new("10.0.0.0/24");
    let service = cluster.create(node_port_service(&[("x", 30001)])).unwrap();
    let mut plain = service["spec"].clone();
    plain["type"] = json!("ClusterIP");
    let service = cluster.update(&service, plain).unwrap();
    assert_eq!(service["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(cluster.taken(), (vec!["10.0.0.5".to_owned()], vec![]));

    let service =
        cluster.update(&service, json!({"type": "ExternalName", "externalName": "a.example.com"})).unwrap();
    assert_eq!(cluster.taken(), (vec![], vec![]));

    let service = cluster
        .update(
            &service,
            json!({
                "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30032,
                "clusterIP": "10.0.0.7", "ports": [{"port": 80, "nodePort": 30031}]
            }),
        )
        .unwrap();
    assert_eq!(cluster.taken(), (vec!["10.0.0.7".to_owned()], vec![30031, 30032]));

    let mut everywhere = service["spec"].clone();
    everywhere["externalTrafficPolicy"] = json!("Cluster");
    let service = cluster.update(&service, everywhere).unwrap();
    assert_eq!(service["spec"].get("healthCheckNodePort"), None);
    assert_eq!(cluster.taken().1, [30031]);
}

#[test]
fn what_a_client_leaves_out_is_kept() {
    let cluster = Cluster::new("10.0.0.0/24");
    let service = cluster.create(node_port_service(&[("x", 30001)])).unwrap();
    let ports = json!([{"name": "x", "port": 81}]);
    let updated = cluster.update(&service, json!({"type": "NodePort", "ports": ports})).unwrap();
    assert_eq!(updated["spec"]["clusterIP"], "10.0.0.5");
    assert_eq!(updated["spec"]["ports"][0]["nodePort"], 30001);
}

#[test]
fn ports_of_one_number_share_a_node_port() {
    let cluster = Cluster::new("10.0.0.0/24");
    let ports = json!([
        {"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}
    ]);
    let service = cluster.create(json!({"type": "NodePort", "ports": ports})).unwrap();
    assert_eq!(service["spec"]["ports"][0]["nodePort"], service["spec"]["ports"][1]["nodePort"]);
    assert_eq!(cluster.taken().1.len(), 1);
}

#[test]
fn a_full_range_and_foreign_addresses_are_refused() {
    let cluster = Cluster::new("10.0.0.0/28");
    for index in 0..14 {
        let mut service = json!({"metadata": {"name": format!("s{index}"), "namespace": "n"}});
        cluster.strategy.set_defaults(&mut service);
        with_context(&cluster.registry, "n", false, |context| {
            now(cluster.strategy.begin_create(context, &mut service)).map(|_| ())
        })
        .unwrap();
    }
    assert_eq!(cluster.taken().0.len(), 14);
    let status = cluster.create(json!({"ports": [{"port": 80}]})).unwrap_err();
    let message = r#"Internal error occurred: failed to allocate a serviceIP for Service "a": range is full"#;
    assert_eq!((status.code, status.message.as_str()), (500, message));
    for ip in ["10.0.0.0", "10.0.0.15", "10.0.1.5"] {
        let status = cluster.create(json!({"clusterIP": ip, "ports": [{"port": 80}]})).unwrap_err();
        let message = format!(
            r#"Service "a" is invalid: spec.clusterIPs: Invalid value: ["{ip}"]: failed to allocate IP {ip}: the provided network does not match the current range"#
        );
        assert_eq!(status.message, message);
    }
}

#[test]
fn ranges_that_are_not_ready_are_not_used() {
    let cluster = Cluster::new("10.0.0.0/24");
    let not_ready = |mut object: Value| {
        object.set("status.conditions", json!([{"type": "Ready", "status": "False"}]));
        Ok(object)
    };
    let options = WriteOptions::default();
    now(cluster.registry.update(&service_cidrs(), "", "kubernetes", Box::new(not_ready), options)).unwrap();
    assert!(cluster.create(json!({"clusterIP": "10.0.0.5", "ports": [{"port": 80}]})).is_err());
}

#[test]
fn an_address_of_another_service_is_not_given_back() {
    let cluster = Cluster::new("10.0.0.0/24");
    cluster.create(json!({"clusterIP": "10.0.0.5", "ports": [{"port": 80}]})).unwrap();
    let other = json!({
        "metadata": {"name": "b", "namespace": "n"},
        "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"]}
    });
    cluster.delete(&other);
    assert_eq!(cluster.taken().0, ["10.0.0.5"]);
}
