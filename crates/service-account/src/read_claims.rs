//! Reads claims as kube-apiserver does: with the rules and errors of its library of tokens, which takes names literally and
//! refuses an object that has one twice.

use crate::claims::{Claims, Kubernetes, LegacyClaims, Reference};
use pintle_machinery::{
    Value,
    codec::json::{decode_any, raw_members},
    text::go_json_type,
};
use serde_json::value::RawValue;
use std::collections::HashSet;

impl Claims {
    /// Reads the claims of a payload.
    ///
    /// # Errors
    /// The message of the library, when the payload is no object, or a claim has a wrong type.
    pub(crate) fn read(payload: &[u8]) -> Result<Claims, String> {
        let mut claims = Claims::default();
        let text = String::from_utf8_lossy(payload);
        read(&text, "jwt.Claims", |name, raw| match name {
            "iss" => string(raw, &mut claims.iss),
            "sub" => string(raw, &mut claims.sub),
            "jti" => string(raw, &mut claims.jti),
            "aud" => audience(raw, &mut claims.aud),
            "exp" => numeric_date(raw, &mut claims.exp),
            "nbf" => numeric_date(raw, &mut claims.nbf),
            "iat" => numeric_date(raw, &mut claims.iat),
            _ => Ok(()),
        })?;
        // The library reads the payload a second time for these, so that their errors come last.
        read(&text, "serviceaccount.privateClaims", |name, raw| match name {
            "kubernetes.io" => {
                let mut kubernetes = Kubernetes::default();
                let read = kubernetes.read(raw);
                claims.kubernetes = (!is_null(raw)).then_some(kubernetes);
                read
            }
            _ => Ok(()),
        })?;
        Ok(claims)
    }
}

impl LegacyClaims {
    /// Reads the claims of a payload.
    ///
    /// # Errors
    /// As [`Claims::read`].
    pub(crate) fn read(payload: &[u8]) -> Result<LegacyClaims, String> {
        let mut claims = LegacyClaims::default();
        read(
            &String::from_utf8_lossy(payload),
            "serviceaccount.legacyPrivateClaims",
            |name, raw| match name.strip_prefix("kubernetes.io/serviceaccount/") {
                Some("service-account.name") => string(raw, &mut claims.name),
                Some("service-account.uid") => string(raw, &mut claims.uid),
                Some("secret.name") => string(raw, &mut claims.secret),
                Some("namespace") => string(raw, &mut claims.namespace),
                _ => Ok(()),
            },
        )?;
        Ok(claims)
    }
}

impl Kubernetes {
    fn read(&mut self, raw: &RawValue) -> Result<(), Wrong> {
        object(raw, "serviceaccount.kubernetes", |name, raw| match name {
            "namespace" => string(raw, &mut self.namespace),
            "serviceaccount" => self.serviceaccount.read(raw),
            "pod" => reference(raw, &mut self.pod),
            "secret" => reference(raw, &mut self.secret),
            "node" => reference(raw, &mut self.node),
            "warnafter" => numeric_date(raw, &mut self.warnafter),
            _ => Ok(()),
        })
    }
}

impl Reference {
    fn read(&mut self, raw: &RawValue) -> Result<(), Wrong> {
        object(raw, "serviceaccount.ref", |name, raw| match name {
            "name" => string(raw, &mut self.name),
            "uid" => string(raw, &mut self.uid),
            _ => Ok(()),
        })
    }
}

/// The issuer that an unverified token claims. It is read by Go's own decoder: whatever the case of its name, and of several
/// the last one.
pub(crate) fn issuer_of(payload: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(payload);
    let mut issuer = String::new();
    for (name, raw) in raw_members(text.as_bytes()).ok()? {
        // The long s is a small one for that decoder.
        if name.replace('\u{17f}', "s").eq_ignore_ascii_case("iss") {
            string(raw, &mut issuer).ok()?;
        }
    }
    Some(issuer)
}

/// The error of one value.
enum Wrong {
    /// The decoder goes on, and returns the first of these at the end.
    Noted(String),
    /// The decoder returns.
    Final(String),
}

/// Gives each member of a payload to `member`.
fn read(
    text: &str,
    ty: &str,
    member: impl FnMut(&str, &RawValue) -> Result<(), Wrong>,
) -> Result<(), String> {
    let raw =
        serde_json::from_str(text).map_err(|error: serde_json::Error| match decode_any(text.as_bytes()) {
            Ok(_) => error.to_string(),
            Err(error) => error.to_string(),
        })?;
    match object(raw, ty, member) {
        Ok(()) => Ok(()),
        Err(Wrong::Noted(error) | Wrong::Final(error)) => Err(error),
    }
}

