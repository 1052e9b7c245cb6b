//! Computes the usage of persistent volume claims.

use crate::plugins::quantities::{Quantities, count};
use pintle_machinery::{Quantity, Value, ValueExt, meta::ObjectMeta};

const OBJECTS: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The legacy annotation with the class of a claim.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn counts(name: &str) -> bool {
    let of_class =
        || name.split_once(OF_CLASS).is_some_and(|(_, resource)| [CLAIMS, STORAGE].contains(&resource));
    [OBJECTS, CLAIMS, STORAGE].contains(&name) || of_class()
}

pub(super) fn usage(claim: &Value) -> Quantities {
    let class = claim.annotation(CLASS_ANNOTATION).unwrap_or_else(|| claim.str_at("spec.storageClassName"));
    let mut usage = Quantities::from([(OBJECTS.to_owned(), count(1))]);
    let mut charge = |resource: &str, quantity: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{OF_CLASS}{resource}"), quantity.clone());
        }
        usage.insert(resource.to_owned(), quantity);
    };
    charge(CLAIMS, count(1));
    if let Some(storage) = storage(claim) {
        charge(STORAGE, storage);
    }
    usage
}

/// The requested storage in whole bytes, or the allocated one if that is larger, after a failed expansion was reduced.
fn storage(claim: &Value) -> Option<Quantity> {
    let storage_at = |path: &str| {
        let mut quantity = Quantity::from_tree(claim.map_at(path).get("storage")?).ok()?;
        quantity.round_up(0);
        Some(quantity)
    };
    let requested = storage_at("spec.resources.requests")?;
    match storage_at("status.allocatedResources") {
        Some(allocated) if allocated > requested => Some(allocated),
        _ => Some(requested),
    }
}
