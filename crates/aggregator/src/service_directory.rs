//! The services of the cluster and their endpoints, and the resolution of services to addresses.
//!
//! The directory follows the watch caches of Service and EndpointSlice objects. It keeps of each service what resolution needs,
//! and decodes the slices of those services only that are resolved: the slices of all services change far more often.
//! One directory serves API services, admission webhooks and conversion webhooks.

use parking_lot::Mutex;
use pintle_cacher::{CachedObject, Cacher};
use pintle_controller::{Delta, Deltas, Informer};
use pintle_dialer::ServiceResolver;
use pintle_machinery::{Value, ValueExt, codec::json};
use pintle_registry::BoxFuture;
use rand::{Rng, seq::SliceRandom};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};
use tokio::sync::watch;

/// How a service is reached, as `--enable-aggregator-routing` states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// At its cluster IP, or at its external name.
    ClusterIp,
    /// At one of its ready endpoints.
    Endpoints,
}

/// The services of the cluster and their endpoints.
pub struct ServiceDirectory {
    routing: Routing,
    /// The address of this server, which serves `default/kubernetes` itself.
    own_address: OnceLock<String>,
    services: Mutex<Services>,
    synced: watch::Sender<Synced>,
    listener: OnceLock<Listener>,
}

/// Called with the namespace and the name of a service that has changed, or whose endpoints have.
type Listener = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Namespace and name.
type Key = (String, String);

#[derive(Default)]
struct Services {
    services: HashMap<Key, Arc<ServiceFacts>>,
    /// The slices of each service, by slice name.
    slices: HashMap<Key, BTreeMap<String, Arc<Slice>>>,
    /// The service of each slice.
    service_of: HashMap<Key, String>,
}

/// Whether the initial lists are complete.
#[derive(Debug, Default, Clone, Copy)]
struct Synced {
    services: bool,
    slices: bool,
}

/// The facts of a service that resolution needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServiceFacts {
    /// `spec.type`.
    pub(crate) service_type: String,
    cluster_ip: String,
    external_name: String,
    /// The first of `spec.ipFamilies`.
    family: String,
    /// Number and name of each port.
    ports: Vec<(u16, String)>,
}

impl ServiceFacts {
    fn of(service: &Value) -> ServiceFacts {
        let ports = service.items_at("spec.ports").iter();
        ServiceFacts {
            service_type: service.str_at("spec.type").to_owned(),
            cluster_ip: service.str_at("spec.clusterIP").to_owned(),
            external_name: service.str_at("spec.externalName").to_owned(),
            family: service
                .items_at("spec.ipFamilies")
                .first()
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            ports: ports.filter_map(|port| Some((number(port)?, port.str_at("name").to_owned()))).collect(),
        }
    }

    /// The name of a port, which may be empty.
    pub(crate) fn port_name(&self, port: u16) -> Option<&str> {
        self.ports.iter().find(|(number, _)| *number == port).map(|(_, name)| name.as_str())
    }
}

/// An EndpointSlice, decoded on first use.
struct Slice {
    object: Arc<CachedObject>,
    facts: OnceLock<SliceFacts>,
}

impl Slice {
    fn new(object: &Arc<CachedObject>) -> Slice {
        Slice { object: object.clone(), facts: OnceLock::new() }
    }

    fn facts(&self) -> &SliceFacts {
        self.facts.get_or_init(|| {
            json::decode_any(&self.object.json()).map(|slice| SliceFacts::of(&slice)).unwrap_or_default()
        })
    }
}

/// The facts of an EndpointSlice that resolution needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct SliceFacts {
    address_type: String,
    /// Name and number of each port that has both.
    ports: Vec<(String, u16)>,
    /// The first address of each ready endpoint, one per line: a service may have very many.
    addresses: Box<str>,
    ready: usize,
}

impl SliceFacts {
    fn of(slice: &Value) -> SliceFacts {
        let is_ready =
            |endpoint: &&Value| endpoint.at("conditions.ready").and_then(Value::as_bool).unwrap_or(true);
        let address =
            |endpoint: &Value| endpoint.items_at("addresses").first()?.as_str().map(ToOwned::to_owned);
        let endpoints = slice.items_at("endpoints").iter().filter(is_ready);
        let addresses: Vec<String> = endpoints.filter_map(address).collect();
        let ports = slice.items_at("ports").iter();
        SliceFacts {
            address_type: slice.str_at("addressType").to_owned(),
            ports: ports
                .filter_map(|port| Some((port.at("name")?.as_str()?.to_owned(), number(port)?)))
                .collect(),
            ready: addresses.len(),
            addresses: addresses.join("\n").into(),
        }
    }

