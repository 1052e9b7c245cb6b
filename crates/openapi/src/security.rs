//! The security scheme of the documents.

use pintle_machinery::{Value, json};

/// Authentication by bearer token.
pub(crate) fn bearer_token() -> Value {
    json!({
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
        "description": "Bearer Token authentication",
    })
}
