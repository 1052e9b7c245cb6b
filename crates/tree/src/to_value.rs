//! Makes values of serializable types.

use serde::Serialize;
use serde::ser::{Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple};
use serde::ser::{SerializeTupleStruct, Serializer};
use serde_json::Error;

use crate::map::Map;
use crate::text::Text;
use crate::value::Value;

/// Makes a value of a serializable type.
///
/// # Errors
/// When the type has maps whose keys are neither texts, numbers nor booleans, or variants with several fields, or when
/// its own implementation fails.
pub fn to_value(value: impl Serialize) -> Result<Value, Error> {
    value.serialize(ToValue)
}

/// Makes a value of an expression within [`json!`](crate::json).
///
/// # Panics
/// When [`to_value`] fails.
#[doc(hidden)]
pub fn interpolated(value: impl Serialize) -> Value {
    to_value(value).unwrap_or_else(|error| panic!("a value in json! cannot be serialized: {error}"))
}

/// The start of a list within [`json!`](crate::json).
#[doc(hidden)]
pub fn no_items() -> Vec<Value> {
    Vec::new()
}

struct ToValue;

/// The items of a list that is being made.
struct Items(Vec<Value>);

/// The members of an object that is being made, and the name of the next one.
struct Members(Map<Value>, Text);

impl Serializer for ToValue {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Impossible<Value, Error>;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Impossible<Value, Error>;

    fn serialize_bool(self, value: bool) -> Result<Value, Error> {
        Ok(value.into())
    }

    fn serialize_i8(self, number: i8) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_i16(self, number: i16) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_i32(self, number: i32) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_i64(self, number: i64) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_u8(self, number: u8) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_u16(self, number: u16) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_u32(self, number: u32) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_u64(self, number: u64) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_f32(self, number: f32) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_char(self, character: char) -> Result<Value, Error> {
        Ok(Value::from(&*character.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Error> {
        Ok(text.into())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Error> {
        Ok(bytes.into())
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Error> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(Value::from_iter([(variant, to_value(value)?)]))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items, Error> {
        Ok(Items(Vec::with_capacity(length.unwrap_or_default())))
    }

    fn serialize_tuple(self, length: usize) -> Result<Items, Error> {
        Ok(Items(Vec::with_capacity(length)))
    }

    fn serialize_tuple_struct(self, _name: &'static str, length: usize) -> Result<Items, Error> {
        Ok(Items(Vec::with_capacity(length)))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Impossible<Value, Error>, Error> {
        Err(Error::custom(format_args!("{name} has a variant of several fields")))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Members, Error> {
        Ok(Members(Map::with_capacity(length.unwrap_or_default()), Text::default()))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Members, Error> {
        debug_assert_ne!(name, "$serde_json::private::Number", "numbers are kept as texts");
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Impossible<Value, Error>, Error> {
        Err(Error::custom(format_args!("{name} has a variant of several fields")))
    }
}

impl SerializeSeq for Items {
    type Ok = Value;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.push(to_value(value)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Array(self.0))
    }
}

impl SerializeTuple for Items {
    type Ok = Value;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Value, Error> {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleStruct for Items {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Value, Error> {
        SerializeSeq::end(self)
    }
}

impl SerializeMap for Members {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.1 = match to_value(key)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string().into(),
            Value::Bool(value) => value.to_string().into(),
            _ => return Err(Error::custom("key must be a string")),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.0.insert(std::mem::take(&mut self.1), to_value(value)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Object(self.0))
    }
}

impl SerializeStruct for Members {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.0.insert(name, to_value(value)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Object(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Number;
    use std::collections::BTreeMap;

    #[derive(Serialize)]
    enum Shape {
        Round,
        Of(u8),
        Wide(u8, u8),
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Thing {
        own_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u8>,
        pair: (i32, f64),
        shapes: Vec<Shape>,
        by_number: BTreeMap<u8, Option<char>>,
        tree: Value,
    }

    #[test]
    fn types_become_what_serde_json_makes_of_them() {
        let thing = Thing {
            own_name: "x".repeat(40),
            absent: None,
            pair: (-1, 0.5),
            shapes: vec![Shape::Round, Shape::Of(7)],
            by_number: [(1, Some('ä')), (20, None)].into(),
            tree: crate::json!({"a": [null, true, 1, 2.5, "s", {}]}),
        };
        assert_eq!(serde_json::Value::from(to_value(&thing).unwrap()), serde_json::to_value(&thing).unwrap());
        assert!(to_value(Shape::Wide(1, 2)).is_err());
        assert!(to_value(BTreeMap::from([((1, 2), 3)])).is_err());
    }

    #[test]
    fn numbers_are_kept() {
        for number in ["0", "-5", "18446744073709551615", "1.5", "1e300"] {
            let number: Number = number.parse().unwrap();
            assert_eq!(to_value(&number).unwrap(), Value::Number(number));
        }
    }
}
