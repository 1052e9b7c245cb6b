//! One request for both servers.

use serde_json::Value;

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "differential";
/// The characters of a generated name before its suffix; a longer prefix is cut.
const MAX_PREFIX: usize = 58;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The prefix of a name that the server completes, which differs between answers.
    pub(super) generated: Option<String>,
    /// The description of the request in the report.
    pub(super) about: String,
}

impl Case {
    /// A request without a body.
    pub(super) fn new(method: &str, path: impl Into<String>, about: impl Into<String>) -> Case {
        Case {
            method: method.to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            generated: None,
            about: about.into(),
        }
    }

    /// Adds a header.
    pub(super) fn header(mut self, name: &str, value: &str) -> Case {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends these bytes.
    pub(super) fn bytes(self, content_type: &str, body: Vec<u8>) -> Case {
        Case { body, ..self }.header("content-type", content_type)
    }

    /// Sends JSON.
    pub(super) fn json(self, body: &Value) -> Case {
        let prefix = body.pointer("/metadata/generateName").and_then(Value::as_str);
        let generated = prefix.map(|prefix| prefix.chars().take(MAX_PREFIX).collect());
        Case { generated, ..self.bytes("application/json", body.to_string().into_bytes()) }
    }
}

/// The path of a resource in the namespace of all objects; `version` is the path of its group and version.
pub(super) fn namespaced(version: &str, resource: &str) -> String {
    format!("{version}/namespaces/{NAMESPACE}/{resource}")
}
