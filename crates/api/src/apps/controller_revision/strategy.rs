//! The strategy of controller revisions.

use crate::rules;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, codec::json, validation::FIELD_IMMUTABLE_ERROR,
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
        // Numbers are stored as Go's encoder writes them, whatever their notation in the body; messages show the latter.
        if json::encode_any(new) != json::encode_any(old) {
            let error = FieldError::invalid(&FieldPath::new("data"), new.clone(), FIELD_IMMUTABLE_ERROR);
            errors.push(error.shown_as(new.to_string()));
        }
        errors
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, true);
    errors.extend(rules::nonnegative(object, "revision"));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json as tree;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    #[test]
    fn data_stays_whatever_the_notation_of_its_numbers() {
        let revision = |data: Value| tree!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "data": data});
        let old = revision(tree!({"a": 1000}));
        for (data, is_same) in [(tree!({"a": 1000.0}), true), (tree!({"a": 1001}), false)] {
            let new = revision(data);
            let errors = with_context(&MemoryRegistry::default(), "a", false, |context| {
                ControllerRevisionStrategy.validate_update(context, &new, &old)
            });
            assert_eq!(errors.is_empty(), is_same, "{errors:?}");
        }
    }
}
