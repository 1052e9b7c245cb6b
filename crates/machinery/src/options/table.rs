//! Decodes the options of a response in table form.

use crate::{FieldError, FieldPath};

/// The part of each object that a table row contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Their metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Parses the `includeObject` parameter.
    ///
    /// # Errors
    /// The field error for an unsupported value.
    pub fn parse(text: &str) -> Result<IncludeObject, FieldError> {
        match text {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "Object" => Ok(IncludeObject::Object),
            "None" => Ok(IncludeObject::None),
            other => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                Err(FieldError::invalid(&FieldPath::new("includeObject"), other, detail).of_named_type())
            }
        }
    }
}
