//! The refusal of an invalid object.

use super::Store;
use pintle_machinery::{ErrorList, FieldError, Status, Value, meta::ObjectMeta};
use pintle_registry::RequestContext;

impl Store {
    /// The 422 that refuses an invalid object. Afterwards the object is not usable: it has members that no stored object has.
    ///
    /// kube-apiserver's messages show empty lists and maps of the body, which the canonical tree omits. If the body has such fields, they are put
    /// back and the object is validated once more, at the cost of the first validation; its texts are used if it finds the same errors.
    pub(super) fn invalid(
        &self,
        context: &RequestContext<'_>,
        object: &mut Value,
        mut errors: ErrorList,
        validate: impl FnOnce(&Value) -> ErrorList,
    ) -> Status {
        if context.empty_fields.put_into(object) {
            let shown = validate(object);
            let what = |error: &FieldError| (error.error_type, error.field.clone());
            if shown.iter().map(what).eq(errors.iter().map(what)) {
                for (error, shown) in errors.iter_mut().zip(shown) {
                    // Other values have the form of JSON, which omits empty fields.
                    if shown.shown_as.is_some() {
                        error.shown_as = shown.shown_as;
                    }
                    error.detail = shown.detail;
                }
            }
        }
        context.empty_fields.show_in(&mut errors);
        Status::invalid(&self.kind_of(object), object.name(), &errors)
    }
}
