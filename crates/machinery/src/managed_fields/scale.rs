//! Ownership of the replicas of an object that is written through its `scale` subresource.

use super::{
    Entry, FieldManager, FieldSet, Operation,
    conflict::{Conflict, conflict_status},
    entry,
};
use crate::{Status, Value};

impl FieldManager<'_> {
    /// Gives the field at a dotted path to the writer, after a write through `scale` changed its value. A scale to zero has
    /// no replicas (`is_set` is false), and so nobody owns them.
    pub fn update_scale(&self, object: &mut Value, replicas: &str, is_set: bool) {
        let mut entries = Entry::trusted(entry::take(object).unwrap_or_default());
        match is_set {
            _ if entries.is_empty() => {}
            true => self.steal(&mut entries, Operation::Update, replicas),
            false => disown(&mut entries, &FieldSet::of_fields(replicas.split('.'))),
        }
        entry::put(object, entries);
    }

    /// As [`FieldManager::update_scale`] for an apply; `changed` says whether the value is another one.
    ///
    /// # Errors
    /// 409 when others own the field with another value and `force` is not set.
    pub fn apply_scale(
        &self,
        object: &mut Value,
        replicas: &str,
        changed: bool,
        force: bool,
    ) -> Result<(), Status> {
        let mut entries = Entry::trusted(entry::take(object).unwrap_or_default());
        let fields = FieldSet::of_fields(replicas.split('.'));
        let own = self.entry(Operation::Apply, None, FieldSet::new());
        if changed && !force {
            let scale = FieldSet::of_fields(["spec", "replicas"].into_iter());
            let conflicts: Vec<Conflict<'_>> = entries
                .iter()
                .filter(|entry| !entry.is_of(&own) && !entry.fields.intersection(&fields).is_empty())
                .map(|entry| Conflict { entry, fields: scale.clone() })
                .collect();
            if !conflicts.is_empty() {
                return Err(conflict_status(conflicts));
            }
        }
        match changed {
            true => self.steal(&mut entries, Operation::Apply, replicas),
            false => match entries.iter_mut().find(|entry| entry.is_of(&own)) {
                Some(entry) => entry.fields.union(&fields),
                None => entries.push(Entry { fields, ..own }),
            },
        }
        entry::put(object, entries);
        Ok(())
    }

    fn steal(&self, entries: &mut Vec<Entry>, operation: Operation, replicas: &str) {
        let fields = FieldSet::of_fields(replicas.split('.'));
        disown(entries, &fields);
        // The entry of a scale has no time.
        let own = self.entry(operation, None, FieldSet::new());
        match entries.iter_mut().find(|entry| entry.is_of(&own)) {
            Some(entry) => entry.fields.union(&fields),
            None => entries.push(Entry { fields, ..own }),
        }
    }
}

fn disown(entries: &mut Vec<Entry>, fields: &FieldSet) {
    entries.iter_mut().for_each(|entry| entry.fields.difference(fields));
    entries.retain(|entry| !entry.fields.is_empty());
}
