//! The header of a token, as a signer writes it.

use pintle_go_forms::{base64::decode_raw_url, quote};
use pintle_machinery::{
    Value,
    codec::json::{decode_any, raw_members},
    text::go_json_type,
};
use serde_json::value::RawValue;

/// The members of a header. Any other member is an error: this server could not know what it means.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// The algorithm.
    pub(super) alg: String,
    /// The id of the key.
    pub(super) kid: String,
    /// The type.
    pub(super) typ: String,
}

impl Header {
    /// Reads the first segment of a token by the rules of Go's decoder: the case of names does not matter, the last of
    /// several members counts, and what follows the first value is not read.
    ///
    /// # Errors
    /// The message of kube-apiserver, when the segment is not base64, or its JSON no header.
    pub(super) fn read(segment: &str) -> Result<Header, String> {
        let json = decode_raw_url(segment).map_err(|error| format!("while unwrapping header: {error}"))?;
        Header::parse(&json).map_err(|error| format!("while parsing header JSON: {error}"))
    }

    fn parse(json: &[u8]) -> Result<Header, String> {
        let text = String::from_utf8_lossy(json);
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>();
        let raw = match values.next() {
            Some(Ok(raw)) => raw.get(),
            Some(Err(error)) => {
                return Err(decode_any(text.as_bytes()).err().map_or(error.to_string(), |e| e.to_string()));
            }
            None => return Err("EOF".to_owned()),
        };
        let mut header = Header::default();
        if !raw.starts_with('{') {
            let found = value_type(raw)?;
            return match found {
                "null" => Ok(header),
                _ => Err(format!("json: cannot unmarshal {found} into Go value of type {GO_TYPE}")),
            };
        }
        let mut fault = None;
        for (name, raw) in raw_members(raw.as_bytes()).map_err(|error| error.to_string())? {
            let noted = match header.member(&name) {
                None => Some(format!("json: unknown field {}", quote(&name))),
                Some((member, place)) => match decode_any(raw.get().as_bytes()) {
                    Ok(Value::String(text)) => {
                        *place = text.to_string();
                        None
                    }
                    // It leaves what is there.
                    Ok(Value::Null) => None,
                    _ => {
                        let found = value_type(raw.get())?;
                        Some(format!(
                            "json: cannot unmarshal {found} into Go struct field .{member} of type string"
                        ))
                    }
                },
            };
            fault = fault.or(noted);
        }
        fault.map_or(Ok(header), Err)
    }

    fn member(&mut self, name: &str) -> Option<(&'static str, &mut String)> {
        // These letters are folded to ASCII ones.
        let name = name.replace('\u{212a}', "k").to_ascii_lowercase();
        match name.as_str() {
            "alg" => Some(("alg", &mut self.alg)),
            "kid" => Some(("kid", &mut self.kid)),
            "typ" => Some(("typ", &mut self.typ)),
            _ => None,
        }
    }
}

/// Go's type of the header, which has no name.
const GO_TYPE: &str = "struct { Algorithm string \"json:\\\"alg,omitempty\\\"\"; KeyID string \
                       \"json:\\\"kid,omitempty\\\"\"; Type string \"json:\\\"typ,omitempty\\\"\" }";

/// The type of a value in the messages of Go's decoder.
fn value_type(raw: &str) -> Result<&'static str, String> {
    match decode_any(raw.as_bytes()) {
        Ok(Value::Null) => Ok("null"),
        Ok(value) => Ok(go_json_type(&value)),
        // A number may be one without a float.
        Err(_) if raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Ok("number"),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

    fn header(alg: &str, kid: &str, typ: &str) -> Header {
        Header { alg: alg.to_owned(), kid: kid.to_owned(), typ: typ.to_owned() }
    }

    #[test]
    fn headers_are_read_by_the_rules_of_go() {
        let read = |json: &str| Header::read(&URL_SAFE_NO_PAD.encode(json));
        let wanted = header("ES256", "k", "JWT");
        for json in [
            r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#,
            r#" {"ALG":"ES256","Kid":"k","typ":"JWT"} {}"#,
            "{\"alg\":\"none\",\"alg\":\"ES256\",\"\u{212a}id\":\"k\",\"typ\":\"JWT\",\"typ\":null}",
        ] {
            assert_eq!(read(json), Ok(header("ES256", "k", "JWT")), "{json}");
        }
        assert_eq!(read("null"), Ok(Header::default()));
        assert_eq!(Header::read("eyJhbGciOiJFUzI1NiIs\nImtpZCI6ImsiLCJ0eXAiOiJKV1QifQ"), Ok(wanted));
    }

    #[test]
    fn what_is_no_header_fails_with_the_message_of_go() {
        for (json, wanted) in [
            ("", "EOF".to_owned()),
            ("no", "invalid character 'o' in literal null (expecting 'u')".to_owned()),
            ("[]", format!("json: cannot unmarshal array into Go value of type {GO_TYPE}")),
            ("1e999", format!("json: cannot unmarshal number into Go value of type {GO_TYPE}")),
            (r#"{"crit":["x"],"alg":1}"#, "json: unknown field \"crit\"".to_owned()),
            (
                r#"{"alg":1,"crit":["x"]}"#,
                "json: cannot unmarshal number into Go struct field .alg of type string".to_owned(),
            ),
        ] {
            let wanted = format!("while parsing header JSON: {wanted}");
            assert_eq!(Header::read(&URL_SAFE_NO_PAD.encode(json)), Err(wanted), "{json}");
        }
        let unreadable = "while unwrapping header: illegal base64 data at input byte 3";
        assert_eq!(Header::read("eyJ="), Err(unreadable.to_owned()));
    }
}
