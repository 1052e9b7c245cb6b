//! Computes the usage of resource claims: the maximum number of devices of each class that a claim may be allocated, also
//! under the names of the extended resources of the class.

use super::{extended_resources::ExtendedResources, pod};
use crate::plugins::quantities::{Quantities, add, count, raise};
use pintle_machinery::{Value, ValueExt};

const OBJECTS: &str = "count/resourceclaims.resource.k8s.io";
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The maximum number of devices that one claim can be allocated.
const MAX_DEVICES: usize = 32;

pub(super) fn counts(name: &str, extended: Option<&ExtendedResources>) -> bool {
    let is_served = |extended: &ExtendedResources| {
        pod::extended_resource(name).is_some_and(|resource| extended.serve(resource))
    };
    name == OBJECTS || name.ends_with(OF_CLASS) || extended.is_some_and(is_served)
}

pub(super) fn usage(claim: &Value, extended: Option<&ExtendedResources>) -> Quantities {
    let mut devices = Quantities::new();
    for request in claim.items_at("spec.devices.requests") {
        let alternatives = request.items_at("firstAvailable");
        let mut worst = Quantities::new();
        match request.at("exactly") {
            Some(exactly) if alternatives.is_empty() => worst = devices_of(exactly),
            _ => alternatives.iter().for_each(|one| raise(&mut worst, &devices_of(one))),
        }
        add(&mut devices, &worst);
    }
    let mut usage = Quantities::from([(OBJECTS.to_owned(), count(1))]);
    if let Some(extended) = extended {
        usage.extend(extended_usage(claim, &devices, extended));
    }
    usage.extend(devices.into_iter().map(|(class, number)| (format!("{class}{OF_CLASS}"), number)));
    usage
}

/// The devices under the names of extended resources, without those that were charged with the pod.
fn extended_usage(claim: &Value, devices: &Quantities, extended: &ExtendedResources) -> Quantities {
    let with_pod = extended.charged_with_pod(claim);
    let mut usage = Quantities::new();
    for (class, number) in devices.iter().filter(|(class, _)| !class.is_empty()) {
        for resource in extended.of_class(class) {
            let name = format!("{}{resource}", pod::REQUESTS);
            let mut number = number.clone();
            if let Some(charged) = with_pod.and_then(|usage| usage.get(&name)) {
                number.sub(charged);
            }
            if number.sign() > 0 {
                usage.insert(name, number);
            }
        }
    }
    usage
}

/// The number of devices of a class.
fn devices_of(request: &Value) -> Quantities {
    let number = match request.str_at("allocationMode") {
        "ExactCount" => usize::try_from(request.i64_at("count").unwrap_or_default()).unwrap_or_default(),
        "All" => MAX_DEVICES,
        _ => 0,
    };
    Quantities::from([(request.str_at("deviceClassName").to_owned(), count(number))])
}
