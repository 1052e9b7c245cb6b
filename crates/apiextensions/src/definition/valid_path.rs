//! Resolves paths in a schema: those of selectable fields (`.spec.color`) and of rules' `fieldPath`
//! (`.spec.map['a.b']`)
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-path>).

use super::json_schema_props::JsonSchemaProps;

/// The target of a path.
pub(super) struct Found<'s, 'a> {
    /// The path in the form of messages; two paths to one position have the same text.
    pub(super) text: String,
    /// The first name; empty for a map's key.
    pub(super) root: String,
    /// The schema of the target; `None` where any value is allowed.
    pub(super) schema: Option<&'s JsonSchemaProps<'a>>,
}

/// Follows a path. `array_notation` permits names in brackets.
///
/// # Errors
/// The message when the schema does not contain the path.
pub(super) fn follow<'s, 'a>(
    path: &str,
    schema: &'s JsonSchemaProps<'a>,
    array_notation: bool,
) -> Result<Found<'s, 'a>, String> {
    const END: &str = "unexpected end of JSON path";
    let mut found = Found { text: String::new(), root: String::new(), schema: Some(schema) };
    let mut tokens = Tokens::new(path);
    while let Some(token) = tokens.next() {
        match token {
            "[" if !array_notation => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let token = tokens.next().ok_or(END)?;
                let quoted = token.strip_prefix('\'').and_then(|token| token.strip_suffix('\''));
                let quoted =
                    quoted.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
                found.step(&unescape(quoted)?)?;
                match tokens.next().ok_or(END)? {
                    "]" => {}
                    token => return Err(format!("expected ] but got {token}")),
                }
            }
            "." => found.step(tokens.next().ok_or(END)?)?,
            token => return Err(format!("expected [ or . but got: {token}")),
        }
    }
    Ok(found)
}

impl Found<'_, '_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const UNKNOWN: &str = "does not refer to a valid field";
        let schema = self.schema.ok_or(UNKNOWN)?;
        if schema.properties.is_empty() {
            schema.additional_properties.as_ref().ok_or(UNKNOWN)?;
            self.text.push_str(&format!("[{name}]"));
            self.schema = schema.additional();
        } else {
            self.schema = Some(schema.property(name).ok_or(UNKNOWN)?);
            if self.text.is_empty() {
                self.root = name.to_owned();
            } else {
                self.text.push('.');
            }
            self.text.push_str(name);
        }
        Ok(())
    }
}

/// Splits a path into delimiters, quoted texts, and other texts.
pub(crate) struct Tokens<'t>(&'t str);

impl<'t> Tokens<'t> {
    pub(crate) fn new(path: &'t str) -> Tokens<'t> {
        Tokens(path)
    }

    pub(crate) fn next(&mut self) -> Option<&'t str> {
        let text = self.0;
        let length = match text.chars().next()? {
            '.' | '[' | ']' => 1,
            '\'' => quoted_length(text),
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at_checked(length).unwrap_or((text, ""));
        self.0 = rest;
        Some(token)
    }
}

/// The length up to the next unescaped quote, or to the end.
fn quoted_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |pair: &[u8]| matches!(pair, [before, b'\''] if *before != b'\\');
    bytes.windows(2).position(ends).map_or(text.len(), |at| at + 2)
}

/// Unescapes a quoted text.
///
/// # Errors
/// The invalid escape.
pub(crate) fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = match c {
            '\\' => chars.next(),
            c => {
                out.push(c);
                continue;
            }
        };
        out.push(match escaped {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(c) => return Err(format!("invalid string literal: invalid escape char \\{c}")),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn paths_are_followed_as_far_as_the_schema_goes() {
        let schema = json!({"properties": {
            "spec": {"properties": {"s": {"type": "string"}, "l": {"type": "array"}, "a.b": {"type": "string"}}},
            "map": {"additionalProperties": {"type": "string"}},
            "any": {"additionalProperties": true},
        }});
        let schema = JsonSchemaProps::read(&schema);
        let check = |path: &str, expected: Result<&str, &str>| {
            let found = follow(path, &schema, true).map(|found| found.text);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
        };
        check(".spec.s", Ok("spec.s"));
        check(".spec['a.b']", Ok("spec.a.b"));
        check(".map.x", Ok("map[x]"));
        check(r".map['it\'s']", Ok("map[it's]"));
        check(".any.x", Ok("any[x]"));
        check(".any.x.y", Err("does not refer to a valid field"));
        check("spec", Err("expected [ or . but got: spec"));
        check(".nope", Err("does not refer to a valid field"));
        check(".spec.l[0]", Err("expected single quoted string but got 0"));
        check(".", Err("unexpected end of JSON path"));
        check(".spec[", Err("unexpected end of JSON path"));
        check(".spec['s'", Err("unexpected end of JSON path"));
        check(".spec['s'.", Err("expected ] but got ."));
        check(r".spec['\q']", Err(r"invalid string literal: invalid escape char \q"));
        assert_eq!(
            follow(".spec['s']", &schema, false).err().as_deref(),
            Some("array notation is not allowed")
        );
    }
}
