//! The claims of tokens.

use crate::user;
use pintle_jwt::Token;
use pintle_machinery::UserInfo;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A reference to an object, by name and uid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub name: String,
    /// The uid; "" when it is unknown.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Claims {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "audience")]
    pub(crate) aud: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "numeric_date")]
    pub(crate) exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "numeric_date")]
    pub(crate) iat: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub(crate) iss: String,
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io", skip_serializing_if = "Option::is_none")]
    pub(crate) kubernetes: Option<Kubernetes>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "numeric_date")]
    pub(crate) nbf: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub(crate) sub: String,
}

/// The objects that a token names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kubernetes {
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "numeric_date")]
    pub(crate) warnafter: Option<i64>,
}

/// The claims of a token in a secret, besides `sub`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LegacyClaims {
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name", deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid", deserialize_with = "or_default")]
    pub(crate) uid: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name", deserialize_with = "or_default")]
    pub(crate) secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace", deserialize_with = "or_default")]
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
    let claims: Claims = serde_json::from_slice(&Token::peek(token)?).ok()?;
    (!claims.jti.is_empty()).then(|| credential_id(&claims.jti))
}

/// The issuer that an unverified token claims.
pub(crate) fn issuer_of(payload: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: Option<String>,
    }
    // The decoder would accept a list as the members.
    if payload.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice::<Issuer>(payload).ok()?.iss
}

/// null is the same as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// One audience or a list of them.
fn audience<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(one) => vec![one],
        Audience::Several(several) => several,
    })
}

/// Seconds since 1970; fractions are dropped. What does not fit is the smallest number, as Go converts it, so that a token
/// that expires beyond all time has expired.
fn numeric_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let whole = |seconds: f64| if (-END..END).contains(&seconds) { seconds as i64 } else { i64::MIN };
    Ok(Option::<f64>::deserialize(deserializer)?.map(whole))
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
        let again: Claims = serde_json::from_str(&json).unwrap();
        assert_eq!(again.to_json().unwrap(), json);
    }

    #[test]
    fn claims_are_read_leniently_and_never_twice() {
        let read = |json: &str| serde_json::from_str::<Claims>(json).map(|claims| (claims.aud, claims.exp));
        assert_eq!(read(r#"{"aud":"a","exp":1.9,"x":{}}"#).unwrap(), (vec!["a".to_owned()], Some(1)));
        assert_eq!(
            read(r#"{"aud":["a","b"],"exp":null}"#).unwrap(),
            (vec!["a".to_owned(), "b".to_owned()], None)
        );
        assert_eq!(
            read(r#"{"kubernetes.io":{"pod":null,"serviceaccount":null},"iss":null}"#).unwrap(),
            (vec![], None)
        );
        for beyond in ["9223372036854775807", "1e300", "-1e300"] {
            assert_eq!(read(&format!(r#"{{"exp":{beyond}}}"#)).unwrap().1, Some(i64::MIN), "{beyond}");
        }
        for wrong in [
            r#"{"aud":5}"#,
            r#"{"aud":[5]}"#,
            r#"{"exp":"1"}"#,
            r#"{"exp":1,"exp":99999999999}"#,
            r#"{"aud":"a","aud":"b"}"#,
            r#"{"kubernetes.io":{"pod":{"name":"a","name":"b"}}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for (payload, issuer) in
            [(r#" {"iss":"a"}"#, Some("a")), (r#"["a"]"#, None), ("{}", None), (r#"{"iss":5}"#, None)]
        {
            assert_eq!(issuer_of(payload.as_bytes()).as_deref(), issuer, "{payload}");
        }
    }
}
