//! List-valued attributes of devices, an unsupported feature.

use pintle_machinery::{Value, ValueExt};

/// The fields of an attribute with a list of values.
pub(super) const LIST_ATTRIBUTES: [&str; 4] = ["bools", "ints", "strings", "versions"];

/// Whether a device has a list-valued attribute.
pub(super) fn has_list_attributes(slice: &Value) -> bool {
    let devices = slice.items_at("spec.devices").iter();
    let mut attributes = devices.flat_map(|device| device.map_at("attributes").values());
    attributes.any(|attribute| LIST_ATTRIBUTES.into_iter().any(|list| attribute.at(list).is_some()))
}
