//! Media types with parameters, as `ParseMediaType` of Go's `mime` reads them.

/// The media type of a text such as `application/json; charset=utf-8`, without its parameters, as it is written. `None`
/// for a text whose parameters cannot be read: one has no value, or several have the same name and other values.
///
/// The media type itself is not checked: a text that names none is no name of a known one.
pub fn media_type(text: &str) -> Option<&str> {
    read(text).ok()
}

/// The error with which `ParseMediaType` of Go's `mime` refuses a text; `None` for a media type.
pub fn media_type_error(text: &str) -> Option<&'static str> {
    let (name, _) = text.split_once(';').unwrap_or((text, ""));
    name_error(name.trim()).or_else(|| read(text).err())
}

fn name_error(name: &str) -> Option<&'static str> {
    let Some((_, rest)) = token(name) else { return Some("mime: no media type") };
    if rest.is_empty() {
        return None;
    }
    let Some(subtype) = rest.strip_prefix('/') else { return Some("mime: expected slash after first token") };
    match token(subtype) {
        None => Some("mime: expected token after slash"),
        Some((_, "")) => None,
        Some(_) => Some("mime: unexpected content after media subtype"),
    }
}

fn read(text: &str) -> Result<&str, &'static str> {
    const INVALID: &str = "mime: invalid media parameter";
    let (name, _) = text.split_once(';').unwrap_or((text, ""));
    let mut rest = text.get(name.len()..).unwrap_or_default();
    let mut found: Vec<(String, String)> = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        let Some((key, value, after)) = parameter(rest) else {
            // A semicolon at the end is ignored.
            return if rest.trim() == ";" { Ok(name.trim()) } else { Err(INVALID) };
        };
        let key = key.to_ascii_lowercase();
        match found.iter().find(|(own, _)| *own == key) {
            Some((_, before)) if *before != value => return Err("mime: duplicate parameter name"),
            Some(_) => {}
            None if found.len() >= MAX_PARAMETERS => return Err(INVALID),
            None => found.push((key, value)),
        }
        rest = after;
    }
    Ok(name.trim())
}

/// The most parameters of a media type. Each is compared with those before it.
const MAX_PARAMETERS: usize = 64;

/// The name and the value of the parameter behind the semicolon that the text begins with, and the text after it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (key, rest) = token(text.strip_prefix(';')?.trim_start())?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    match rest.strip_prefix('"') {
        Some(quoted) => quoted_value(quoted).map(|(value, rest)| (key, value, rest)),
        None => token(rest).map(|(value, rest)| (key, value.to_owned(), rest)),
    }
}

/// The characters that a token cannot have, though they are printable.
const SPECIAL: &str = "()<>@,;:\\\"/[]?=";

/// The token that the text begins with, and the text after it.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_part = |character: char| character.is_ascii_graphic() && !SPECIAL.contains(character);
    let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The value before the closing quote, and the text after it.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\r' | '\n' => return None,
            '\\' => match characters.next_if(|(_, next)| SPECIAL.contains(*next)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push(character),
            },
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("application/json", Some("application/json")),
            (" Application/JSON ;charset=utf-8", Some("Application/JSON")),
            ("application/json; charset=\"a;\\\"b\" ; x = y", Some("application/json")),
            ("application/json;", Some("application/json")),
            ("application/json; ", Some("application/json")),
            ("application/json;;", None),
            ("application/json;x", None),
            ("application/json;x=", None),
            ("application/json;=y", None),
            ("application/json;x=\"y", None),
            ("application/json;x=y z", None),
            ("application/json;x=y;X=y", Some("application/json")),
            ("application/json;x=y;X=z", None),
            ("application/json;x=\"\"", Some("application/json")),
            ("application/json;\u{e9}=y", None),
            ("", Some("")),
        ] {
            assert_eq!(media_type(text), expected, "{text}");
        }
        for (text, expected) in [
            ("text", None),
            ("text/x ; a=b", None),
            ("", Some("mime: no media type")),
            (";a=b", Some("mime: no media type")),
            ("bad type", Some("mime: expected slash after first token")),
            ("text/", Some("mime: expected token after slash")),
            ("text/x y", Some("mime: unexpected content after media subtype")),
            ("text/x;a", Some("mime: invalid media parameter")),
            ("text/x;a=b;a=c", Some("mime: duplicate parameter name")),
        ] {
            assert_eq!(media_type_error(text), expected, "{text}");
        }
        let many: String = (0..100).map(|number| format!(";a{number}=b")).collect();
        assert_eq!(media_type(&format!("application/json{many}")), None);
    }
}
