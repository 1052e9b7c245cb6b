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
    /// The dotted path of the field.
    pub path: &'a str,
    /// The group and version of the object in the request.
    pub api_version: &'a str,
    /// Whether a version is served for the kind.
    pub is_served: &'a (dyn Fn(&str) -> bool + Sync),
}

impl std::fmt::Debug for Replicas<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replicas({} {})", self.api_version, self.path)
    }
}

impl Replicas<'_> {
    /// Gives a scale the entries of the object that own its replicas.
    pub fn entries_to_scale(&self, object: &Value, scale: &mut Value) {
        let replicas = FieldSet::of_fields(self.path.split('.'));
        let owners = Entry::trusted(entry::entries(object).to_vec());
        let owners = owners.into_iter().filter(|owner| {
            (self.is_served)(&owner.api_version) && !owner.fields.intersection(&replicas).is_empty()
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
        let replicas = FieldSet::of_fields(self.path.split('.'));
        let mut owners = Entry::trusted(entry::entries(scale).to_vec());
        let mut entries: Vec<Entry> = Vec::new();
        for mut own in Entry::trusted(entry::take(object).unwrap_or_default()) {
            if !(self.is_served)(&own.api_version) {
                continue;
            }
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
                    fields: replicas.clone(),
                    time,
                    ..owner
                };
                entries.push(entry);
            }
        }
        entry::put(object, entries);
    }
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of_fields(["spec", "replicas"].into_iter())
}