/// Gives each member of an object to `member`; null has none.
fn object(
    raw: &RawValue,
    ty: &str,
    mut member: impl FnMut(&str, &RawValue) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    if is_null(raw) {
        return Ok(());
    }
    if !raw.get().starts_with('{') {
        return Err(wrong_type(raw, ty));
    }
    let members = raw_members(raw.get().as_bytes()).map_err(|error| Wrong::Final(error.to_string()))?;
    let (mut names, mut noted) = (HashSet::with_capacity(members.len()), None);
    for (name, raw) in &members {
        if !names.insert(name.as_str()) {
            return Err(Wrong::Final(format!("json: duplicate key '{name}' in object")));
        }
        match member(name, raw) {
            Err(Wrong::Noted(error)) => _ = noted.get_or_insert(error),
            other => other?,
        }
    }
    noted.map_or(Ok(()), |error| Err(Wrong::Noted(error)))
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

fn value_of(raw: &RawValue) -> Result<Value, Wrong> {
    decode_any(raw.get().as_bytes()).map_err(|error| Wrong::Noted(error.to_string()))
}

fn wrong_type(raw: &RawValue, ty: &str) -> Wrong {
    // A number may be one without a float.
    let found = match decode_any(raw.get().as_bytes()) {
        Ok(value) => go_json_type(&value),
        Err(_) => "number",
    };
    let error = format!("json: cannot unmarshal {found} into Go value of type {ty}");
    if found == "number" { Wrong::Final(error) } else { Wrong::Noted(error) }
}

/// Null leaves what is there.
fn string(raw: &RawValue, into: &mut String) -> Result<(), Wrong> {
    if is_null(raw) {
        return Ok(());
    }
    if !raw.get().starts_with('"') {
        return Err(wrong_type(raw, "string"));
    }
    if let Value::String(text) = value_of(raw)? {
        *into = text.to_string();
    }
    Ok(())
}

fn reference(raw: &RawValue, into: &mut Option<Reference>) -> Result<(), Wrong> {
    let mut reference = Reference::default();
    let read = reference.read(raw);
    *into = (!is_null(raw)).then_some(reference);
    read
}

/// One audience or a list of them.
fn audience(raw: &RawValue, into: &mut Vec<String>) -> Result<(), Wrong> {
    const NO_AUDIENCE: &str = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience";
    let value = decode_any(raw.get().as_bytes()).map_err(|error| Wrong::Final(error.to_string()))?;
    unique(raw, DEEPEST)?;
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let texts = match &value {
        Value::String(text) => Some(vec![text.to_string()]),
        Value::Array(items) => items.iter().map(text).collect(),
        _ => None,
    };
    *into = texts.ok_or_else(|| Wrong::Final(NO_AUDIENCE.to_owned()))?;
    Ok(())
}

/// The depth to which values within an audience, which is wrong then, are searched for names that occur twice.
const DEEPEST: usize = 16;

/// Fails at an object that has a name twice, down to this depth.
fn unique(raw: &RawValue, depth: usize) -> Result<(), Wrong> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    if raw.get().starts_with('{') {
        return object(raw, "", |_, raw| unique(raw, depth));
    }
    if raw.get().starts_with('[') {
        let items: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|error| Wrong::Final(error.to_string()))?;
        items.into_iter().try_for_each(|item| unique(item, depth))?;
    }
    Ok(())
}

