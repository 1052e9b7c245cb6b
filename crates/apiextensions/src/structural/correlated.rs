//! Correlates an object with its old state.
//!
//! A [`Correlated`] is a value of the new object together with its old value. The schema determines the correlation:
//! members of objects by name, items of lists of type map by their keys. Other lists are compared as a whole.
//! Comparisons are cached, because rules on several levels may need them.

mod spent;

use std::cell::OnceCell;
use std::collections::HashMap;

use pintle_machinery::{Map, Value};

use super::arena::Arena;
use super::node::{JsonType, ListType, Node};
pub(crate) use spent::time_spent;

/// A value of the new object and its old value.
pub(super) struct Correlated<'a> {
    schema: &'a Arena,
    node: &'a Node,
    pub(super) value: &'a Value,
    pub(super) old: &'a Value,
    unchanged: OnceCell<bool>,
    children: OnceCell<Children<'a>>,
}

enum Children<'a> {
    /// Sorted like the new object's members; members without an old value are left out.
    Members(Vec<(&'a str, Correlated<'a>)>),
    /// One entry for each item of the new list.
    Items(Vec<Option<Correlated<'a>>>),
    /// No values below this one are correlated.
    None,
}

impl<'a> Correlated<'a> {
    pub(super) fn new(schema: &'a Arena, node: &'a Node, value: &'a Value, old: &'a Value) -> Correlated<'a> {
        Correlated { schema, node, value, old, unchanged: OnceCell::new(), children: OnceCell::new() }
    }

    /// A member that has an old value and is in the schema.
    pub(super) fn key(&self, name: &str) -> Option<&Correlated<'a>> {
        let Children::Members(members) = self.children() else { return None };
        let at = members.binary_search_by(|(other, _)| (*other).cmp(name)).ok()?;
        members.get(at).map(|(_, child)| child)
    }

    /// An item that has an old value with the same keys.
    pub(super) fn index(&self, index: usize) -> Option<&Correlated<'a>> {
        let Children::Items(items) = self.children() else { return None };
        items.get(index)?.as_ref()
    }

    /// Whether the value is unchanged. Members outside the schema count as changed.
    pub(super) fn is_unchanged(&self) -> bool {
        match self.unchanged.get() {
            Some(unchanged) => *unchanged,
            None => spent::timed(|| self.compare()),
        }
    }

    fn compare(&self) -> bool {
        *self.unchanged.get_or_init(|| match (self.value, self.old) {
            (Value::Array(new), Value::Array(old)) => match self.children() {
                _ if new.len() != old.len() => false,
                Children::Items(items) => {
                    items.iter().all(|item| item.as_ref().is_some_and(Correlated::is_unchanged))
                }
                Children::Members(_) | Children::None => new == old,
            },
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.key(name).is_some_and(Correlated::is_unchanged))
            }
            (new, old) => new == old,
        })
    }

    fn children(&self) -> &Children<'a> {
        self.children.get_or_init(|| match (self.value, self.old) {
            (Value::Object(new), Value::Object(old)) => Children::Members(self.members(new, old)),
            (Value::Array(new), Value::Array(old)) if self.is_keyed_list() && !old.is_empty() => {
                Children::Items(self.items(new, old))
            }
            _ => Children::None,
        })
    }

    fn is_keyed_list(&self) -> bool {
        self.node.list_type == ListType::Map
            && self.node.ty == Some(JsonType::Array)
            && self.node.list_map_keys.len > 0
    }

    fn members(&self, new: &'a Map, old: &'a Map) -> Vec<(&'a str, Correlated<'a>)> {
        let members = new.iter().filter_map(|(name, value)| {
            let node = self.schema.member(self.node, name)?;
            Some((name.as_str(), Correlated::new(self.schema, node, value, old.get(name)?)))
        });
        members.collect()
    }

    fn items(&self, new: &'a [Value], old: &'a [Value]) -> Vec<Option<Correlated<'a>>> {
        let Some(node) = self.schema.items(self.node) else { return new.iter().map(|_| None).collect() };
        let mut by_keys: HashMap<Vec<&Value>, &'a Value> = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(keys) = self.keys(item) {
                by_keys.entry(keys).or_insert(item);
            }
        }
        let items = new.iter().map(|item| {
            let old = by_keys.get(&self.keys(item)?)?;
            Some(Correlated::new(self.schema, node, item, old))
        });
        items.collect()
    }

    /// The values of an item's keys; `None` when one is missing or not a scalar.
    fn keys<'v>(&self, item: &'v Value) -> Option<Vec<&'v Value>> {
        let members = item.as_object()?;
        let scalar = |name| members.get(name).filter(|v| !v.is_null() && !v.is_array() && !v.is_object());
        self.schema.strs(self.node.list_map_keys).map(scalar).collect()
    }
}

#[cfg(test)]
mod tests;
