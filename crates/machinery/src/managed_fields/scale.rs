//! Tracks ownership of the replicas of an object that is written through its `scale` subresource.
//!
//! During the write, the scale has entries of its own: the object's entries that own its replicas, with the path
//! `spec.replicas` of the scale. The resulting entries are then written back to the object.

use super::{Entry, FieldSet, entry};
use crate::Value;

/// The group and version of scales.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The replicas field of a kind.
#[derive(Clone, Copy)]
pub struct Replicas<'a> {
    /// The dotted path of the field in the version of the request.
    pub path: &'a str,
    /// The group and version of the object in the request.
    pub api_version: &'a str,
    /// The dotted path in a version, which may have none. `None` for a version that the kind does not have.
    pub path_in: &'a (dyn Fn(&str) -> Option<Option<&'a str>> + Sync),
}

impl std::fmt::Debug for Replicas<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replicas({} {})", self.api_version, self.path)
    }
}

impl Replicas<'_> {
    /// Gives a scale the entries of the object that own its replicas.
    pub fn entries_to_scale(&self, object: &Value, scale: &mut Value) {
        let owners = Entry::trusted(entry::entries(object).to_vec());
        let owners = owners.into_iter().filter(|owner| {
            let path = (self.path_in)(&owner.api_version).flatten();
            path.is_some_and(|path| !owner.fields.intersection(&field(path)).is_empty())
        });
        let entries = owners
            .map(|owner| Entry {
                api_version: SCALE_VERSION.to_owned(),
                fields: replicas_of_scale(),
                ..owner
            })
            .collect();
        entry::put(scale, entries);
    }

    /// Writes the entries of a scale back to its object. A new owner of the replicas gets no time.
    pub fn entries_to_object(&self, scale: &Value, object: &mut Value) {
        let mut owners = Entry::trusted(entry::entries(scale).to_vec());
        let mut entries: Vec<Entry> = Vec::new();
        for mut own in Entry::trusted(entry::take(object).unwrap_or_default()) {
            let Some(path) = (self.path_in)(&own.api_version) else { continue };
            let replicas = path.map(field).unwrap_or_default();
            if !own.fields.intersection(&replicas).is_empty() {
                match owners.iter().position(|owner| owner.is_of(&own)) {
                    Some(at) => drop(owners.remove(at)),
                    None => own.fields.difference(&replicas),
                }
            }
            if !own.fields.is_empty() {
                entries.push(own);
            }
        }
        let wanted = replicas_of_scale();
        for owner in owners {
            if !owner.fields.intersection(&wanted).is_empty() {
                let time = entries.iter().find(|own| own.is_of(&owner)).and_then(|own| own.time.clone());
                let entry = Entry {
                    api_version: self.api_version.to_owned(),
                    fields: field(self.path),
                    time,
                    ..owner
                };
                entries.push(entry);
            }
        }
        entry::put(object, entries);
    }
}

/// The set of the field at a dotted path.
fn field(path: &str) -> FieldSet {
    FieldSet::of_fields(path.split('.'))
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of_fields(["spec", "replicas"].into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ValueExt, json};

    #[test]
    fn each_version_has_its_own_path() {
        let owner = |manager: &str, version: &str, fields: &str| json!({"manager": manager, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields});
        let (a, b) = (r#"{"f:spec":{"f:a":{}}}"#, r#"{"f:spec":{"f:b":{}}}"#);
        let mut object = json!({"metadata": {"managedFields": [
            owner("one", "g/v1", a), owner("two", "g/v1", b), owner("three", "g/v2", b),
            owner("four", "g/v3", a), owner("five", "g/v4", a),
        ]}});
        let path_in = |version: &str| match version {
            "g/v1" => Some(Some("spec.a")),
            "g/v2" => Some(Some("spec.b")),
            "g/v3" => Some(None),
            _ => None,
        };
        let replicas = Replicas { path: "spec.b", api_version: "g/v2", path_in: &path_in };
        let mut scale = json!({"metadata": {}});
        replicas.entries_to_scale(&object, &mut scale);
        let managers = |object: &Value| -> Vec<(String, String)> {
            let entries = object.items_at("metadata.managedFields").iter();
            let entry =
                |entry: &Value| (entry.str_at("manager").to_owned(), entry.str_at("fieldsV1").to_owned());
            entries.map(entry).collect()
        };
        let of_scale = r#"{"f:spec":{"f:replicas":{}}}"#;
        let owned = |owners: &[(&str, &str)]| -> Vec<(String, String)> {
            owners.iter().map(|(manager, fields)| ((*manager).to_owned(), (*fields).to_owned())).collect()
        };
        assert_eq!(managers(&scale), owned(&[("one", of_scale), ("three", of_scale)]));
        scale.set("metadata.managedFields", json!([owner("six", SCALE_VERSION, of_scale)]));
        replicas.entries_to_object(&scale, &mut object);
        let mut left = managers(&object);
        left.sort();
        assert_eq!(left, owned(&[("four", a), ("six", b), ("two", b)]));
    }
}
