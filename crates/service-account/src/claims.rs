//! The claims of tokens.

use crate::user;
use pintle_jwt::Token;
use pintle_machinery::UserInfo;
use serde::Serialize;
use std::collections::BTreeMap;

/// A reference to an object, by name and uid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Reference {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid; "" when it is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// The object that a token is bound to, besides its account: the token is valid only while the object exists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Binding {
    /// No object.
    #[default]
    None,
    /// A pod. Its node is only recorded in the token, and not checked.
    Pod(Reference, Option<Reference>),
    /// A secret.
    Secret(Reference),
    /// A node.
    Node(Reference),
}

/// The claims of a token. Their order is alphabetical, as Kubernetes writes them.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Claims {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aud: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iat: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) iss: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io", skip_serializing_if = "Option::is_none")]
    pub(crate) kubernetes: Option<Kubernetes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nbf: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) sub: String,
}

/// The objects that a token names.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Kubernetes {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    pub(crate) serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// The claims of a token in a secret, besides `sub`.
#[derive(Debug, Clone, Default)]
pub(crate) struct LegacyClaims {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) secret: String,
    pub(crate) namespace: String,
}

impl Claims {
    /// The claims as JSON in Go's format: HTML characters are escaped.
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        // JSON has these characters only in strings.
        let escape = |c: char| match c {
            '<' => "\\u003c",
            '>' => "\\u003e",
            '&' => "\\u0026",
            '\u{2028}' => "\\u2028",
            '\u{2029}' => "\\u2029",
            _ => "",
        };
        if json.chars().all(|c| escape(c).is_empty()) {
            return Ok(json);
        }
        let mut escaped = String::with_capacity(json.len() + 16);
        for c in json.chars() {
            match escape(c) {
                "" => escaped.push(c),
                escape => escaped.push_str(escape),
            }
        }
        Ok(escaped)
    }
}

impl Kubernetes {
    /// The user's data from the token.
    pub(crate) fn user(&self, token_id: &str) -> UserInfo {
        let mut extra = BTreeMap::new();
        let mut tell = |key: &str, value: &str| {
            if !value.is_empty() {
                extra.insert(key.to_owned(), vec![value.to_owned()]);
            }
        };
        if let Some(pod) = self.pod.as_ref().filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
            tell(user::POD_NAME, &pod.name);
            tell(user::POD_UID, &pod.uid);
        }
        if !token_id.is_empty() {
            tell(user::CREDENTIAL_ID, &credential_id(token_id));
        }
        if let Some(node) = self.node.as_ref().filter(|node| !node.name.is_empty()) {
            tell(user::NODE_NAME, &node.name);
            tell(user::NODE_UID, &node.uid);
        }
        let account = &self.serviceaccount;
        user::user(&self.namespace, &account.name, &account.uid, extra)
    }
}

/// The credential id of a token, in audit events and user extras.
pub(crate) fn credential_id(token_id: &str) -> String {
    format!("JTI={token_id}")
}

/// The id of a token that this server has issued, in the form of the extra fields of users.
pub fn credential_id_of(token: &str) -> Option<String> {
    let claims = Claims::read(&Token::peek(token)?).ok()?;
    (!claims.jti.is_empty()).then(|| credential_id(&claims.jti))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_written_as_the_reference_writes_them() {
        let reference = |name: &str, uid: &str| Reference { name: name.to_owned(), uid: uid.to_owned() };
        let mut claims = Claims {
            aud: vec!["https://kubernetes.default.svc".to_owned()],
            exp: Some(1_795_272_286),
            iat: Some(1_795_268_686),
            iss: "https://kubernetes.default.svc".to_owned(),
            jti: "0dac3afa-9485-4985-9628-346e6304b2d5".to_owned(),
            kubernetes: Some(Kubernetes {
                namespace: "default".to_owned(),
                serviceaccount: reference("bot", "6fd3e324"),
                ..Kubernetes::default()
            }),
            nbf: Some(1_795_268_686),
            sub: "system:serviceaccount:default:bot".to_owned(),
        };
        assert_eq!(
            claims.to_json().unwrap(),
            r#"{"aud":["https://kubernetes.default.svc"],"exp":1795272286,"iat":1795268686,"iss":"https://kubernetes.default.svc","jti":"0dac3afa-9485-4985-9628-346e6304b2d5","kubernetes.io":{"namespace":"default","serviceaccount":{"name":"bot","uid":"6fd3e324"}},"nbf":1795268686,"sub":"system:serviceaccount:default:bot"}"#
        );
        claims.aud = vec!["<a&b>".to_owned()];
        let kubernetes = claims.kubernetes.as_mut().unwrap();
        kubernetes.node = Some(reference("n", ""));
        kubernetes.pod = Some(reference("p", "1"));
        kubernetes.warnafter = Some(5);
        let json = claims.to_json().unwrap();
        assert!(json.starts_with(r#"{"aud":["\u003ca\u0026b\u003e"],"#), "{json}");
        assert!(
            json.contains(r#""kubernetes.io":{"namespace":"default","node":{"name":"n"},"pod":{"name":"p","uid":"1"},"serviceaccount":{"name":"bot","uid":"6fd3e324"},"warnafter":5}"#),
            "{json}"
        );
        let again = Claims::read(json.as_bytes()).unwrap();
        assert_eq!(again.to_json().unwrap(), json);
    }
}
