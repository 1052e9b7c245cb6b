//! The strategy of volume attributes classes, which are immutable.

use crate::rules;
use crate::storage::parameters;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

pub(super) struct VolumeAttributesClassStrategy;

impl Strategy for VolumeAttributesClassStrategy {
    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        let changed =
            ["driverName", "parameters"].into_iter().filter(|field| rules::differs(object, old, field));
        errors.extend(changed.map(|field| {
            FieldError::forbidden(&FieldPath::new(field), format!("updates to {field} are forbidden."))
        }));
        errors.extend(validate(object));
        errors
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn validate(class: &Value) -> ErrorList {
    let mut errors = rules::metadata(class, false);
    errors.extend(parameters::validate_driver(class.str_at("driverName"), &FieldPath::new("driverName")));
    let path = FieldPath::new("parameters");
    let parameters = class.map_at("parameters");
    errors.extend(parameters::validate(parameters, &path));
    if parameters.is_empty() {
        errors.push(FieldError::required(&path, "must contain at least one key/value pair"));
    }
    errors
}
