//! Table cells and validation that persistent volumes and claims share.

use crate::printing::plain;
use crate::resource_list::quantity;
use pintle_machinery::{FieldError, FieldPath, Value, ValueExt};
use pintle_registry::Cell;

/// The detail of an error about the class of a volume or claim, while its gate is closed.
pub(super) const CLASS_IS_CLOSED: &str =
    "update is forbidden when the VolumeAttributesClass feature gate is disabled";
/// The annotation that preceded the storage class field.
pub(super) const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Rejects negative quantities.
pub(super) fn validate_amount(value: &Value, path: &FieldPath) -> Option<FieldError> {
    let amount = quantity(value).value();
    (amount < 0).then(|| FieldError::invalid(path, amount, "must be a valid resource quantity"))
}

/// The quantity of storage in the resource list at a path; "0" when there is none.
pub(super) fn storage_of(object: &Value, path: &str) -> String {
    object.map_at(path).get("storage").map_or_else(|| "0".to_owned(), plain)
}

/// The abbreviated access modes at a path, in a fixed order.
pub(super) fn access_modes(object: &Value, path: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = object.items_at(path);
    let has = |mode: &str| modes.iter().any(|item| item.as_str() == Some(mode));
    let short: Vec<&str> = SHORT.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect();
    short.join(",")
}

/// `status.phase`, or `Terminating` for an object with a deletion timestamp.
pub(super) fn phase(object: &Value) -> Cell {
    match object.at("metadata.deletionTimestamp") {
        Some(_) => "Terminating".into(),
        None => object.str_at("status.phase").into(),
    }
}

/// The storage class; the annotation takes precedence over the field.
pub(super) fn storage_class(object: &Value) -> Cell {
    let annotations = object.map_at("metadata.annotations");
    let class = annotations.get(STORAGE_CLASS_ANNOTATION).and_then(Value::as_str);
    class.unwrap_or_else(|| object.str_at("spec.storageClassName")).into()
}
