//! Converts values to JSON.

use super::{Json, Value};
use crate::EvaluationError;
use pintle_machinery::{Map, Number};

/// The largest whole number that every reader of JSON reads exactly.
const MAX_EXACT: u64 = (1 << 53) - 1;

impl Value<'_> {
    /// The value as JSON, with the conventions of `google.protobuf.Value`
    /// (<https://protobuf.dev/programming-guides/json/>): whole numbers that doubles cannot represent become texts, as do
    /// bytes (base64), times and durations. Members of maps are in the order of their names.
    ///
    /// Values may share parts, so that the JSON is larger than the value. `budget` bounds it, in bytes; what is used is
    /// deducted.
    ///
    /// # Errors
    /// [`EvaluationError::Failed`] for a value that JSON cannot represent (a key that is not a text, a type);
    /// [`EvaluationError::CostLimitExceeded`] when the budget does not suffice.
    pub fn to_json(&self, budget: &mut usize) -> Result<Json, EvaluationError> {
        Writer { budget, exact: false }.write(self)
    }

    /// As [`Value::to_json`], with all whole numbers as numbers.
    ///
    /// # Errors
    /// As [`Value::to_json`].
    pub fn to_exact_json(&self, budget: &mut usize) -> Result<Json, EvaluationError> {
        Writer { budget, exact: true }.write(self)
    }
}

struct Writer<'b> {
    budget: &'b mut usize,
    exact: bool,
}

/// The bytes that a value needs beyond its text.
const OVERHEAD: usize = 8;

impl Writer<'_> {
    fn spend(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        *self.budget = self
            .budget
            .checked_sub(bytes.saturating_add(OVERHEAD))
            .ok_or(EvaluationError::CostLimitExceeded)?;
        Ok(())
    }

    fn write(&mut self, value: &Value<'_>) -> Result<Json, EvaluationError> {
        self.spend(0)?;
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) if self.exact || value.unsigned_abs() <= MAX_EXACT => Json::from(*value),
            Value::Int(value) => Json::from(value.to_string()),
            Value::Uint(value) if self.exact || *value <= MAX_EXACT => Json::from(*value),
            Value::Uint(value) => Json::from(value.to_string()),
            Value::Double(value) => double(*value),
            Value::String(text) => self.text(text)?,
            Value::Bytes(bytes) => {
                self.spend(bytes.len())?;
                self.text(&pintle_go_forms::base64::encode(bytes))?
            }
            Value::Timestamp(time) => self.text(&time.format())?,
            Value::Duration(nanos) => self.text(&super::format_duration(*nanos))?,
            Value::List(list) => {
                let mut items = Vec::new();
                for item in list.iter() {
                    items.push(self.write(&item?)?);
                }
                Json::Array(items)
            }
            Value::Map(map) => {
                let mut members = Map::new();
                for key in map.keys() {
                    let Value::String(name) = &key else {
                        return Err(EvaluationError::failed(format!(
                            "unsupported type conversion from '{}' to string",
                            key.type_name()
                        )));
                    };
                    self.spend(name.len())?;
                    if let Some(value) = map.find(&key)? {
                        members.insert(name.as_str().to_owned(), self.write(&value)?);
                    }
                }
                Json::Object(members)
            }
            Value::Object(object) => {
                let mut members = Map::new();
                for (name, value) in object.fields() {
                    self.spend(name.len())?;
                    members.insert(name, self.write(value)?);
                }
                Json::Object(members)
            }
            Value::Unknown(json) => {
                self.copied(json)?;
                (*json).clone()
            }
            Value::Opaque(opaque) => match &**opaque {
                super::Opaque::Quantity(_) | super::Opaque::ComputedQuantity(_) if self.exact => {
                    self.text(&opaque.to_string())?
                }
                super::Opaque::Quantity(_) | super::Opaque::ComputedQuantity(_) => {
                    return Err(EvaluationError::failed(
                        "type conversion error from 'Quantity' to '*structpb.Value'".to_owned(),
                    ));
                }
                _ => return Err(unsupported(value)),
            },
            Value::Optional(_) | Value::Type(_) => return Err(unsupported(value)),
        })
    }

    fn text(&mut self, text: &str) -> Result<Json, EvaluationError> {
        self.spend(text.len())?;
        Ok(Json::from(text))
    }

    /// Charges data of the request.
    fn copied(&mut self, json: &Json) -> Result<(), EvaluationError> {
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => self.spend(0),
            Json::String(text) => self.spend(text.len()),
            Json::Array(items) => {
                self.spend(0)?;
                items.iter().try_for_each(|item| self.copied(item))
            }
            Json::Object(members) => members.iter().try_for_each(|(name, value)| {
                self.spend(name.len())?;
                self.copied(value)
            }),
        }
    }
}

fn unsupported(value: &Value<'_>) -> EvaluationError {
    EvaluationError::failed(format!("no conversion of {} to JSON", value.type_name()))
}

/// A double; a whole one without a fraction, and those that JSON has no number for as texts.
fn double(value: f64) -> Json {
    if value.is_nan() {
        return Json::from("NaN");
    }
    if value.is_infinite() {
        return Json::from(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT as f64 {
        return Json::from(value as i64);
    }
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use crate::{Activation, Environment, EvaluationError, Value};
    use pintle_machinery::json;

    fn converted(expression: &str, budget: usize) -> Result<pintle_machinery::Value, EvaluationError> {
        let program = Environment::new().compile(expression).expect(expression);
        let mut cost = 1_000_000;
        let mut budget = budget;
        program.evaluate(&Activation::new(), &mut cost).expect(expression).to_json(&mut budget)
    }

    #[test]
    fn values_have_json_forms() {
        for (expression, expected) in [
            ("null", json!(null)),
            ("1.0", json!(1)),
            ("1.5", json!(1.5)),
            ("9007199254740993", json!("9007199254740993")),
            ("18446744073709551615u", json!("18446744073709551615")),
            ("b'abc'", json!("YWJj")),
            ("timestamp('2020-01-01T00:00:00Z')", json!("2020-01-01T00:00:00Z")),
            ("duration('90s')", json!("90s")),
            ("[1, 2]", json!([1, 2])),
            ("{'a': {'b': [true]}}", json!({"a": {"b": [true]}})),
            ("1.0 / 0.0", json!("Infinity")),
        ] {
            assert_eq!(converted(expression, 1000), Ok(expected), "{expression}");
        }
        let mut budget = 1000;
        assert_eq!(Value::Int(i64::MAX).to_exact_json(&mut budget), Ok(json!(i64::MAX)));
    }

    #[test]
    fn values_without_json_form_are_errors() {
        let error = |expression| converted(expression, 1000).unwrap_err().to_string();
        assert_eq!(error("{1: 2}"), "unsupported type conversion from 'int' to string");
        assert_eq!(error("int"), "no conversion of type to JSON");
        assert_eq!(error("ip('1.2.3.4')"), "no conversion of net.IP to JSON");
    }

    #[test]
    fn shared_values_are_bounded_by_the_size_of_their_json() {
        let doubled = "[0].map(a, [a, a]).map(b, [b, b]).map(c, [c, c]).map(d, [d, d]).map(e, [e, e])";
        assert!(converted(doubled, 10_000).is_ok());
        assert_eq!(converted(doubled, 200), Err(EvaluationError::CostLimitExceeded));
        assert_eq!(converted("'0123456789'", 10), Err(EvaluationError::CostLimitExceeded));
    }
}
