//! The merge rules of the schema: a cursor that finds fields as Go's reflection does, with Go's error messages.

use crate::{Value, codec::json::to_value, patch::PatchError};
use pintle_schema::{FieldRef, PatchStrategy, SchemaRef, Type};
use std::cell::Cell;

/// The position of a patch in the schema.
#[derive(Clone, Copy)]
pub(super) struct Meta<'a> {
    schema: SchemaRef<'a>,
    /// The number of list items that may still be visited.
    items_left: &'a Cell<usize>,
    /// Whether Go's type is a pointer here; only a message depends on it.
    is_pointer: bool,
}

/// The merge rules of a field.
#[derive(Clone, Copy)]
pub(super) struct FieldMeta<'a> {
    pub(super) strategy: PatchStrategy,
    pub(super) merge_key: Option<&'a str>,
}

impl<'a> Meta<'a> {
    pub(super) fn root(schema: SchemaRef<'a>, items_left: &'a Cell<usize>) -> Meta<'a> {
        Meta { schema, items_left, is_pointer: false }
    }

    /// Counts visited items against the bound. A patch may merge into one item any number of times, at the cost of the
    /// item's lists each time.
    pub(super) fn count_items(self, count: usize) -> Result<(), PatchError> {
        match self.items_left.get().checked_sub(count) {
            Some(left) => {
                self.items_left.set(left);
                Ok(())
            }
            None => {
                let message = "The patch merges into the same items of lists too often";
                Err(PatchError::TooLarge(message.to_owned()))
            }
        }
    }

    /// A field that holds an object.
    pub(super) fn field(self, name: &str) -> Result<(Meta<'a>, FieldMeta<'a>), PatchError> {
        let field = self.lookup(name)?;
        let meta = Meta { schema: field.ty(), is_pointer: field.is_pointer(), ..self };
        Ok((meta, FieldMeta { strategy: field.patch_strategy(), merge_key: field.patch_merge_key() }))
    }

    /// A field that holds a list; the cursor is on its items.
    pub(super) fn list_field(self, name: &str) -> Result<(Meta<'a>, FieldMeta<'a>), PatchError> {
        let (meta, field) = self.field(name)?;
        let is_list = matches!(meta.schema.ty(), Type::List | Type::Bytes);
        if !is_list && !meta.is_pointer {
            let kind = if self.is_pointer { "ptr" } else { kind(self.schema.ty()) };
            return Err(PatchError::Unknown(format!("expected slice or array type, but got: {kind}")));
        }
        let item = meta.schema.item();
        if meta.schema.ty() == Type::List && matches!(item.ty(), Type::List | Type::Bytes) {
            return Err(PatchError::Unknown("unexpected slice of slice".to_owned()));
        }
        Ok((Meta { schema: item, is_pointer: false, ..self }, field))
    }

    /// Whether an object has this field always: a struct that is no pointer.
    pub(super) fn has_always(self, name: &str) -> bool {
        self.schema.field(name).is_some_and(is_always_object)
    }

    /// The Go kind, which a message prints as the schema's name.
    pub(super) fn kind(self) -> &'static str {
        if self.is_pointer { "ptr" } else { kind(self.schema.ty()) }
    }

    /// A stored value with every field that Go's encoder always writes.
    pub(super) fn full(self, value: &Value) -> Value {
        to_value(value, self.schema)
    }

    /// A field by its name; case-insensitive when no name matches exactly.
    fn lookup(self, name: &str) -> Result<FieldRef<'a>, PatchError> {
        let kind = kind(self.schema.ty());
        if kind != "struct" {
            return Err(PatchError::Unknown(format!(
                "merging an object in json but data type is not struct, instead is: {kind}"
            )));
        }
        let found = self
            .schema
            .field(name)
            .or_else(|| self.schema.fields().find(|field| field.name().eq_ignore_ascii_case(name)));
        found.ok_or_else(|| {
            PatchError::Unknown(format!(
                "unable to find api field in struct {} for the json field {}",
                struct_name(self.schema),
                pintle_go_forms::quote(name)
            ))
        })
    }
}

/// Whether a field is a struct that is no pointer and never left out.
pub(super) fn is_always_object(field: FieldRef<'_>) -> bool {
    matches!(field.ty().ty(), Type::Struct | Type::Union(_))
        && !field.is_pointer()
        && field.is_always_written()
}

fn kind(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        Type::String => "string",
        Type::Bytes | Type::List => "slice",
        Type::Map => "map",
        Type::Any => "interface",
        Type::Time
        | Type::MicroTime
        | Type::Duration
        | Type::Quantity
        | Type::IntOrString
        | Type::RawExtension
        | Type::FieldsV1
        | Type::Json
        | Type::Struct
        | Type::Union(_) => "struct",
    }
}

fn struct_name(schema: SchemaRef<'_>) -> String {
    let go_type = schema.go_type();
    match go_type.rsplit_once('.') {
        Some((_, name)) => name.to_owned(),
        None => go_type,
    }
}
