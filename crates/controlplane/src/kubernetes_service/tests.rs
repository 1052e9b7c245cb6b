use super::*;
use pintle_registry::testing::{MemoryRegistry, now};
use pintle_storage::MemoryStorage;

fn config(address: &str, endpoint_reconciler: EndpointReconciler) -> KubernetesService {
    KubernetesService {
        service_network: Default::default(),
        advertise_address: address.parse().unwrap(),
        secure_port: 6443,
        node_port: None,
        exclusive: false,
        endpoint_reconciler,
    }
}

fn lease(storage: &Arc<MemoryStorage>) -> EndpointReconciler {
    EndpointReconciler::Lease(MasterLeases::new(storage.clone(), "/registry/masterleases/"))
}

/// The addresses of the endpoints and of the slice.
fn addresses(registry: &MemoryRegistry) -> (Vec<String>, Vec<String>) {
    let endpoints = registry.stored(&core("endpoints"), NAMESPACE, NAME).unwrap();
    let of_endpoints = endpoints.items_at("subsets").iter().flat_map(|subset| subset.items_at("addresses"));
    let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
    let slice = registry.stored(&slices, NAMESPACE, NAME).unwrap();
    let of_slice = slice.items_at("endpoints").iter().map(|endpoint| endpoint["addresses"][0].clone());
    (
        of_endpoints.map(|address| address.str_at("ip").to_owned()).collect(),
        of_slice.map(|address| address.as_str().unwrap().to_owned()).collect(),
    )
}

fn check(registry: &MemoryRegistry, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|&ip| ip.to_owned()).collect();
    assert_eq!(addresses(registry), (expected.clone(), expected));
}

#[tokio::test]
async fn servers_with_leases_are_behind_the_service() {
    let (registry, storage) = (MemoryRegistry::default(), Arc::new(MemoryStorage::new()));
    let one = config("10.0.0.10", lease(&storage));
    let mut two = config("10.0.0.9", lease(&storage));
    two.secure_port = 7443;
    now(reconcile(&registry, &one)).unwrap();
    check(&registry, &["10.0.0.10"]);
    now(reconcile(&registry, &two)).unwrap();
    check(&registry, &["10.0.0.10", "10.0.0.9"]);
    let ports = |registry: &MemoryRegistry| {
        let endpoints = registry.stored(&core("endpoints"), NAMESPACE, NAME).unwrap();
        endpoints["subsets"][0]["ports"][0]["port"].clone()
    };
    assert_eq!(ports(&registry), 6443);
    let revision = registry.revision();
    now(reconcile(&registry, &one)).unwrap();
    now(reconcile(&registry, &two)).unwrap();
    assert_eq!(registry.revision(), revision, "nothing is written that is as it should be");
    now(withdraw(&registry, &one)).unwrap();
    check(&registry, &["10.0.0.9"]);
    now(withdraw(&registry, &two)).unwrap();
    check(&registry, &[]);
    now(reconcile(&registry, &two)).unwrap();
    check(&registry, &["10.0.0.9"]);
    assert_eq!(ports(&registry), 7443);
}

#[test]
fn a_number_of_servers_puts_itself_there() {
    let registry = MemoryRegistry::default();
    let server = |address: &str| config(address, EndpointReconciler::MasterCount(2));
    let reconcile = |address: &str| now(reconcile(&registry, &server(address))).unwrap();
    reconcile("10.0.0.1");
    reconcile("10.0.0.2");
    check(&registry, &["10.0.0.1", "10.0.0.2"]);
    // The address that follows is removed.
    reconcile("10.0.0.11");
    check(&registry, &["10.0.0.1", "10.0.0.11"]);
    reconcile("10.0.0.3");
    check(&registry, &["10.0.0.11", "10.0.0.3"]);
    now(withdraw(&registry, &server("10.0.0.3"))).unwrap();
    check(&registry, &["10.0.0.11"]);
}

#[test]
fn a_server_alone_needs_no_lease() {
    let (registry, storage) = (MemoryRegistry::default(), Arc::new(MemoryStorage::new()));
    let mut config = config("10.0.0.1", lease(&storage));
    config.exclusive = true;
    now(reconcile(&registry, &config)).unwrap();
    check(&registry, &["10.0.0.1"]);
    now(withdraw(&registry, &config)).unwrap();
    check(&registry, &["10.0.0.1"]);
    let EndpointReconciler::Lease(leases) = &config.endpoint_reconciler else { panic!() };
    assert_eq!(now(leases.list()).unwrap(), BTreeSet::new());
}

#[test]
fn nothing_is_published_where_nothing_should_be() {
    let storage = Arc::new(MemoryStorage::new());
    for config in [config("127.0.0.1", lease(&storage)), config("10.0.0.1", EndpointReconciler::None)] {
        let registry = MemoryRegistry::default();
        now(reconcile(&registry, &config)).unwrap();
        now(withdraw(&registry, &config)).unwrap();
        assert!(registry.stored(&core("services"), NAMESPACE, NAME).is_some());
        assert!(registry.stored(&core("endpoints"), NAMESPACE, NAME).is_none());
    }
}
