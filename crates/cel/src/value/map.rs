//! Maps and objects: views of JSON, and computed maps.

use super::adapt::{adapt, adapt_untyped};
use super::number::{exact_int, exact_uint};
use super::{Json, Text, Value};
use crate::EvaluationError;
use crate::escaping::{escape, unescape};
use crate::schema::{Schema, SchemaKind};
use crate::work;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A map from keys to values, or an object, whose keys are its fields.
#[derive(Clone, Debug)]
pub struct Map<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    /// A map of an object, or an object itself, with its schema if it has one.
    Json(&'a JsonMap, Option<&'a dyn Schema>),
    /// A computed map.
    Entries(Arc<IndexMap<Key<'a>, Value<'a>>>),
    /// An object whose fields are computed when they are read.
    Lazy(&'a dyn LazyFields),
}

/// An object whose fields are computed when an expression reads them.
pub trait LazyFields: fmt::Debug + Send + Sync {
    /// The value of a field by its name; `None` if the object has no such field.
    ///
    /// # Errors
    /// When the computation of the field fails; the expression that reads the field fails with this error.
    fn field<'a>(&'a self, name: &str) -> Option<Result<Value<'a>, EvaluationError>>;
}

type JsonMap = pintle_machinery::Map;

/// A key of a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a double.
    Double(u64),
    String(Text<'a>),
}

impl<'a> Key<'a> {
    /// The key for a value, if its type allows that.
    pub(crate) fn new(value: &Value<'a>) -> Result<Key<'a>, EvaluationError> {
        Ok(match value {
            Value::Bool(key) => Key::Bool(*key),
            Value::Int(key) => Key::Int(*key),
            Value::Uint(key) => Key::Uint(*key),
            // Positive and negative zero are the same key.
            Value::Double(key) => Key::Double(if *key == 0.0 { 0 } else { key.to_bits() }),
            Value::String(key) => Key::String(key.clone()),
            other => {
                let name = other.type_name();
                return Err(EvaluationError::failed(format!("unsupported key type: {name}")));
            }
        })
    }

    fn value(&self) -> Value<'a> {
        match self {
            Key::Bool(key) => Value::Bool(*key),
            Key::Int(key) => Value::Int(*key),
            Key::Uint(key) => Value::Uint(*key),
            Key::Double(key) => Value::Double(f64::from_bits(*key)),
            Key::String(key) => Value::String(key.clone()),
        }
    }
}

impl<'a> Map<'a> {
    /// A map of an object, or an object. Without a schema, JSON determines the types of values.
    pub fn json(members: &'a JsonMap, schema: Option<&'a dyn Schema>) -> Map<'a> {
        Map(Repr::Json(members, schema))
    }

    /// An object whose fields are computed when they are read. It has no keys to iterate over.
    pub fn lazy(fields: &'a dyn LazyFields) -> Map<'a> {
        Map(Repr::Lazy(fields))
    }

    /// The number of entries; for objects, of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Json(members, _) => members.len(),
            Repr::Entries(entries) => entries.len(),
            Repr::Lazy(_) => 0,
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key; a number also finds an equal key of another number type.
    ///
    /// # Errors
    /// When the value cannot be a key, or when the data does not fit its schema.
    pub fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvaluationError> {
        work::count(1)?;
        match &self.0 {
            Repr::Json(members, schema) => match (key, schema) {
                (Value::String(key), schema) => member(members, *schema, key),
                (_, None) => Ok(None),
                (_, Some(_)) => Err(EvaluationError::NO_SUCH_OVERLOAD),
            },
            Repr::Entries(entries) => Ok(find_entry(entries, key).cloned()),
            Repr::Lazy(fields) => match key {
                Value::String(name) => lazy_field(*fields, name),
                _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
            },
        }
    }

    /// As [`Map::find`], for a string key.
    pub(crate) fn find_str(&self, key: &str) -> Result<Option<Value<'a>>, EvaluationError> {
        match &self.0 {
            Repr::Json(members, schema) => member(members, *schema, key),
            Repr::Entries(entries) => Ok(find_entry(entries, &Value::from(key)).cloned()),
            Repr::Lazy(fields) => lazy_field(*fields, key),
        }
    }

    /// The keys: for objects, the escaped names of the declared fields that are present.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match &self.0 {
            Repr::Json(members, None) => members.keys().map(|key| Value::from(key.as_str())).collect(),
            Repr::Json(members, Some(schema)) => {
                let object = schema.kind() == SchemaKind::Object;
                let known = members.keys().filter(|key| schema.property(key).is_some());
                known
                    .map(|key| match object.then(|| escape(key)).flatten() {
                        Some(Cow::Owned(escaped)) => Value::from(escaped),
                        _ => Value::from(key.as_str()),
                    })
                    .collect()
            }
            Repr::Entries(entries) => entries.keys().map(Key::value).collect(),
            Repr::Lazy(_) => Vec::new(),
        }
    }

    /// The schema of an object, or of a map in an object, if it has one.
    pub(super) fn schema(&self) -> Option<&'a dyn Schema> {
        match &self.0 {
            Repr::Json(_, schema) => *schema,
            Repr::Entries(_) | Repr::Lazy(_) => None,
        }
    }

    /// Whether this is an object with a schema, or a map in one.
    pub(crate) fn has_schema(&self) -> bool {
        self.schema().is_some()
    }

    /// The same members, whose types JSON determines.
    pub(super) fn without_schema(&self) -> Map<'a> {
        match &self.0 {
            Repr::Json(members, _) => Map::json(members, None),
            Repr::Entries(_) | Repr::Lazy(_) => self.clone(),
        }
    }

    /// Whether the expression computed the map.
    pub(crate) fn is_computed(&self) -> bool {
        matches!(self.0, Repr::Entries(_))
    }

    /// The JSON members, for objects.
    pub(super) fn raw(&self) -> Option<&'a JsonMap> {
        match &self.0 {
            Repr::Json(members, _) => Some(members),
            Repr::Entries(_) | Repr::Lazy(_) => None,
        }
    }

    /// Adds an entry, in place if the map is not shared. An error if the key exists.
    pub(crate) fn insert(&mut self, key: &Value<'a>, value: Value<'a>) -> Result<(), EvaluationError> {
        if self.find(key)?.is_some() {
            let key = key.display();
            return Err(EvaluationError::failed(format!("insert failed: key {key} already exists")));
        }
        let key = Key::new(key)?;
        if let Repr::Json(..) = &self.0 {
            let mut entries = IndexMap::with_capacity(self.len() + 1);
            for key in self.keys() {
                if let Some(value) = self.find(&key)? {
                    entries.insert(Key::new(&key)?, value);
                }
            }
            self.0 = Repr::Entries(Arc::new(entries));
        }
        if let Repr::Entries(entries) = &mut self.0 {
            Arc::make_mut(entries).insert(key, value);
        }
        Ok(())
    }
}

