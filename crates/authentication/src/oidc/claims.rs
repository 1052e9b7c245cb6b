//! The claims of a token.

use pintle_machinery::{Map, Value};

/// The claims of a token.
#[derive(Debug, Clone)]
pub(super) struct Claims(Map);

impl Claims {
    /// Parses a payload.
    pub(super) fn parse(payload: &[u8]) -> Option<Claims> {
        match serde_json::from_slice(payload) {
            Ok(Value::Object(members)) => Some(Claims(members)),
            _ => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn insert(&mut self, name: String, value: Value) {
        self.0.insert(name, value);
    }

    /// A claim of type string.
    ///
    /// # Errors
    /// When the claim is missing or of another type. The error does not contain its value.
    pub(super) fn text(&self, name: &str) -> Result<&str, String> {
        match self.0.get(name) {
            None => Err("claim not present".to_owned()),
            // Go decodes null as the empty string.
            Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err("it is no string".to_owned()),
        }
    }

    /// A claim that is a string or a list of strings.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || "it is neither a string nor a list of strings".to_owned();
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.to_string()]),
            Some(Value::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// The audiences of the token.
    pub(super) fn audiences(&self) -> Result<Vec<String>, String> {
        self.texts("aud").map_err(|error| format!("oidc: failed to unmarshal claims: aud: {error}"))
    }

    /// All claims, as a tree.
    pub(super) fn tree(&self) -> Value {
        Value::Object(self.0.clone())
    }
}
