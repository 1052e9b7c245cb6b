//! List-valued attributes of devices, behind the gate `DRAListTypeAttributes`.

use crate::gated_fields::GatedFields;
use pintle_feature_gates::Gate;
use pintle_machinery::{FieldPath, Map, Value, ValueExt};
use pintle_registry::EmptyFields;
use std::{borrow::Cow, collections::HashSet};

/// The fields of an attribute with a list of values.
pub(super) const LIST_ATTRIBUTES: [&str; 4] = ["bools", "ints", "strings", "versions"];

/// The same fields of all devices of a slice.
pub(super) const LIST_ATTRIBUTES_OF_DEVICES: GatedFields = GatedFields {
    gates: &[Gate::DRAListTypeAttributes],
    fields: &[
        "spec.devices[].attributes{}.bools",
        "spec.devices[].attributes{}.ints",
        "spec.devices[].attributes{}.strings",
        "spec.devices[].attributes{}.versions",
    ],
};

/// Whether a device has a list-valued attribute.
pub(super) fn has_list_attributes(slice: &Value) -> bool {
    LIST_ATTRIBUTES_OF_DEVICES.are_in(slice)
}

/// The paths of the empty lists that a body gives as values of attributes. Objects do not have them, but a list of values
/// must not be empty.
#[derive(Default)]
pub(super) struct EmptyLists(HashSet<String>);

impl EmptyLists {
    /// Those of a body. Disabled lists are dropped, whether they are empty or not.
    pub(super) fn of(fields: &EmptyFields, old: Option<&Value>) -> EmptyLists {
        if !LIST_ATTRIBUTES_OF_DEVICES.are_kept(old) {
            return EmptyLists::default();
        }
        EmptyLists(fields.select(shown))
    }

    /// The attribute as the body has it.
    pub(super) fn put_into<'a>(&self, attribute: &'a Value, path: &FieldPath) -> Cow<'a, Value> {
        if self.0.is_empty() {
            return Cow::Borrowed(attribute);
        }
        let mut given = Cow::Borrowed(attribute);
        for list in LIST_ATTRIBUTES {
            if self.0.contains(&path.child(list).to_string()) {
                // An attribute with nothing else is no object in the tree.
                if !given.is_object() {
                    given = Cow::Owned(Value::Object(Map::new()));
                }
                given.to_mut().set_default(list, Value::Array(Vec::new()));
            }
        }
        given
    }
}

/// The path of a list of an attribute, as messages about slices write it; `v1beta1` has a struct around attributes.
fn shown(path: &str) -> Option<String> {
    let (device, attribute) = path.split_once(".attributes.")?;
    let device = device.strip_suffix(".basic").unwrap_or(device);
    let (name, list) = attribute.rsplit_once('.')?;
    LIST_ATTRIBUTES.contains(&list).then(|| format!("{device}.attributes[{name}].{list}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn empty_lists_are_values_of_their_attributes() {
        let path = |path| shown(path).unwrap_or_default();
        assert_eq!(path("spec.devices[0].attributes.a.ints"), "spec.devices[0].attributes[a].ints");
        assert_eq!(
            path("spec.devices[0].basic.attributes.d.x/a.bools"),
            "spec.devices[0].attributes[d.x/a].bools"
        );
        assert_eq!(path("spec.devices[0].attributes.a.other"), "");
        assert_eq!(path("spec.devices[0].taints"), "");
        let lists = EmptyLists(HashSet::from(["a.attributes[b].ints".to_owned()]));
        let put = |attribute: Value, name| {
            lists.put_into(&attribute, &FieldPath::new("a").child("attributes").key(name)).into_owned()
        };
        assert_eq!(put(json!({"bool": true}), "b"), json!({"bool": true, "ints": []}));
        assert_eq!(put(Value::Null, "b"), json!({"ints": []}));
        assert_eq!(put(json!({"bool": true}), "c"), json!({"bool": true}));
    }
}
