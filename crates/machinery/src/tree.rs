//! The object tree, and functions that read and change it.
//!
//! Paths are dotted field names (`spec.nodeName`);
//! names that hold dots themselves (label keys) are looked up with [`ValueExt::field`] instead. A member that is
//! `null` counts as absent, as it does for Go's structs.

use pintle_tree::{Map, Value, map::Values};

/// Accessors for trees, without indexing panics.
pub trait ValueExt {
    /// A member of an object; `None` when it is absent or null, or when `self` is not an object.
    fn field(&self, name: &str) -> Option<&Value>;
    /// The value at a dotted path.
    fn at(&self, path: &str) -> Option<&Value>;
    /// The string at a dotted path, or "".
    fn str_at(&self, path: &str) -> &str;
    /// The integer at a dotted path.
    fn i64_at(&self, path: &str) -> Option<i64>;
    /// The boolean at a dotted path, or false.
    fn bool_at(&self, path: &str) -> bool;
    /// The items of the list at a dotted path, or none.
    fn items_at(&self, path: &str) -> &[Value];
    /// The members of the object at a dotted path, or none.
    fn map_at(&self, path: &str) -> &Map;
    /// The value at a dotted path, mutable.
    fn at_mut(&mut self, path: &str) -> Option<&mut Value>;
    /// The items of the list at a dotted path, mutable.
    fn items_at_mut(&mut self, path: &str) -> &mut [Value];
    /// The object at a dotted path, created (with its parents) when it is absent. A value of another type is replaced.
    fn object_at_mut(&mut self, path: &str) -> &mut Map;
    /// Sets the value at a dotted path and creates missing parents.
    fn set(&mut self, path: &str, value: impl Into<Value>);
    /// Sets the value at a dotted path when it is absent or null.
    fn set_default(&mut self, path: &str, value: impl Into<Value>);
    /// Removes and returns the value at a dotted path.
    fn remove_at(&mut self, path: &str) -> Option<Value>;
}

impl ValueExt for Value {
    fn field(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name).filter(|value| !value.is_null())
    }

    fn at(&self, path: &str) -> Option<&Value> {
        let mut value = self;
        for name in Names(Some(path)) {
            value = value.field(name)?;
        }
        Some(value)
    }

    fn str_at(&self, path: &str) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn i64_at(&self, path: &str) -> Option<i64> {
        self.at(path)?.as_i64()
    }

    fn bool_at(&self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }

    fn items_at(&self, path: &str) -> &[Value] {
        self.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn map_at(&self, path: &str) -> &Map {
        static EMPTY: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
        self.at(path).and_then(Value::as_object).unwrap_or(&EMPTY)
    }

    fn at_mut(&mut self, path: &str) -> Option<&mut Value> {
        let mut value = self;
        for name in Names(Some(path)) {
            value = value.as_object_mut()?.get_mut(name)?;
        }
        Some(value).filter(|value| !value.is_null())
    }

    fn items_at_mut(&mut self, path: &str) -> &mut [Value] {
        self.at_mut(path).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
    }

    fn object_at_mut(&mut self, path: &str) -> &mut Map {
        let mut value = self;
        for name in Names(Some(path)) {
            value = as_object(value).entry(name).or_insert(Value::Null);
        }
        as_object(value)
    }

    fn set(&mut self, path: &str, new: impl Into<Value>) {
        match path.rsplit_once('.') {
            Some((parent, name)) => self.object_at_mut(parent).insert(name, new.into()),
            None => as_object(self).insert(path, new.into()),
        };
    }

    fn set_default(&mut self, path: &str, value: impl Into<Value>) {
        if self.at(path).is_none() {
            self.set(path, value);
        }
    }

    fn remove_at(&mut self, path: &str) -> Option<Value> {
        match path.rsplit_once('.') {
            Some((parent, name)) => self.at_mut(parent)?.as_object_mut()?.remove(name),
            None => self.as_object_mut()?.remove(path),
        }
    }
}

/// The nesting depth of objects and lists; 0 for a scalar. Does not recurse, so that it is safe for any tree.
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    walk(value, |depth| deepest = deepest.max(depth));
    deepest
}

/// Whether objects and lists are nested deeper than `limit`. Recurses no deeper than that.
pub fn exceeds_depth(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| exceeds_depth(item, limit - 1)),
        Value::Object(members) => {
            limit == 0 || members.values().any(|member| exceeds_depth(member, limit - 1))
        }
        _ => false,
    }
}

/// The number of values in a tree, including the root.
pub fn size(value: &Value) -> usize {
    let mut values = 0;
    walk(value, |_| values += 1);
    values
}

/// Calls a function for each value of a tree with its nesting depth, which for objects and lists includes themselves.
fn walk(value: &Value, mut visit: impl FnMut(usize)) {
    enum Rest<'a> {
        Items(std::slice::Iter<'a, Value>),
        Members(Values<'a, Value>),
    }
    let mut open: Vec<Rest<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next {
            match value {
                Value::Array(items) => open.push(Rest::Items(items.iter())),
                Value::Object(members) => open.push(Rest::Members(members.values())),
                _ => {}
            }
            visit(open.len());
        }
        next = match open.last_mut() {
            Some(Rest::Items(items)) => items.next(),
            Some(Rest::Members(members)) => members.next(),
            None => return,
        };
        if next.is_none() {
            open.pop();
        }
    }
}

/// The names in a dotted path. They are short, so a search byte by byte is faster than one optimized for long texts.
struct Names<'a>(Option<&'a str>);

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let path = self.0.take()?;
        match path.bytes().position(|byte| byte == b'.') {
            Some(at) => {
                self.0 = path.get(at + 1..);
                path.get(..at)
            }
            None => Some(path),
        }
    }
}

fn as_object(value: &mut Value) -> &mut Map {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value was made an object above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn depth_and_size_count_objects_and_lists() {
        let rows = [
            (json!(1), 0, 1),
            (json!({}), 1, 1),
            (json!([[], 1, {"a": [2]}]), 3, 6),
            (json!({"a": {"b": {}}, "c": 1}), 3, 4),
        ];
        for (value, levels, values) in rows {
            assert_eq!((depth(&value), size(&value)), (levels, values), "{value}");
            assert!(!exceeds_depth(&value, levels), "{value}");
            assert!(levels == 0 || exceeds_depth(&value, levels - 1), "{value}");
        }
    }

    #[test]
    fn paths_read_and_write() {
        let mut value = json!({"spec": {"replicas": 3, "x": null, "list": [{"a": "b"}]}});
        assert_eq!(value.i64_at("spec.replicas"), Some(3));
        assert_eq!(value.at("spec.x"), None);
        assert_eq!(value.items_at("spec.list").len(), 1);
        assert_eq!(value.str_at("spec.none.at.all"), "");
        value.set("spec.template.metadata.name", "n");
        value.set_default("spec.x", 7);
        value.set_default("spec.replicas", 9);
        assert_eq!(value.str_at("spec.template.metadata.name"), "n");
        assert_eq!((value.i64_at("spec.x"), value.i64_at("spec.replicas")), (Some(7), Some(3)));
        assert_eq!(value.remove_at("spec.x"), Some(json!(7)));
    }
}
