//! The treatment of unknown and duplicate fields in bodies.

/// The `fieldValidation` option
/// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#validation-for-unrecognized-or-duplicate-fields>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Unknown and duplicate fields are dropped.
    Ignore,
    /// Unknown and duplicate fields are dropped, and the client gets a warning.
    #[default]
    Warn,
    /// Unknown and duplicate fields fail the request.
    Strict,
}

impl FieldValidation {
    /// Parses the option; "" is `Warn`, and an invalid value is `None`.
    pub fn parse(text: &str) -> Option<FieldValidation> {
        match text {
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            "Strict" => Some(FieldValidation::Strict),
            _ => None,
        }
    }

    /// The option's value.
    pub fn as_str(self) -> &'static str {
        match self {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Warn => "Warn",
            FieldValidation::Strict => "Strict",
        }
    }
}
