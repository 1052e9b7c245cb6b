//! Defines [`RequestOptions`].

use crate::Operation;
use pintle_machinery::{
    Map, Value,
    options::{DeleteOptions, WriteOptions},
};

/// The options of a request, as it gave them.
#[derive(Debug, Clone, Copy)]
pub enum RequestOptions<'a> {
    /// A CONNECT has its options as its object.
    None,
    /// The options of a create, update, patch or apply.
    Write(&'a WriteOptions),
    /// The options of a delete.
    Delete(&'a DeleteOptions),
}

impl RequestOptions<'_> {
    /// The options as an object of `meta.k8s.io/v1`, or null. Its kind is that of the operation: a patch has
    /// `UpdateOptions`, and an update that creates has `CreateOptions`.
    pub fn to_object(&self, operation: Operation) -> Value {
        let mut object = match self {
            RequestOptions::None => return Value::Null,
            RequestOptions::Write(options) => options.to_object(),
            RequestOptions::Delete(options) => options.to_object(),
        };
        if object.is_null() {
            object = Value::Object(Map::new());
        }
        if let Some(members) = object.as_object_mut() {
            let kind = match operation {
                Operation::Create => "CreateOptions",
                Operation::Update => "UpdateOptions",
                Operation::Delete | Operation::Connect => "DeleteOptions",
            };
            members.insert("kind", kind.into());
            members.insert("apiVersion", "meta.k8s.io/v1".into());
        }
        object
    }
}
