//! Feature gates (`--feature-gates`): those for which this server supports both values.
//! <https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/>

use super::arguments::boolean;
use std::str::FromStr;

/// The enabled features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureGates {
    /// `AllowUnsafeMalformedObjectDeletion`: unreadable objects can be deleted by users with a special permission, on
    /// explicit request.
    pub allow_unsafe_malformed_object_deletion: bool,
}

impl FromStr for FeatureGates {
    type Err = String;

    /// Reads `name=bool,…`. The last value of a repeated gate applies.
    fn from_str(text: &str) -> Result<FeatureGates, String> {
        let mut gates = FeatureGates::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) =
                item.split_once('=').ok_or_else(|| format!("missing bool value for {item}"))?;
            let value = value.trim();
            let value = boolean(value).map_err(|_| format!("invalid value of {name}={value}: not a bool"))?;
            match name.trim() {
                "AllowUnsafeMalformedObjectDeletion" => gates.allow_unsafe_malformed_object_deletion = value,
                name => return Err(format!("feature gate {name} cannot be set in this server")),
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_and_others_are_refused() {
        let on = Ok(FeatureGates { allow_unsafe_malformed_object_deletion: true });
        assert_eq!("AllowUnsafeMalformedObjectDeletion=true".parse(), on);
        assert_eq!("AllowUnsafeMalformedObjectDeletion=0, AllowUnsafeMalformedObjectDeletion=1,".parse(), on);
        assert_eq!("".parse(), Ok(FeatureGates::default()));
        for bad in
            ["AllowUnsafeMalformedObjectDeletion", "AllowUnsafeMalformedObjectDeletion=x", "AllAlpha=true"]
        {
            assert!(bad.parse::<FeatureGates>().is_err(), "{bad}");
        }
    }
}
