//! Merging an applied configuration into an object, and taking fields out of it.

use super::{
    atom::{Atom, item_element},
    field_set::{children, is_member, make_member},
};
use crate::{Map, Value};
use pintle_schema::SchemaRef;
use std::collections::{HashMap, HashSet};

/// Puts what `config` sets into `live`. Atomic values are replaced; items of lists with keys are merged one by one and
/// come in the order of the configuration, those it does not name keep their place.
pub fn merge(live: &mut Value, config: &Value, schema: SchemaRef<'_>) {
    let atom = Atom::of(schema);
    match (atom, live, config) {
        (Atom::Struct(_) | Atom::Map(_), Value::Object(live), Value::Object(config)) => {
            for (name, value) in config {
                match (live.get_mut(name), atom.member(name)) {
                    (Some(own), Some((schema, _))) if !own.is_null() => merge(own, value, schema),
                    (_, _) => drop(live.insert(name.clone(), value.clone())),
                }
            }
        }
        (Atom::Set | Atom::List(_), Value::Array(live), Value::Array(config)) => {
            *live = merge_items(std::mem::take(live), config, atom);
        }
        // Neither null nor nothing takes away what others may own.
        (Atom::Struct(_) | Atom::Map(_) | Atom::Set | Atom::List(_), live, Value::Null)
            if has_parts(live) => {}
        (_, live, config) => *live = config.clone(),
    }
}

fn has_parts(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn merge_items(live: Vec<Value>, config: &[Value], atom: Atom<'_>) -> Vec<Value> {
    let element = |item: &Value| item_element(atom, item).unwrap_or_default();
    let ours: Vec<(String, &Value)> = config.iter().map(|item| (element(item), item)).collect();
    let mut theirs: Vec<(String, Option<Value>)> =
        live.into_iter().map(|item| (element(&item), Some(item))).collect();
    let mut positions: HashMap<String, Option<usize>> = HashMap::with_capacity(theirs.len());
    for (at, (element, _)) in theirs.iter().enumerate() {
        // Of items with one key none is merged.
        positions.entry(element.clone()).and_modify(|at| *at = None).or_insert(Some(at));
    }
    let wanted: HashSet<&str> = ours.iter().map(|(element, _)| element.as_str()).collect();
    let shared: Vec<&str> = ours
        .iter()
        .map(|(element, _)| element.as_str())
        .filter(|name| positions.contains_key(*name))
        .collect();
    let mut shared = shared.into_iter();
    let mut next_shared = shared.next();
    let mut merged_elements: HashSet<&str> = HashSet::with_capacity(ours.len());
    let mut out = Vec::with_capacity(theirs.len().max(ours.len()));
    let names: Vec<String> = theirs.iter().map(|(element, _)| element.clone()).collect();
    let take = |theirs: &mut Vec<(String, Option<Value>)>, element: &str, item: &Value| {
        let at = positions.get(element).copied().flatten();
        let own = at.and_then(|at| theirs.get_mut(at)).and_then(|(_, own)| own.take());
        match (own, atom.item()) {
            (Some(mut own), Some(schema)) => {
                merge(&mut own, item, schema);
                own
            }
            (_, _) => item.clone(),
        }
    };
    let (mut left, mut right) = (0, 0);
    while left < names.len() || right < ours.len() {
        if let (Some(name), Some((element, item))) = (names.get(left), ours.get(right)) {
            if name == element {
                merged_elements.insert(element);
                out.push(take(&mut theirs, element, item));
                left += 1;
                right += 1;
                next_shared = shared.next();
                continue;
            }
            if wanted.contains(name.as_str()) && next_shared.is_some_and(|next| next != name) {
                // An item of both, whose turn has not come.
                left += 1;
                continue;
            }
        }
        if let Some(name) = names.get(left) {
            if !wanted.contains(name.as_str()) {
                out.extend(theirs.get_mut(left).and_then(|(_, own)| own.take()));
                left += 1;
                continue;
            }
            if merged_elements.contains(name.as_str()) {
                left += 1;
            }
        }
        if let Some((element, item)) = ours.get(right) {
            merged_elements.insert(element);
            out.push(take(&mut theirs, element, item));
            right += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// Takes the fields of a set out of a tree. What becomes empty stays as an empty value.
pub(super) fn remove(value: &mut Value, fields: &Map, schema: SchemaRef<'_>) {
    let atom = Atom::of(schema);
    match (atom, value) {
        (Atom::Struct(_) | Atom::Map(_), Value::Object(members)) => {
            for (element, node) in children(fields) {
                let Some(name) = element.strip_prefix("f:") else { continue };
                if is_member(node) {
                    members.remove(name);
                } else if let (Some(member), Some((schema, _))) = (members.get_mut(name), atom.member(name)) {
                    remove(member, node, schema);
                }
            }
        }
        (Atom::Set | Atom::List(_), Value::Array(items)) => items.retain_mut(|item| {
            let element = item_element(atom, item).unwrap_or_default();
            let Some(node) = fields.get(&element).and_then(Value::as_object) else { return true };
            if is_member(node) {
                return false;
            }
            if let Some(schema) = atom.item() {
                remove(item, node, schema);
            }
            true
        }),
        (Atom::Leaf | Atom::Struct(_) | Atom::Map(_) | Atom::Set | Atom::List(_), _) => {}
    }
}

/// Adds the declared fields on the way to each path of a set. They count for what an owner gives up: a struct whose
/// last field goes, goes.
pub(super) fn ensure_fields_are_members(fields: &mut Map, schema: SchemaRef<'_>) {
    let atom = Atom::of(schema);
    for (element, node) in fields.iter_mut() {
        let Some(node) = node.as_object_mut() else { continue };
        let below = match element.strip_prefix("f:") {
            Some(name) => atom.member(name),
            None => atom.item().map(|schema| (schema, false)),
        };
        let Some((schema, declared)) = below else { continue };
        ensure_fields_are_members(node, schema);
        if declared {
            make_member(node);
        }
    }
}