    fn port(&self, name: &str) -> Option<u16> {
        self.ports.iter().find(|(own, _)| own == name).map(|(_, number)| *number)
    }
}

fn number(port: &Value) -> Option<u16> {
    u16::try_from(port.i64_at("port")?).ok()
}

/// The label of an EndpointSlice that names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl fmt::Debug for ServiceDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceDirectory").field("routing", &self.routing).finish_non_exhaustive()
    }
}

impl ServiceDirectory {
    /// An empty directory, whose resolutions wait until [`ServiceDirectory::run`] has filled it.
    pub fn new(routing: Routing) -> ServiceDirectory {
        ServiceDirectory {
            routing,
            own_address: OnceLock::new(),
            services: Mutex::default(),
            synced: watch::Sender::new(Synced::default()),
            listener: OnceLock::new(),
        }
    }

    /// Sets the address `host:port` at which this server reaches itself, for port 443 of the service
    /// `default/kubernetes`. Only the first call has an effect.
    pub fn set_own_address(&self, address: String) {
        let _ = self.own_address.set(address);
    }

    /// Sets the function that is called for each service that has changed, or whose endpoints have. Only the first call
    /// has an effect.
    pub(crate) fn set_listener(&self, listener: impl Fn(&str, &str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Follows the watch caches of services and of their slices until `stopping` becomes true. Of a resource that is
    /// disabled there are no objects.
    pub async fn run(
        &self,
        services: Option<&Arc<Cacher>>,
        slices: Option<&Arc<Cacher>>,
        stopping: watch::Receiver<bool>,
    ) {
        self.synced.send_modify(|synced| {
            synced.services |= services.is_none();
            synced.slices |= slices.is_none();
        });
        let following_services = async {
            let Some(services) = services else { return };
            let informer = Informer::new(services);
            let follow = |deltas: Deltas<'_>| {
                deltas.for_each(|delta| self.follow_service(&delta));
            };
            informer.run(stopping.clone(), follow).await;
        };
        let following_slices = async {
            let Some(slices) = slices else { return };
            let informer = Informer::new(slices);
            let follow = |deltas: Deltas<'_>| {
                deltas.for_each(|delta| self.follow_slice(&delta));
            };
            informer.run(stopping.clone(), follow).await;
        };
        tokio::join!(following_services, following_slices);
    }

