//! How much of what an object uses.

use super::pods;
use super::scopes::Scope;
use crate::plugins::quantities::Quantities;
use crate::{AdmissionRequest, Operation};
use jiff::Timestamp;
use pintle_machinery::{Quantity, Value, ValueExt};

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const CLASS_INFIX: &str = ".storageclass.storage.k8s.io/";
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const DEVICES_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
/// As many devices as a claim for all of them can get.
const MAX_DEVICES: i64 = 32;

/// What counts objects of one resource. Every object counts as one under `count/RESOURCE.GROUP`; some have an older name
/// for that, some use more.
pub(super) struct Evaluator {
    kind: Kind,
    /// The resource by which all objects are counted.
    count: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pod,
    Service,
    Claim,
    DeviceClaim,
    /// With another name for the count, or "".
    Other(&'static str),
}

impl Evaluator {
    pub(super) fn of(request: &AdmissionRequest<'_>) -> Evaluator {
        let (group, resource) = (request.resource.group.as_str(), request.resource.resource.as_str());
        let kind = match (group, resource) {
            ("", "pods") => Kind::Pod,
            ("", "services") => Kind::Service,
            ("", CLAIMS) => Kind::Claim,
            ("resource.k8s.io", "resourceclaims") => Kind::DeviceClaim,
            ("", "configmaps") => Kind::Other("configmaps"),
            ("", "resourcequotas") => Kind::Other("resourcequotas"),
            ("", "replicationcontrollers") => Kind::Other("replicationcontrollers"),
            ("", "secrets") => Kind::Other("secrets"),
            _ => Kind::Other(""),
        };
        let count = match group {
            "" => format!("count/{resource}"),
            _ => format!("count/{resource}.{group}"),
        };
        Evaluator { kind, count }
    }

    /// Whether the request can change what is used.
    pub(super) fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        let creates = request.operation == Operation::Create;
        match (self.kind, request.subresource) {
            (Kind::Pod, "") => {
                let terminates = request.old_object.map(pods::is_terminating);
                creates || terminates.is_some_and(|old| old != pods::is_terminating(&request.object))
            }
            (Kind::Pod, "resize") => !creates,
            (Kind::Service | Kind::Claim | Kind::DeviceClaim, "") => true,
            (Kind::Claim, "status") => {
                let old = request.old_object.unwrap_or(&Value::Null);
                let allocated =
                    |claim: &Value| claim.map_at("status.allocatedResources").get("storage").cloned();
                allocated(old) != allocated(&request.object)
                    || performance_classes(old) != performance_classes(&request.object)
            }
            (Kind::Other(_), "") => creates,
            _ => false,
        }
    }

    /// Whether a resource of a quota is one that these objects use.
    pub(super) fn counts(&self, name: &str) -> bool {
        if name == self.count {
            return true;
        }
        match self.kind {
            Kind::Pod => pods::counts(name),
            Kind::Service => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
            Kind::Claim => {
                let name = name.split_once(CLASS_INFIX).map_or(name, |(_, name)| name);
                matches!(name, CLAIMS | STORAGE)
            }
            Kind::DeviceClaim => name.ends_with(DEVICES_SUFFIX),
            Kind::Other(alias) => name == alias,
        }
    }

    /// Whether an object is one of those that a quota is about.
    pub(super) fn is_in_scope(&self, scope: &Scope<'_>, object: &Value) -> bool {
        match self.kind {
            Kind::Pod => pods::is_in_scope(scope, object),
            Kind::Claim => {
                scope.name == "VolumeAttributesClass" && scope.selects(&performance_classes(object))
            }
            _ => false,
        }
    }

    /// What an object has to say when these resources are limited.
    pub(super) fn check_constraints(&self, limited: &[&str], object: &Value) -> Result<(), String> {
        match self.kind {
            Kind::Pod => pods::check_constraints(limited, object),
            _ => Ok(()),
        }
    }

    /// What an object uses.
    pub(super) fn usage(&self, object: &Value, now: Timestamp) -> Quantities {
        let mut usage = Quantities::from([(self.count.clone(), number(1))]);
        match self.kind {
            Kind::Pod => pods::add_usage(&mut usage, object, now),
            Kind::Service => add_service(&mut usage, object),
            Kind::Claim => add_claim(&mut usage, object),
            Kind::DeviceClaim => add_devices(&mut usage, object),
            Kind::Other("") => {}
            Kind::Other(alias) => drop(usage.insert(alias.to_owned(), number(1))),
        }
        usage
    }
}

/// A count.
pub(super) fn number(value: i64) -> Quantity {
    Quantity::from_tree(&Value::from(value)).unwrap_or_default()
}

fn add_service(usage: &mut Quantities, service: &Value) {
    let ports = service.items_at("spec.ports");
    let is_balanced = service.str_at("spec.type") == "LoadBalancer";
    let allocates = service.at("spec.allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    let node_ports = match service.str_at("spec.type") {
        "NodePort" => ports.len(),
        "LoadBalancer" if allocates => ports.len(),
        "LoadBalancer" => {
            ports.iter().filter(|port| port.i64_at("nodePort").unwrap_or_default() != 0).count()
        }
        _ => 0,
    };
    usage.insert("services".to_owned(), number(1));
    usage.insert("services.nodeports".to_owned(), number(i64::try_from(node_ports).unwrap_or(i64::MAX)));
    usage.insert("services.loadbalancers".to_owned(), number(is_balanced.into()));
}

fn add_claim(usage: &mut Quantities, claim: &Value) {
    let class = match claim.map_at("metadata.annotations").get(CLASS_ANNOTATION).and_then(Value::as_str) {
        Some(class) => class,
        None => claim.str_at("spec.storageClassName"),
    };
    let mut count = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{CLASS_INFIX}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    };
    count(CLAIMS, number(1));
    let storage = |list: &str| {
        let mut amount = Quantity::from_tree(claim.map_at(list).get("storage")?).ok()?;
        amount.round_up(0);
        Some(amount)
    };
    // Growing a volume may have taken more than is asked for by now.
    if let Some(requested) = storage("spec.resources.requests") {
        let allocated = storage("status.allocatedResources").filter(|allocated| *allocated > requested);
        count(STORAGE, allocated.unwrap_or(requested));
    }
}

/// The performance that a claim has, wants, or is on the way to.
fn performance_classes(claim: &Value) -> Vec<&str> {
    const PATHS: [&str; 3] = [
        "spec.volumeAttributesClassName",
        "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
    ];
    let mut classes: Vec<&str> = PATHS.iter().map(|path| claim.str_at(path)).collect();
    classes.retain(|class| !class.is_empty());
    classes.sort_unstable();
    classes.dedup();
    classes
}

fn add_devices(usage: &mut Quantities, claim: &Value) {
    let devices = |request: &Value| match request.str_at("allocationMode") {
        "ExactCount" => number(request.i64_at("count").unwrap_or_default()),
        "All" => number(MAX_DEVICES),
        _ => number(0),
    };
    let class = |request: &Value| format!("{}{DEVICES_SUFFIX}", request.str_at("deviceClassName"));
    for request in claim.items_at("spec.devices.requests") {
        // Of alternatives, the worst of each class counts.
        let mut wanted = Quantities::new();
        for alternative in request.items_at("firstAvailable").iter().chain(request.at("exactly")) {
            let (class, devices) = (class(alternative), devices(alternative));
            if wanted.get(&class).is_none_or(|known| devices > *known) {
                wanted.insert(class, devices);
            }
        }
        crate::plugins::quantities::add(usage, &wanted);
    }
}