impl<'a> From<IndexMap<Key<'a>, Value<'a>>> for Map<'a> {
    fn from(entries: IndexMap<Key<'a>, Value<'a>>) -> Map<'a> {
        Map(Repr::Entries(Arc::new(entries)))
    }
}

fn member<'a>(
    members: &'a JsonMap,
    schema: Option<&'a dyn Schema>,
    key: &str,
) -> Result<Option<Value<'a>>, EvaluationError> {
    let Some(schema) = schema else { return Ok(members.get(key).map(adapt_untyped)) };
    let object = schema.kind() == SchemaKind::Object;
    let key = match object {
        true => match unescape(key) {
            Some(key) => key,
            None => return Ok(None),
        },
        false => Cow::Borrowed(key),
    };
    match members.get(&key) {
        None => Ok(None),
        // In objects, null is equivalent to absent.
        Some(Json::Null) if object => Ok(None),
        Some(value) => schema.property(&key).map(|schema| adapt(value, schema)).transpose(),
    }
}

/// The field with this escaped name.
fn lazy_field<'a>(fields: &'a dyn LazyFields, name: &str) -> Result<Option<Value<'a>>, EvaluationError> {
    let Some(name) = unescape(name) else { return Ok(None) };
    fields.field(&name).transpose()
}

fn find_entry<'m, 'a>(entries: &'m IndexMap<Key<'a>, Value<'a>>, key: &Value<'_>) -> Option<&'m Value<'a>> {
    // A key with a shorter lifetime is looked up as an equal key of any lifetime.
    fn get<'m, 'a>(entries: &'m IndexMap<Key<'a>, Value<'a>>, key: &Key<'_>) -> Option<&'m Value<'a>> {
        entries.get(&Lookup(key))
    }
    if let Some(value) = Key::new(key).ok().and_then(|key| get(entries, &key)) {
        return Some(value);
    }
    match key {
        Value::Double(double) => exact_int(*double)
            .and_then(|int| get(entries, &Key::Int(int)))
            .or_else(|| get(entries, &Key::Uint(exact_uint(*double)?))),
        Value::Int(int) => get(entries, &Key::Uint(u64::try_from(*int).ok()?)),
        Value::Uint(uint) => get(entries, &Key::Int(i64::try_from(*uint).ok()?)),
        _ => None,
    }
}

/// A key for lookup, with any lifetime.
#[derive(Hash)]
struct Lookup<'k, 'b>(&'k Key<'b>);

impl<'a> indexmap::Equivalent<Key<'a>> for Lookup<'_, '_> {
    fn equivalent(&self, key: &Key<'a>) -> bool {
        match (self.0, key) {
            (Key::Bool(one), Key::Bool(other)) => one == other,
            (Key::Int(one), Key::Int(other)) => one == other,
            (Key::Uint(one), Key::Uint(other)) => one == other,
            (Key::Double(one), Key::Double(other)) => f64::from_bits(*one) == f64::from_bits(*other),
            (Key::String(one), Key::String(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}