    /// Waits until the directory has all services and endpoints that existed at its start.
    pub async fn wait_synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives as long as the directory.
        drop(synced.wait_for(|synced| synced.services && synced.slices).await);
    }

    /// A service.
    pub(crate) fn service(&self, namespace: &str, name: &str) -> Option<Arc<ServiceFacts>> {
        self.services.lock().services.get(&key(namespace, name)).cloned()
    }

    /// Whether a service has slices, and whether one of them has the port of this name and a ready endpoint.
    pub(crate) fn endpoints(&self, namespace: &str, name: &str, port: &str) -> Endpoints {
        let slices = self.slices(&key(namespace, name));
        let is_ready = |slice: &Arc<Slice>| slice.facts().ready > 0 && slice.facts().port(port).is_some();
        match slices.iter().any(is_ready) {
            _ if slices.is_empty() => Endpoints::NoSlices,
            true => Endpoints::Ready,
            false => Endpoints::NoneReady,
        }
    }

    /// The slices of a service, which are decoded without the lock.
    fn slices(&self, service: &Key) -> Vec<Arc<Slice>> {
        let services = self.services.lock();
        services.slices.get(service).map(|slices| slices.values().cloned().collect()).unwrap_or_default()
    }

    fn follow_service(&self, delta: &Delta<'_>) {
        match delta {
            Delta::Set(object) => {
                let Ok(service) = json::decode_any(&object.json()) else { return };
                let facts = Arc::new(ServiceFacts::of(&service));
                self.services.lock().services.insert(key_of(object), facts);
                self.changed(object.namespace(), object.name());
            }
            Delta::Removed(object) => {
                self.services.lock().services.remove(&key_of(object));
                self.changed(object.namespace(), object.name());
            }
            Delta::Listed(names) => {
                let mut gone = Vec::new();
                self.services.lock().services.retain(|(namespace, name), _| {
                    let stays = names.contains(namespace, name);
                    if !stays {
                        gone.push((namespace.clone(), name.clone()));
                    }
                    stays
                });
                self.synced.send_modify(|synced| synced.services = true);
                gone.iter().for_each(|(namespace, name)| self.changed(namespace, name));
            }
        }
    }

    fn follow_slice(&self, delta: &Delta<'_>) {
        match delta {
            Delta::Set(object) => {
                let service = object.labels().get(SERVICE_NAME).unwrap_or_default();
                let before = self.services.lock().set_slice(object, service);
                if let Some(before) = before.filter(|before| before != service) {
                    self.changed(object.namespace(), &before);
                }
                if !service.is_empty() {
                    self.changed(object.namespace(), service);
                }
            }
            Delta::Removed(object) => {
                let service = self.services.lock().remove_slice(&key_of(object));
                if let Some(service) = service {
                    self.changed(object.namespace(), &service);
                }
            }
            Delta::Listed(names) => {
                let mut services = self.services.lock();
                let known = services.service_of.keys();
                let gone: Vec<Key> =
                    known.filter(|(namespace, name)| !names.contains(namespace, name)).cloned().collect();
                let changed: Vec<Key> = gone
                    .iter()
                    .filter_map(|key| Some((key.0.clone(), services.remove_slice(key)?)))
                    .collect();
                drop(services);
                self.synced.send_modify(|synced| synced.slices = true);
                changed.iter().for_each(|(namespace, name)| self.changed(namespace, name));
            }
        }
    }

    fn changed(&self, namespace: &str, name: &str) {
        if let Some(listener) = self.listener.get() {
            listener(namespace, name);
        }
    }

    fn address(&self, namespace: &str, name: &str, port: u16) -> Result<String, String> {
        let Some(service) = self.service(namespace, name) else {
            return Err(format!("service \"{name}\" not found"));
        };
        let service_type = service.service_type.as_str();
        let no_port = || format!("no service port {port} found for service \"{name}\"");
        match (self.routing, service_type) {
            (Routing::ClusterIp, "ExternalName") => Ok(join(&service.external_name, port)),
            (Routing::ClusterIp, "ClusterIP") if service.cluster_ip == "None" => {
                Err("cannot route to service with ClusterIP \"None\"".to_owned())
            }
            (_, "ClusterIP" | "NodePort" | "LoadBalancer") => {
                let port_name = service.port_name(port).ok_or_else(no_port)?;
                match self.routing {
                    Routing::ClusterIp => Ok(join(&service.cluster_ip, port)),
                    Routing::Endpoints => {
                        let slices = self.slices(&key(namespace, name));
                        endpoint(slices, &service.family, port_name)
                            .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
                    }
                }
            }
            _ => Err(format!("unsupported service type \"{service_type}\"")),
        }
    }
}

/// The endpoints of a service, as far as they matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoints {
    NoSlices,
    NoneReady,
    Ready,
}

impl Services {
    /// Sets a slice, and returns the name of the service that it belonged to before.
    fn set_slice(&mut self, object: &Arc<CachedObject>, service: &str) -> Option<String> {
        let slice = key_of(object);
        let before = self.remove_slice(&slice);
        if !service.is_empty() {
            let slices = self.slices.entry(key(&slice.0, service)).or_default();
            slices.insert(slice.1.clone(), Arc::new(Slice::new(object)));
            self.service_of.insert(slice, service.to_owned());
        }
        before
    }

    /// Removes a slice, and returns the name of the service that it belonged to.
    fn remove_slice(&mut self, slice: &Key) -> Option<String> {
        let service = self.service_of.remove(slice)?;
        let service_key = key(&slice.0, &service);
        if let Some(slices) = self.slices.get_mut(&service_key) {
            slices.remove(&slice.1);
            if slices.is_empty() {
                self.slices.remove(&service_key);
            }
        }
        Some(service)
    }
}

/// The address of a random ready endpoint of the slices, those of the address family first.
fn endpoint(mut slices: Vec<Arc<Slice>>, family: &str, port: &str) -> Option<String> {
    slices.shuffle(&mut rand::rng());
    let of_family = |wanted: bool| {
        let slices = slices.iter().map(|slice| slice.facts());
        let mut ready = slices.filter(|slice| slice.ready > 0 && (slice.address_type == family) == wanted);
        ready.find_map(|slice| {
            let port = slice.port(port)?;
            let address = slice.addresses.lines().nth(rand::rng().random_range(0..slice.ready))?;
            Some(join(address, port))
        })
    };
    of_family(true).or_else(|| of_family(false))
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}

