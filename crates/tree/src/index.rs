//! Access to members by name and to items by position.

use std::ops;

use crate::{Map, Text, Value};

/// A name of a member or a position of an item.
pub trait Index {
    /// The value at the index, when there is one.
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value>;
    /// The value at the index, mutable, when there is one.
    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value>;
    /// The value at the index, made when `value` is an object or null.
    ///
    /// # Panics
    /// When `value` has another type, or a list has no such item.
    fn of_or_insert<'a>(&self, value: &'a mut Value) -> &'a mut Value;
}

impl Value {
    /// The member or item at an index; `None` when it is absent or `self` has none.
    pub fn get(&self, index: impl Index) -> Option<&Value> {
        index.of(self)
    }

    /// The member or item at an index, mutable.
    pub fn get_mut(&mut self, index: impl Index) -> Option<&mut Value> {
        index.of_mut(self)
    }
}

impl Index for str {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.as_object()?.get(self)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        value.as_object_mut()?.get_mut(self)
    }

    fn of_or_insert<'a>(&self, value: &'a mut Value) -> &'a mut Value {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        match value {
            Value::Object(members) => members.entry(self).or_insert(Value::Null),
            _ => panic!("cannot access the member {self:?} of {value}"),
        }
    }
}

impl Index for usize {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.as_array()?.get(*self)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        value.as_array_mut()?.get_mut(*self)
    }

    fn of_or_insert<'a>(&self, value: &'a mut Value) -> &'a mut Value {
        match value {
            Value::Array(items) => {
                let length = items.len();
                items.get_mut(*self).unwrap_or_else(|| panic!("cannot access the item {self} of {length}"))
            }
            _ => panic!("cannot access the item {self} of {value}"),
        }
    }
}

impl Index for String {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.as_str().of(value)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.as_str().of_mut(value)
    }

    fn of_or_insert<'a>(&self, value: &'a mut Value) -> &'a mut Value {
        self.as_str().of_or_insert(value)
    }
}

impl Index for Text {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.as_str().of(value)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.as_str().of_mut(value)
    }

    fn of_or_insert<'a>(&self, value: &'a mut Value) -> &'a mut Value {
        self.as_str().of_or_insert(value)
    }
}

impl<I: Index + ?Sized> Index for &I {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        (**self).of(value)
    }

    fn of_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        (**self).of_mut(value)
    }

    fn of_or_insert<'a>(&self, value: &'a mut Value) -> &'a mut Value {
        (**self).of_or_insert(value)
    }
}

/// Reads the value at an index, or null.
impl<I: Index> ops::Index<I> for Value {
    type Output = Value;

    fn index(&self, index: I) -> &Value {
        static NULL: Value = Value::Null;
        index.of(self).unwrap_or(&NULL)
    }
}

impl<I: Index> ops::IndexMut<I> for Value {
    fn index_mut(&mut self, index: I) -> &mut Value {
        index.of_or_insert(self)
    }
}

/// Reads a member.
///
/// # Panics
/// When it is absent.
impl ops::Index<&str> for Map {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or_else(|| panic!("the object has no member {name:?}"))
    }
}

/// Changes a member.
///
/// # Panics
/// When it is absent.
impl ops::IndexMut<&str> for Map {
    fn index_mut(&mut self, name: &str) -> &mut Value {
        self.get_mut(name).unwrap_or_else(|| panic!("the object has no member {name:?}"))
    }
}
