//! The strategy of controller revisions.

use crate::rules;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, validation::FIELD_IMMUTABLE_ERROR,
};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct ControllerRevisionStrategy;

impl Strategy for ControllerRevisionStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = validate(object);
        let path = FieldPath::new("data");
        match object.field("data") {
            None => errors.push(FieldError::required(&path, "data is mandatory")),
            Some(Value::Object(_)) => {}
            Some(_) => errors.push(FieldError::required(&path, "data must be a valid JSON object")),
        }
        errors
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate(object));
        let (new, old) = (rules::value_at(object, "data"), rules::value_at(old, "data"));
        // The data is compared and shown as it was written.
        let (text, old_text) = (new.to_string(), old.to_string());
        if text != old_text {
            let error = FieldError::invalid(&FieldPath::new("data"), new.clone(), FIELD_IMMUTABLE_ERROR);
            errors.push(error.shown_as(text));
        }
        errors
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, true);
    errors.extend(rules::nonnegative(object, "revision"));
    errors
}
