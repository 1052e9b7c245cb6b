//! Options of an answer in table form.

use crate::{FieldError, FieldPath};

/// What a table's rows carry of their objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Their metadata.
    #[default]
    Metadata,
    /// All of them.
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<IncludeObject, FieldError> {
        match text {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "Object" => Ok(IncludeObject::Object),
            "None" => Ok(IncludeObject::None),
            other => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                Err(FieldError::invalid(&FieldPath::new("includeObject"), other, detail))
            }
        }
    }
}
