//! The part of an object in a table's row.

use pintle_machinery::Status;

/// The value of `includeObject`: the part of the object in a table's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum IncludeObject {
    /// No part.
    None,
    /// The metadata.
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter.
    ///
    /// # Errors
    /// 400 for an unknown value.
    pub(in super::super) fn parse(text: Option<&str>) -> Result<IncludeObject, Status> {
        match text {
            None | Some("" | "Metadata") => Ok(IncludeObject::Metadata),
            Some("None") => Ok(IncludeObject::None),
            Some("Object") => Ok(IncludeObject::Object),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                pintle_go_forms::quote(other)
            ))),
        }
    }
}