/// Seconds since 1970; fractions are dropped. A number that does not fit becomes the smallest one, as in Go, so that a token
/// that expires beyond all time has expired.
fn numeric_date(raw: &RawValue, into: &mut Option<i64>) -> Result<(), Wrong> {
    const NO_DATE: &str = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
    const END: f64 = 9_223_372_036_854_775_808.0;
    if is_null(raw) {
        *into = None;
        return Ok(());
    }
    let is_number = raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let seconds = raw.get().parse::<f64>().ok().filter(|seconds| is_number && seconds.is_finite());
    let seconds = seconds.ok_or_else(|| Wrong::Final(NO_DATE.to_owned()))?;
    *into = Some(if (-END..END).contains(&seconds) { seconds as i64 } else { i64::MIN });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_by_the_rules_of_the_library() {
        let read = |json: &str| Claims::read(json.as_bytes()).map(|claims| (claims.aud, claims.exp));
        assert_eq!(read(r#"{"aud":"a","exp":1.9,"x":{"y":1,"y":2}}"#), Ok((vec!["a".to_owned()], Some(1))));
        assert_eq!(read(r#"{"aud":["a","b"],"exp":null}"#), Ok((vec!["a".to_owned(), "b".to_owned()], None)));
        let nothing = Ok((vec![], None));
        assert_eq!(read(r#"{"kubernetes.io":{"pod":null,"serviceaccount":null},"iss":null}"#), nothing);
        assert_eq!(read(r#"{"AUD":5,"kubernetes.io":null}"#), nothing);
        assert_eq!(read(r#"{"jti":"\ud800"}"#), nothing);
        for beyond in ["9223372036854775807", "1e300", "-1e300"] {
            assert_eq!(read(&format!(r#"{{"exp":{beyond}}}"#)).unwrap().1, Some(i64::MIN), "{beyond}");
        }
        let audience = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience";
        let date = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
        let wrong =
            |found: &str, ty: &str| format!("json: cannot unmarshal {found} into Go value of type {ty}");
        let twice = |name: &str| format!("json: duplicate key '{name}' in object");
        for (payload, error) in [
            (r#"{"aud":5}"#, audience),
            (r#"{"aud":[5]}"#, audience),
            (r#"{"aud":null}"#, audience),
            (r#"{"aud":[null]}"#, audience),
            (r#"{"aud":[{"a":1,"a":2}]}"#, &twice("a")),
            (r#"{"exp":"1"}"#, date),
            (r#"{"exp":1e999}"#, date),
            (r#"{"nbf":{}}"#, date),
            (r#"{"kubernetes.io":{"warnafter":true}}"#, date),
            (r#"{"exp":1,"exp":99999999999}"#, &twice("exp")),
            (r#"{"aud":"a","aud":"b"}"#, &twice("aud")),
            (r#"{"kubernetes.io":{"pod":{"name":"a","name":"b"}}}"#, &twice("name")),
            (r#"{"sub":["x"]}"#, &wrong("array", "string")),
            // The first of the noted errors is told, unless a final one follows.
            (r#"{"sub":["x"],"jti":true}"#, &wrong("array", "string")),
            (r#"{"sub":["x"],"jti":1}"#, &wrong("number", "string")),
            (r#"{"sub":["x"],"exp":"x"}"#, date),
            (r#"{"kubernetes.io":{"pod":["x"]},"sub":{}}"#, &wrong("object", "string")),
            (r#"{"kubernetes.io":["x"]}"#, &wrong("array", "serviceaccount.kubernetes")),
            (r#"{"kubernetes.io":{"pod":["x"]}}"#, &wrong("array", "serviceaccount.ref")),
            (r#"{"kubernetes.io":{"serviceaccount":"x"}}"#, &wrong("string", "serviceaccount.ref")),
            (r#"{"kubernetes.io":{"node":{"uid":{}}}}"#, &wrong("object", "string")),
            ("[]", &wrong("array", "jwt.Claims")),
            ("{}x", "invalid character 'x' after top-level value"),
        ] {
            assert_eq!(read(payload), Err(error.to_owned()), "{payload}");
        }
        let deep = format!(r#"{{"aud":{}{}}}"#, "[".repeat(9000), "]".repeat(9000));
        assert!(read(&deep).is_err());
        let legacy = |json: &str| LegacyClaims::read(json.as_bytes()).map(|claims| claims.namespace);
        assert_eq!(legacy(r#"{"kubernetes.io/serviceaccount/namespace":"a"}"#), Ok("a".to_owned()));
        let number = r#"{"kubernetes.io/serviceaccount/namespace":1}"#;
        assert_eq!(legacy(number), Err(wrong("number", "string")));
    }

    #[test]
    fn an_unverified_issuer_is_the_last_one_whatever_its_case() {
        for (payload, issuer) in [
            (r#" {"iss":"a"}"#, Some("a")),
            (r#"{"iss":"a","ISS":"b"}"#, Some("b")),
            (r#"{"ISS":"b","i\u017fs":"a","iss":null}"#, Some("a")),
            (r#"["a"]"#, None),
            ("{}", Some("")),
            (r#"{"iss":5}"#, None),
        ] {
            assert_eq!(issuer_of(payload.as_bytes()).as_deref(), issuer, "{payload}");
        }
    }
}
