//! Computes the usage of resource claims: the maximum number of devices of each class that a claim may be allocated.
//! Devices requested as an extended resource are counted with the requesting pod.

use crate::plugins::quantities::{Quantities, add, count, raise};
use pintle_machinery::{Value, ValueExt};

const OBJECTS: &str = "count/resourceclaims.resource.k8s.io";
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The maximum number of devices that one claim can be allocated.
const MAX_DEVICES: usize = 32;

pub(super) fn counts(name: &str) -> bool {
    name == OBJECTS || name.ends_with(OF_CLASS)
}

pub(super) fn usage(claim: &Value) -> Quantities {
    let mut usage = Quantities::from([(OBJECTS.to_owned(), count(1))]);
    for request in claim.items_at("spec.devices.requests") {
        let alternatives = request.items_at("firstAvailable");
        let mut worst = Quantities::new();
        match request.at("exactly") {
            Some(exactly) if alternatives.is_empty() => worst = devices(exactly),
            _ => alternatives.iter().for_each(|one| raise(&mut worst, &devices(one))),
        }
        add(&mut usage, &worst);
    }
    usage
}

fn devices(request: &Value) -> Quantities {
    let number = match request.str_at("allocationMode") {
        "ExactCount" => usize::try_from(request.i64_at("count").unwrap_or_default()).unwrap_or_default(),
        "All" => MAX_DEVICES,
        _ => 0,
    };
    Quantities::from([(format!("{}{OF_CLASS}", request.str_at("deviceClassName")), count(number))])
}
