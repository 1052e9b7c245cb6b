//! The claims of a token.

use pintle_machinery::{
    Map, Value,
    codec::json::{decode_any, raw_members},
    text::go_json_type,
};

/// The claims of a token. Of a claim that occurs twice, the last one counts.
#[derive(Debug, Clone)]
pub(super) struct Claims {
    members: Map,
    /// The claims of the standard whose names are spelt in another case: Go's decoder takes the last one of either.
    respelt: Vec<(&'static str, Value)>,
}

/// The claims that the standard defines.
const STANDARD: [&str; 10] =
    ["iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "at_hash", "_claim_names", "_claim_sources"];

impl Claims {
    /// Parses a payload.
    ///
    /// # Errors
    /// When it is not an object. The error is that of Go's decoder.
    pub(super) fn parse(payload: &[u8]) -> Result<Claims, String> {
        let members = match decode_any(payload).map_err(|error| error.to_string())? {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => {
                let found = go_json_type(&other);
                return Err(format!("json: cannot unmarshal {found} into Go value of type oidc.idToken"));
            }
        };
        let respelt =
            |name: &str| STANDARD.into_iter().find(|own| own.eq_ignore_ascii_case(name) && *own != name);
        let respelt = match members.keys().any(|name| respelt(name).is_some()) {
            true => last_spellings(&String::from_utf8_lossy(payload)),
            false => Vec::new(),
        };
        Ok(Claims { members, respelt })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// A claim of the standard, which Go's decoder finds whatever the case of its letters.
    pub(super) fn standard(&self, name: &str) -> Option<&Value> {
        let respelt = self.respelt.iter().rev().find(|(own, _)| *own == name);
        respelt.map(|(_, value)| value).or_else(|| self.members.get(name))
    }

    pub(super) fn insert(&mut self, name: String, value: Value) {
        self.members.insert(name, value);
    }

    /// A claim of type string.
    ///
    /// # Errors
    /// When the claim is missing or of another type. The error does not contain its value.
    pub(super) fn text(&self, name: &str) -> Result<&str, String> {
        match self.members.get(name) {
            None => Err("claim not present".to_owned()),
            // Go decodes null as the empty string.
            Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(wrong(other, "string")),
        }
    }

    /// A claim that is a boolean.
    ///
    /// # Errors
    /// When the claim is of another type.
    pub(super) fn boolean(&self, name: &str) -> Result<bool, String> {
        match self.members.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(wrong(other, "bool")),
        }
    }

    /// A claim that is a string or a list of strings.
    ///
    /// # Errors
    /// When the claim is of another type.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        match self.members.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.to_string()]),
            Some(value) => texts(value).ok_or_else(|| wrong(value, "string")),
        }
    }

    /// All claims, as a tree.
    pub(super) fn tree(&self) -> Value {
        Value::Object(self.members.clone())
    }
}

/// The standard claims of a payload in their order, whatever the case of their names.
fn last_spellings(payload: &str) -> Vec<(&'static str, Value)> {
    let members = raw_members(payload.as_bytes()).unwrap_or_default();
    let standard = members.iter().filter_map(|(name, raw)| {
        let name = STANDARD.into_iter().find(|own| own.eq_ignore_ascii_case(name))?;
        Some((name, decode_any(raw.get().as_bytes()).ok()?))
    });
    standard.collect()
}

/// The texts of a list, of which null is the empty one.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    let text = |item: &Value| match item {
        Value::Null => Some(String::new()),
        item => item.as_str().map(str::to_owned),
    };
    value.as_array()?.iter().map(text).collect()
}

fn wrong(found: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", go_json_type(found))
}
