//! Reads the claims that the standard defines
//! (<https://openid.net/specs/openid-connect-core-1_0.html#IDToken>), with the types that kube-apiserver requires.

use super::claims::{Claims, texts};
use pintle_go_forms::quote;
use pintle_machinery::{Value, text::go_json_type};
use std::collections::HashSet;

/// The standard claims of a token.
#[derive(Debug)]
pub(super) struct IdToken {
    pub(super) audiences: Vec<String>,
    /// The end of validity, in seconds since 1970; the year 1 when the claim is missing.
    pub(super) expiry: i64,
    /// The start of validity, in seconds since 1970.
    pub(super) not_before: Option<i64>,
}

/// The start of the year 1, in seconds since 1970: Go's zero time.
pub(super) const YEAR_ONE: i64 = -62_135_596_800;

impl IdToken {
    /// Reads the claims of a payload.
    ///
    /// # Errors
    /// When a claim has a wrong type, or refers to a source that does not exist. The text is the library's.
    pub(super) fn of(claims: &Claims) -> Result<IdToken, String> {
        let unmarshal = |error: String| format!("oidc: failed to unmarshal claims: {error}");
        let mut wrong_text = None;
        for name in ["iss", "sub", "nonce", "at_hash"] {
            if let Some(value) = claims.standard(name)
                && !matches!(value, Value::Null | Value::String(_))
            {
                wrong_text.get_or_insert_with(|| wrong(value, name, "string"));
            }
        }
        let time = |name: &str| match claims.standard(name) {
            None => Ok(None),
            Some(value) => seconds(name, value).map(Some),
        };
        // Errors of these claims are found while the others are still read.
        let audiences = audiences(claims.standard("aud")).map_err(unmarshal)?;
        let expiry = time("exp").map_err(unmarshal)?;
        time("iat").map_err(unmarshal)?;
        let not_before = match claims.standard("nbf") {
            None | Some(Value::Null) => None,
            Some(value) => Some(seconds("nbf", value).map_err(unmarshal)?),
        };
        let sources = members(claims, "_claim_sources", "map[string]oidc.claimSource");
        let names = members(claims, "_claim_names", "map[string]string");
        let (names, sources) = match (wrong_text, names, sources) {
            (None, Ok(names), Ok(sources)) => (names, sources),
            (Some(error), ..) | (None, Err(error), _) | (None, Ok(_), Err(error)) => {
                return Err(unmarshal(error));
            }
        };
        for (_, source) in &sources {
            check_source(source).map_err(unmarshal)?;
        }
        let sources: HashSet<&str> = sources.into_iter().map(|(name, _)| name).collect();
        for (_, source) in &names {
            match source {
                Value::Null => return Err("oidc: failed to obtain source from claim name".to_owned()),
                Value::String(name) if name.is_empty() => {
                    return Err("oidc: failed to obtain source from claim name".to_owned());
                }
                Value::String(name) if !sources.contains(&**name) => {
                    return Err("oidc: source does not exist".to_owned());
                }
                Value::String(_) => {}
                other => return Err(unmarshal(wrong(other, "_claim_names", "string"))),
            }
        }
        Ok(IdToken { audiences, expiry: expiry.unwrap_or(YEAR_ONE), not_before })
    }
}

/// The members of a claim that is an object.
fn members<'a>(claims: &'a Claims, name: &str, ty: &str) -> Result<Vec<(&'a str, &'a Value)>, String> {
    match claims.standard(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(members)) => Ok(members.iter().map(|(name, value)| (&**name, value)).collect()),
        Some(other) => Err(wrong(other, name, ty)),
    }
}

fn check_source(source: &Value) -> Result<(), String> {
    let members = match source {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other => return Err(wrong(other, "_claim_sources", "oidc.claimSource")),
    };
    for name in ["endpoint", "access_token"] {
        if let Some(value) = members.get(name)
            && !matches!(value, Value::Null | Value::String(_))
        {
            let found = go_json_type(value);
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field claimSource._claim_sources.{name} of type string"
            ));
        }
    }
    Ok(())
}

/// The audiences: one, or a list.
fn audiences(claim: Option<&Value>) -> Result<Vec<String>, String> {
    match claim {
        None => Ok(Vec::new()),
        Some(Value::Null) => Ok(vec![String::new()]),
        Some(Value::String(text)) => Ok(vec![text.to_string()]),
        Some(list @ Value::Array(items)) => texts(list).ok_or_else(|| {
            let other = items.iter().find(|item| !matches!(item, Value::Null | Value::String(_)));
            wrong(other.unwrap_or(&Value::Null), "aud", "string")
        }),
        Some(other) => Err(wrong(other, "aud", "[]string")),
    }
}

