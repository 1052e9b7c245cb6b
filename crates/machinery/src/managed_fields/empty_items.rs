//! Puts the empty lists and maps of a request's body back into the items of lists that are owned as a whole.
//!
//! Go compares such a list by its items, and an empty list or map in an item differs from an absent one, which every stored object has
//! instead: a body with `from: []` in a rule of a network policy takes over its rules. Outside of such lists an empty field that
//! encodings omit counts as absent.

use super::atom::{Atom, Shape};
use crate::{Map, Value, codec::EmptyField};
use pintle_schema::SchemaRef;

/// The object with the empty fields in items of lists that are owned as a whole; `None` when there are none.
pub(super) fn with_empty_items(
    object: &Value,
    schema: SchemaRef<'_>,
    empty_fields: &[EmptyField],
) -> Option<Value> {
    if !schema.is_declared() || !empty_fields.iter().any(|field| field.path.contains('[')) {
        return None;
    }
    let mut object = object.clone();
    let mut is_changed = false;
    for field in empty_fields {
        is_changed |= put(&mut object, schema, field).is_some();
    }
    is_changed.then_some(object)
}

/// Puts an empty field in its place, if this is in an item of a list that is owned as a whole.
fn put(object: &mut Value, schema: SchemaRef<'_>, field: &EmptyField) -> Option<()> {
    let (parents, name) = field.path.rsplit_once('.')?;
    if !parents.contains('[') {
        return None;
    }
    let (mut value, mut shape) = (object, Shape::of(schema));
    // Whether the value is owned with something around it, and whether that is a list.
    let (mut is_within, mut is_in_list) = (false, false);
    for step in parents.split('.') {
        let mut parts = step.split('[');
        let Atom::Map(members) = shape.atom(Some(value)) else { return None };
        is_within |= members.atomic;
        let member = parts.next()?;
        shape = members.member(member)?.0;
        let object = value.as_object_mut()?;
        // The tree lacks a struct with nothing but the field.
        if is_in_list && !object.contains_key(member) {
            object.insert(member, Value::Object(Map::new()));
        }
        value = object.get_mut(member)?;
        for index in parts {
            let Atom::List(items) = shape.atom(Some(value)) else { return None };
            is_within |= items.is_atomic();
            is_in_list |= is_within;
            shape = items.item();
            value = value.get_mut(index.strip_suffix(']')?.parse::<usize>().ok()?)?;
        }
    }
    let object = value.as_object_mut().filter(|object| is_in_list && !object.contains_key(name))?;
    object.insert(name, field.value.clone());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use pintle_schema::Schema;

    #[test]
    fn only_items_of_lists_that_are_owned_as_a_whole_get_their_empty_fields() {
        let schema = Schema::builtin().by_kind("", "v1", "Pod").unwrap();
        let pod = json!({"metadata": {"name": "a"}, "spec": {
            "containers": [{"name": "c", "envFrom": [{"prefix": "p"}]}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t"}]}}}});
        let found = |path: &str, value: Value| {
            let fields = [EmptyField { path: path.to_owned(), value }];
            with_empty_items(&pod, schema, &fields)
        };
        let terms = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution";
        let term = |pod: &Value| {
            pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
                .clone()
        };
        let marked = found(&format!("{terms}[0].namespaces"), json!([])).unwrap();
        assert_eq!(term(&marked), json!({"topologyKey": "t", "namespaces": []}));
        // A struct of which the tree has nothing is there again.
        let marked = found(&format!("{terms}[0].labelSelector.matchLabels"), json!({})).unwrap();
        assert_eq!(term(&marked), json!({"topologyKey": "t", "labelSelector": {"matchLabels": {}}}));
        for path in [
            "metadata.labels",
            "spec.containers[0].args",
            "spec.containers[0].resources.limits",
            "spec.a[0].b",
        ] {
            assert_eq!(found(path, json!([])), None, "{path}");
        }
        for path in [format!("{terms}[1].namespaces"), format!("{terms}[0].topologyKey"), terms.to_owned()] {
            assert_eq!(found(&path, json!([])), None, "{path}");
        }
    }
}
