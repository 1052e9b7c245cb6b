//! Functions of strings: the standard ones, and the extension in its version 2
//! (<https://pkg.go.dev/github.com/google/cel-go/ext#Strings>). Positions count characters.

use super::{Function, bounded, format, no_such_overload};
use crate::EvaluationError;
use crate::value::{Text, Value};
use crate::work;

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "contains" => |args| test(args, |text, part| text.contains(part)),
        "endsWith" => |args| test(args, |text, part| text.ends_with(part)),
        "startsWith" => |args| test(args, |text, part| text.starts_with(part)),
        "charAt" => char_at,
        "lowerAscii" => |args| map("lowerAscii", args, str::to_ascii_lowercase),
        "upperAscii" => |args| map("upperAscii", args, str::to_ascii_uppercase),
        "trim" => |args| match args {
            [Value::String(text)] => Ok(part_of(text, |text| text.trim())),
            args => Err(no_such_overload("trim", args)),
        },
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "jsonpatch.escapeKey" => {
            |args| map("jsonpatch.escapeKey", args, |key| key.replace('~', "~0").replace('/', "~1"))
        }
        "strings.quote" => |args| map("strings.quote", args, quote),
        "format" => |args| match args {
            [Value::String(pattern), Value::List(args)] => format::format(pattern, args).map(Value::from),
            args => Err(no_such_overload("format", args)),
        },
        _ => return None,
    })
}

fn test<'a>(args: &mut [Value<'a>], test: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(test(text, part))),
        _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
    }
}

fn map<'a>(name: &str, args: &mut [Value<'a>], map: fn(&str) -> String) -> Outcome<'a> {
    match args {
        [Value::String(text)] => Ok(Value::from(map(text))),
        args => Err(no_such_overload(name, args)),
    }
}

/// A part of a text, borrowed if the text is borrowed.
fn part_of<'a>(text: &Text<'a>, part: impl Fn(&str) -> &str) -> Value<'a> {
    let whole = text.as_str();
    let found = part(whole);
    match text {
        Text::Borrowed(text) => {
            let start = (found.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
            Value::from(text.get(start..start + found.len()).unwrap_or_default())
        }
        Text::Shared(_) => Value::from(found.to_owned()),
    }
}

fn out_of_range(index: i64) -> EvaluationError {
    EvaluationError::failed(format!("index out of range: {index}"))
}

/// The byte offset of a character; the end of the text for the index after the last.
fn byte_position(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    work::note_bytes(text.len());
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    work::note((text.len() / 32) as u64);
    text.char_indices().map(|(position, _)| position).chain([text.len()]).nth(index)
}

fn char_at<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let [Value::String(text), Value::Int(index)] = args else { return Err(no_such_overload("charAt", args)) };
    let start = byte_position(text, *index).ok_or_else(|| out_of_range(*index))?;
    Ok(part_of(text, |text| {
        let rest = text.get(start..).unwrap_or_default();
        rest.get(..rest.chars().next().map_or(0, char::len_utf8)).unwrap_or_default()
    }))
}

/// The first position of a part in a text, in characters, starting at an offset; -1 if it is absent.
pub(super) fn index_of(text: &str, part: &str, offset: i64) -> Result<i64, EvaluationError> {
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Some(start) = byte_position(text, offset) else { return Ok(-1) };
    let found = text.get(start..).and_then(|rest| rest.find(part));
    Ok(found.map_or(-1, |found| characters(text, start + found)))
}

/// The last position of a part in a text, in characters, at or before an offset; -1 if it is absent.
pub(super) fn last_index_of(text: &str, part: &str, offset: Option<i64>) -> Result<i64, EvaluationError> {
    let length = characters(text, text.len());
    let Some(offset) = offset else {
        return Ok(match part {
            "" => length,
            _ => text.rfind(part).map_or(-1, |found| characters(text, found)),
        });
    };
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    if offset >= length {
        return Ok(-1);
    }
    let start = byte_position(text, offset).unwrap_or(text.len());
    let end = text.len().min(start.saturating_add(part.len()));
    // The part may begin at the offset, so the search covers its length after it, cut at a character boundary.
    let head = (0..4).find_map(|back| text.get(..end.checked_sub(back)?));
    let found = head.and_then(|head| head.rfind(part));
    Ok(found.map_or(-1, |found| characters(text, found)))
}

fn characters(text: &str, bytes: usize) -> i64 {
    text.get(..bytes).map_or(0, |head| i64::try_from(head.chars().count()).unwrap_or(i64::MAX))
}

fn replace<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let (text, old, new, limit) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(limit)] => {
            (text, old, new, *limit)
        }
        args => return Err(no_such_overload("replace", args)),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let times = text.matches(old.as_str()).take(limit).count();
    bounded(text.len().saturating_add(times.saturating_mul(new.len())))?;
    Ok(Value::from(text.replacen(old.as_str(), new, limit)))
}

fn split<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        args => return Err(no_such_overload("split", args)),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    fn parts<'t>(text: &'t str, separator: &str, limit: usize) -> Vec<&'t str> {
        if limit == 0 {
            return Vec::new();
        }
        if !separator.is_empty() {
            return text.splitn(limit, separator).collect();
        }
        // With an empty separator every character is a part; the last part takes the rest.
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if parts.len() + 1 == limit {
                parts.push(rest);
                break;
            }
            let (first, tail) = rest.split_at_checked(c.len_utf8()).unwrap_or((rest, ""));
            parts.push(first);
            rest = tail;
        }
        parts
    }
    let parts: Vec<_> = match text {
        Text::Borrowed(text) => parts(text, separator, limit).into_iter().map(Value::from).collect(),
        Text::Shared(text) => {
            parts(text, separator, limit).into_iter().map(|part| Value::from(part.to_owned())).collect()
        }
    };
    Ok(Value::from(parts))
}

fn substring<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        args => return Err(no_such_overload("substring", args)),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(EvaluationError::failed(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let first = byte_position(text, start).ok_or_else(|| out_of_range(start))?;
    let last = match end {
        Some(end) => byte_position(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(part_of(text, |text| text.get(first..last).unwrap_or_default()))
}

fn join<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    let args: &[Value<'a>] = args;
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, separator.as_str()),
        args => return Err(no_such_overload("join", args)),
    };
    let mut out = String::new();
    for (position, item) in list.iter().enumerate() {
        if position > 0 {
            out.push_str(separator);
        }
        match item? {
            Value::String(text) => out.push_str(&text),
            // The first item decides whether the list is one of texts.
            _ if position == 0 => return Err(no_such_overload("join", args)),
            other => {
                let other = other.display();
                return Err(EvaluationError::failed(format!("join: invalid input: {other}")));
            }
        }
        bounded(out.len())?;
    }
    Ok(Value::from(out))
}

/// Quotes a text, escaping unprintable characters.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