fn key_of(object: &CachedObject) -> Key {
    key(object.namespace(), object.name())
}

fn join(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

impl ServiceResolver for ServiceDirectory {
    fn resolve<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            if (namespace, name, port) == ("default", "kubernetes", 443)
                && let Some(address) = self.own_address.get()
            {
                return Ok(address.clone());
            }
            self.wait_synced().await;
            self.address(namespace, name, port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_cacher::DecodedObject;
    use pintle_machinery::json;
    use pintle_storage::{Key as StorageKey, Revision};

    fn cached(json: String) -> Arc<CachedObject> {
        let decoded = DecodedObject {
            json: json.into(),
            packed: None,
            namespace: "n".into(),
            name: "s".into(),
            selectable: Arc::default(),
        };
        Arc::new(CachedObject::new(StorageKey::new("/n/s"), Revision(1), decoded))
    }

    fn directory(routing: Routing, spec: Value, slices: &[Value]) -> ServiceDirectory {
        let directory = ServiceDirectory::new(routing);
        {
            let mut services = directory.services.lock();
            let facts = ServiceFacts::of(&json!({"spec": spec}));
            services.services.insert(key("n", "s"), Arc::new(facts));
            for (index, slice) in slices.iter().enumerate() {
                let slices = services.slices.entry(key("n", "s")).or_default();
                let object = cached(slice.to_string());
                slices.insert(index.to_string(), Arc::new(Slice::new(&object)));
            }
        }
        directory
    }

    fn slice(family: &str, endpoints: Value) -> Value {
        json!({"addressType": family, "ports": [{"name": "web", "port": 8443}], "endpoints": endpoints})
    }

    #[test]
    fn services_are_reached_at_the_cluster_ip_by_their_type() {
        let check = |spec: Value, expected: Result<&str, &str>| {
            let found = directory(Routing::ClusterIp, spec.clone(), &[]).address("n", "s", 443);
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
        check(json!({"type": "Other"}), Err("unsupported service type \"Other\""));
        let none = ServiceDirectory::new(Routing::ClusterIp).address("n", "s", 443);
        assert_eq!(none, Err("service \"s\" not found".to_owned()));
    }

    #[test]
    fn services_are_reached_at_a_ready_endpoint_of_the_first_family() {
        let spec = json!({"type": "ClusterIP", "clusterIP": "None", "ipFamilies": ["IPv6", "IPv4"],
            "ports": [{"port": 443, "name": "web"}]});
        let check = |spec: &Value, slices: &[Value], expected: Result<&str, &str>| {
            let found = directory(Routing::Endpoints, spec.clone(), slices).address("n", "s", 443);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{spec}");
        };
        let none = Err("no endpoints available for service \"s\"");
        let four = slice("IPv4", json!([{"addresses": ["10.0.0.1"]}]));
        let six = slice("IPv6", json!([{"addresses": ["fd00::1"], "conditions": {"ready": true}}]));
        let unready = slice("IPv6", json!([{"addresses": ["fd00::2"], "conditions": {"ready": false}}]));
        check(&spec, &[], none);
        check(&spec, std::slice::from_ref(&unready), none);
        check(&spec, &[four.clone(), six], Ok("[fd00::1]:8443"));
        check(&spec, &[four, unready], Ok("10.0.0.1:8443"));
        let other = json!({"type": "ClusterIP", "ports": [{"port": 443, "name": "other"}]});
        check(&other, &[slice("IPv4", json!([{"addresses": ["10.0.0.1"]}]))], none);
        let external = json!({"type": "ExternalName", "externalName": "e"});
        check(&external, &[], Err("unsupported service type \"ExternalName\""));
    }

    #[tokio::test]
    async fn the_server_reaches_itself_at_its_own_address() {
        let directory = ServiceDirectory::new(Routing::ClusterIp);
        directory.set_own_address("127.0.0.1:6443".to_owned());
        let found = directory.resolve("default", "kubernetes", 443).await;
        assert_eq!(found, Ok("127.0.0.1:6443".to_owned()));
    }
}
