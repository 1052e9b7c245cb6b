//! Merges an applied configuration into an object, and removes fields from it.

use super::{
    atom::{Atom, Items, Shape, Trees, items, object},
    field_set::{children, is_member, make_member},
};
use crate::{Map, Value};
use pintle_schema::SchemaRef;
use std::collections::{HashMap, HashSet};

/// Merges `config` into `live`, both in JSON form. Atomic values are replaced; items of lists with keys are merged one
/// by one and take the order of the configuration; other items keep their position.
pub(super) fn merge(live: &mut Value, config: &Value, schema: SchemaRef<'_>) {
    node(live, config, Shape::of(schema));
}

fn node(live: &mut Value, config: &Value, shape: Shape<'_>) {
    match shape.atom(Some(config)) {
        // Neither null nor an empty value removes parts that other managers may own.
        Atom::Map(members)
            if !(members.atomic
                || object(Some(live)).is_none_or(Map::is_empty)
                    && object(Some(config)).is_none_or(Map::is_empty)) =>
        {
            if !live.is_object() {
                *live = Value::Object(Map::new());
            }
            let (Some(live), Some(config)) = (live.as_object_mut(), config.as_object()) else { return };
            for (name, value) in config {
                match (live.get_mut(name), members.member(name)) {
                    (Some(own), Some((shape, _))) => node(own, value, shape),
                    (_, _) => drop(live.insert(name.clone(), value.clone())),
                }
            }
        }
        Atom::List(kind)
            if !(kind.is_atomic() || items(Some(live)).is_empty() && items(Some(config)).is_empty()) =>
        {
            let own = match live.take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            *live = Value::Array(merge_items(own, items(Some(config)), kind));
        }
        Atom::Scalar(_) | Atom::Map(_) | Atom::List(_) => *live = config.clone(),
    }
}

fn merge_items(live: Vec<Value>, config: &[Value], kind: Items<'_>) -> Vec<Value> {
    let element = |item: &Value| kind.element(item, Trees::Written).unwrap_or_default();
    let ours: Vec<(String, &Value)> = config.iter().map(|item| (element(item), item)).collect();
    let mut theirs: Vec<(String, Option<Value>)> =
        live.into_iter().map(|item| (element(&item), Some(item))).collect();
    let mut positions: HashMap<String, Option<usize>> = HashMap::with_capacity(theirs.len());
    for (at, (element, _)) in theirs.iter().enumerate() {
        // Several items with one key are not merged.
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
        match own {
            Some(mut own) => {
                node(&mut own, item, kind.item());
                own
            }
            None => item.clone(),
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
                // An item of both lists whose position comes later.
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

/// Removes the fields of a set from a tree in JSON form. Containers that become empty are kept.
pub(super) fn remove(value: &mut Value, fields: &Map, shape: Shape<'_>) {
    let atom = shape.atom(Some(value));
    match (atom, value) {
        (Atom::Map(members), Value::Object(object)) if members.atomic => object.clear(),
        (Atom::List(kind), Value::Array(items)) if kind.is_atomic() => items.clear(),
        (Atom::Map(members), Value::Object(object)) => {
            for (element, node) in children(fields) {
                let Some(name) = element.strip_prefix("f:") else { continue };
                if is_member(node) {
                    object.remove(name);
                } else if let (Some(member), Some((shape, _))) = (object.get_mut(name), members.member(name))
                {
                    remove(member, node, shape);
                }
            }
        }
        (Atom::List(kind), Value::Array(items)) => items.retain_mut(|item| {
            let element = kind.element(item, Trees::Written).unwrap_or_default();
            let Some(node) = fields.get(&element).and_then(Value::as_object) else { return true };
            if !is_member(node) {
                remove(item, node, kind.item());
            }
            !is_member(node)
        }),
        (Atom::Scalar(_) | Atom::Map(_) | Atom::List(_), _) => {}
    }
}

/// Adds the declared fields on each path of a set as members. A manager that gives up the last field of a struct
/// thereby gives up the struct too.
pub(super) fn ensure_fields_are_members(fields: &mut Map, shape: Shape<'_>) {
    let atom = shape.atom(None);
    for (element, node) in fields.iter_mut() {
        let Some(node) = node.as_object_mut() else { continue };
        let below = match (atom, element.strip_prefix("f:")) {
            (Atom::Map(members), Some(name)) => members.member(name),
            (Atom::List(kind), None) => Some((kind.item(), false)),
            (Atom::Scalar(_) | Atom::Map(_) | Atom::List(_), _) => None,
        };
        let Some((shape, declared)) = below else { continue };
        ensure_fields_are_members(node, shape);
        if declared {
            make_member(node);
        }
    }
}