/// A time: a number of JSON, or one in a string.
fn seconds(name: &str, value: &Value) -> Result<i64, String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) if is_number(text) => text.to_string(),
        Value::String(text) => {
            let literal = quote(&quote(text));
            return Err(format!("json: invalid number literal, trying to unmarshal {literal} into Number"));
        }
        Value::Null => return Err("strconv.ParseFloat: parsing \"\": invalid syntax".to_owned()),
        other => return Err(wrong(other, name, "json.Number")),
    };
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    match text.parse::<f64>() {
        // Go's conversion of what does not fit is the smallest number.
        Ok(float) if float.is_finite() => {
            let fits = (-9.3e18..9_223_372_036_854_775_808.0).contains(&float);
            Ok(if fits { float as i64 } else { i64::MIN })
        }
        _ => Err(format!("strconv.ParseFloat: parsing {}: value out of range", quote(&text))),
    }
}

/// Whether a text is a number of JSON.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    let (number, rest) = rest.split_at(whole);
    if whole == 0 || whole > 1 && number.starts_with('0') {
        return false;
    }
    let rest = match rest.strip_prefix('.') {
        None => rest,
        Some(rest) => match digits(rest) {
            0 => return false,
            count => rest.split_at(count).1,
        },
    };
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(rest) => {
            let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            !rest.is_empty() && digits(rest) == rest.len()
        }
    }
}

fn wrong(found: &Value, name: &str, ty: &str) -> String {
    format!("json: cannot unmarshal {} into Go struct field idToken.{name} of type {ty}", go_json_type(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fmt::Write,
        time::{Duration, Instant},
    };

    #[test]
    fn sources_of_very_many_claims_are_looked_up() {
        let (mut names, mut sources) = (String::new(), String::new());
        for number in 0..30_000 {
            let comma = if number > 0 { "," } else { "" };
            write!(names, r#"{comma}"n{number}":"s{number}""#).unwrap();
            write!(sources, r#"{comma}"s{number}":{{}}"#).unwrap();
        }
        let payload = format!(r#"{{"_claim_names":{{{names}}},"_claim_sources":{{{sources}}}}}"#);
        let started = Instant::now();
        assert_eq!(read(&payload), Ok((Vec::new(), YEAR_ONE, None)));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }

    fn read(payload: &str) -> Result<(Vec<String>, i64, Option<i64>), String> {
        let claims = Claims::parse(payload.as_bytes()).unwrap();
        IdToken::of(&claims).map(|token| (token.audiences, token.expiry, token.not_before))
    }

    #[test]
    fn claims_have_the_types_that_the_reference_reads() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (payload, expected) in [
            ("{}", (list(&[]), YEAR_ONE, None)),
            ("null", (list(&[]), YEAR_ONE, None)),
            (r#"{"aud":"a","exp":5,"nbf":null}"#, (list(&["a"]), 5, None)),
            (r#"{"aud":["a",null],"exp":"5","nbf":"1e3"}"#, (list(&["a", ""]), 5, Some(1000))),
            (r#"{"aud":null,"exp":1.9}"#, (list(&[""]), 1, None)),
            (r#"{"exp":9223372036854775807}"#, (list(&[]), i64::MAX, None)),
            (r#"{"exp":9223372036854775808}"#, (list(&[]), i64::MIN, None)),
            (r#"{"exp":1e300}"#, (list(&[]), i64::MIN, None)),
            (r#"{"exp":1,"EXP":2}"#, (list(&[]), 2, None)),
            (r#"{"EXP":2,"exp":1}"#, (list(&[]), 1, None)),
            (r#"{"_claim_names":{"a":"b"},"_claim_sources":{"b":null}}"#, (list(&[]), YEAR_ONE, None)),
        ] {
            assert_eq!(read(payload), Ok(expected), "{payload}");
        }
        let field = "oidc: failed to unmarshal claims: json: cannot unmarshal";
        for (payload, expected) in [
            (r#"{"sub":1}"#, format!("{field} number into Go struct field idToken.sub of type string")),
            (r#"{"aud":1}"#, format!("{field} number into Go struct field idToken.aud of type []string")),
            (r#"{"aud":[1]}"#, format!("{field} number into Go struct field idToken.aud of type string")),
            (r#"{"iat":{}}"#, format!("{field} object into Go struct field idToken.iat of type json.Number")),
            (
                r#"{"exp":null}"#,
                "oidc: failed to unmarshal claims: strconv.ParseFloat: parsing \"\": invalid syntax".to_owned(),
            ),
            (
                r#"{"exp":"01"}"#,
                "oidc: failed to unmarshal claims: json: invalid number literal, trying to unmarshal \"\\\"01\\\"\" into \
                 Number"
                    .to_owned(),
            ),
            (r#"{"_claim_names":{"a":""}}"#, "oidc: failed to obtain source from claim name".to_owned()),
            (r#"{"_claim_names":{"a":"b"}}"#, "oidc: source does not exist".to_owned()),
            (
                r#"{"_claim_sources":{"a":{"endpoint":1}}}"#,
                format!("{field} number into Go struct field claimSource._claim_sources.endpoint of type string"),
            ),
        ] {
            assert_eq!(read(payload), Err(expected), "{payload}");
        }
    }
}
