//! Selects the objects of shards of a resource, so that several clients share the work on it
//! (<https://github.com/kubernetes/enhancements/issues/5866>).
//!
//! An object belongs to a shard by the FNV-1a hash of a field that never changes. A selector is an expression of CEL
//! that is not evaluated: ranges of hashes, `shardRange(object.metadata.uid, '0x0000000000000000',
//! '0x8000000000000000')`, combined by `||`.

use super::encoder::UID;
use bytes::Bytes;
use pintle_cacher::CachedObject;
use pintle_cel::{
    ast::{Call, Expr, ExprKind, Literal, operators},
    read_plain,
};
use pintle_go_forms::quote;
use serde::Deserialize;
use std::{borrow::Cow, convert::Infallible, fmt};

/// The digits of a hash.
const DIGITS: usize = 16;
/// The end of the last range: 2^64.
const END: &str = "0x10000000000000000";

/// The ranges of hashes that a request selects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShardSelector {
    field: ShardField,
    ranges: Vec<HashRange>,
}

/// The field whose hash decides on the shard of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShardField {
    Uid,
    Namespace,
}

/// The hashes from `start` to before `end`.
#[derive(Debug, PartialEq, Eq)]
struct HashRange {
    start: u64,
    /// At most 2^64.
    end: u128,
}

impl ShardField {
    const fn path(self) -> &'static str {
        match self {
            ShardField::Uid => "object.metadata.uid",
            ShardField::Namespace => "object.metadata.namespace",
        }
    }
}

impl ShardSelector {
    /// Parses the `shardSelector` of a request.
    ///
    /// # Errors
    /// The message for the client.
    pub(super) fn parse(text: &str) -> Result<ShardSelector, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err(
                "empty shard selector is not allowed; omit the parameter for unfiltered lists".to_owned()
            );
        }
        let mut ranges = Vec::new();
        read_plain(text, |expr| read_ranges(expr, &mut ranges))
            .map_err(|error| format!("CEL parse error: {error}"))??;
        let field = ranges.first().map_or(ShardField::Uid, |(field, _)| *field);
        if let Some((other, _)) = ranges.iter().find(|(other, _)| *other != field) {
            return Err(format!(
                "all shard ranges must use the same field, got {} and {}",
                quote(field.path()),
                quote(other.path())
            ));
        }
        Ok(ShardSelector { field, ranges: ranges.into_iter().map(|(_, range)| range).collect() })
    }

    /// Whether an object belongs to one of the shards.
    pub(super) fn matches(&self, object: &CachedObject) -> bool {
        let hash = match self.field {
            ShardField::Uid => fnv1a(&uid(object)),
            ShardField::Namespace => fnv1a(object.namespace().as_bytes()),
        };
        self.ranges.iter().any(|range| range.start <= hash && u128::from(hash) < range.end)
    }
}

impl fmt::Display for ShardSelector {
    /// The selector as clients see it, which parses to the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, HashRange { start, end }) in self.ranges.iter().enumerate() {
            let or = if index == 0 { "" } else { " || " };
            write!(f, "{or}shardRange({}, '0x{start:016x}', '0x{end:016x}')", self.field.path())?;
        }
        Ok(())
    }
}

/// Reads an expression, of calls of `shardRange` combined by `||`.
fn read_ranges(expr: &Expr, ranges: &mut Vec<(ShardField, HashRange)>) -> Result<(), String> {
    let ExprKind::Call(call) = &expr.kind else {
        return Err(format!(
            "unexpected expression kind {}; expected shardRange() call or || operator",
            number(&expr.kind)
        ));
    };
    match &*call.function {
        operators::LOGICAL_OR => call.args.iter().try_for_each(|arg| read_ranges(arg, ranges)),
        "shardRange" => {
            ranges.push(read_range(call)?);
            Ok(())
        }
        function => {
            Err(format!("unsupported function {}; only shardRange() and || are allowed", quote(function)))
        }
    }
}

fn read_range(call: &Call) -> Result<(ShardField, HashRange), String> {
    let [path, start, end] = call.args.as_slice() else {
        return Err(format!("shardRange() requires exactly 3 arguments, got {}", call.args.len()));
    };
    let path = field_path(path).map_err(|error| format!("shardRange() first argument: {error}"))?;
    let known = [ShardField::Uid, ShardField::Namespace].into_iter().find(|field| field.path() == path);
    let Some(field) = known else {
        return Err(format!(
            "unsupported field path {}; supported: {}, {}",
            quote(&path),
            ShardField::Uid.path(),
            ShardField::Namespace.path()
        ));
    };
    let (start, end) = (hash_bound(start, "hexStart")?, hash_bound(end, "hexEnd")?);
    match u64::try_from(start) {
        Ok(start) if u128::from(start) < end => Ok((field, HashRange { start, end })),
        _ => Err(format!("shard range start 0x{start:016x} must be less than end 0x{end:016x}")),
    }
}

/// The path of a field, as written.
fn field_path(expr: &Expr) -> Result<String, String> {
    match &expr.kind {
        ExprKind::Ident(name) => Ok(name.to_string()),
        ExprKind::Select(select) => Ok(format!("{}.{}", field_path(&select.operand)?, select.field)),
        kind => Err(format!(
            "expected field path (e.g. object.metadata.uid), got expression kind {}",
            number(kind)
        )),
    }
}

/// The bound of a range: `0x` and 16 digits, or 2^64.
fn hash_bound(expr: &Expr, name: &str) -> Result<u128, String> {
    let ExprKind::Literal(literal) = &expr.kind else {
        let kind = number(&expr.kind);
        return Err(format!("{name} must be a string literal (e.g. '0xff'), got expression kind {kind}"));
    };
    let Literal::String(text) = literal else {
        return Err(format!("{name} must be a string literal, got {}", go_type(literal)));
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {}", quote(text)));
    };
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    let (length, most) = (digits.len(), END.len() - 2);
    if length > most {
        return Err(format!("{name}: hex value too long ({length} chars, max {most}): {}", quote(digits)));
    }
    if let Some(wrong) = digits.chars().find(|digit| !matches!(digit, '0'..='9' | 'a'..='f')) {
        let wrong = quote(wrong.encode_utf8(&mut [0; 4]));
        return Err(format!("{name}: invalid hex character {wrong} in {}", quote(text)));
    }
    if length == most && **text != *END {
        return Err(format!("{name}: 17-digit hex value must be '{END}' (2^64), got {}", quote(text)));
    }
    if length < DIGITS {
        return Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {} (did you mean \"0x{digits:0>DIGITS$}\"?)",
            quote(text)
        ));
    }
    u128::from_str_radix(digits, 16).map_err(|error| format!("{name}: {error}"))
}

/// The number of the kind of an expression in cel-go, which messages show.
fn number(kind: &ExprKind) -> u8 {
    match kind {
        ExprKind::Call(_) => 1,
        ExprKind::Comprehension(_) => 2,
        ExprKind::Ident(_) => 3,
        ExprKind::List(_) => 4,
        ExprKind::Literal(_) => 5,
        ExprKind::Map(_) => 6,
        ExprKind::Select(_) => 7,
        ExprKind::Struct(_) => 8,
        _ => 0,
    }
}

/// The Go type of a constant, which messages show.
fn go_type(literal: &Literal) -> &'static str {
    match literal {
        Literal::Null => "structpb.NullValue",
        Literal::Bool(_) => "bool",
        Literal::Int(_) => "int64",
        Literal::Uint(_) => "uint64",
        Literal::Double(_) => "float64",
        Literal::Bytes(_) => "[]uint8",
        _ => "string",
    }
}

/// `metadata.uid`, which is read once from the JSON of an object; empty if it has none.
fn uid(object: &CachedObject) -> Bytes {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow, default)]
        uid: Cow<'a, str>,
    }
    let read = || {
        let json = object.json();
        let uid =
            serde_json::from_slice::<Head<'_>>(&json).map_or(Cow::Borrowed(""), |head| head.metadata.uid);
        Ok::<_, Infallible>(match uid {
            Cow::Borrowed(uid) if !uid.is_empty() => json.slice_ref(uid.as_bytes()),
            uid => Bytes::copy_from_slice(uid.as_bytes()),
        })
    };
    object.representation(UID, read).unwrap_or_default()
}

/// The 64-bit FNV-1a hash (<https://www.rfc-editor.org/rfc/rfc9923.html>).
fn fnv1a(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    const HIGH: &str = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";

    #[test]
    fn a_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_selector_is_shown_in_one_form() {
        let both = format!("{LOW} || {HIGH}");
        for (text, shown) in [
            (LOW.to_owned(), LOW),
            (format!("  ( {} ) // a comment", LOW.replace(['\''], "\"").replace(' ', "  ")), LOW),
            (both.replace(' ', ""), both.as_str()),
        ] {
            let selector = ShardSelector::parse(&text).unwrap();
            assert_eq!(selector.to_string(), shown);
            assert_eq!(ShardSelector::parse(shown).unwrap(), selector);
        }
    }

    #[test]
    fn an_invalid_selector_is_refused() {
        let of = |start: &str| format!("shardRange(object.metadata.uid, {start}, 2)");
        for (text, message) in [
            (" ".to_owned(), "empty shard selector is not allowed; omit the parameter for unfiltered lists"),
            ("a.b".to_owned(), "unexpected expression kind 7; expected shardRange() call or || operator"),
            (
                format!("{LOW} && {HIGH}"),
                "unsupported function \"_&&_\"; only shardRange() and || are allowed",
            ),
            (
                format!("{LOW}||{}", HIGH.replace("uid", "namespace")),
                "all shard ranges must use the same field, got \"object.metadata.uid\" and \
                 \"object.metadata.namespace\"",
            ),
            ("shardRange()".to_owned(), "shardRange() requires exactly 3 arguments, got 0"),
            (
                LOW.replace("uid", "name"),
                "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, \
                 object.metadata.namespace",
            ),
            (
                LOW.replace("object.metadata.uid", "f()"),
                "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 1",
            ),
            (
                LOW.replace('8', "0"),
                "shard range start 0x0000000000000000 must be less than end 0x0000000000000000",
            ),
            (
                HIGH.replace("0x8000000000000000", END),
                "shard range start 0x10000000000000000 must be less than end 0x10000000000000000",
            ),
            (of("x"), "hexStart must be a string literal (e.g. '0xff'), got expression kind 3"),
            (of("null"), "hexStart must be a string literal, got structpb.NullValue"),
            (of("''"), "hexStart must have '0x' prefix, got \"\""),
            (of("'0x'"), "hexStart: hex value is required after '0x'"),
            (of("'0xA'"), "hexStart: invalid hex character \"A\" in \"0xA\""),
            (
                of("'0xff'"),
                "hexStart must be a 0x-prefixed 16-digit hex value, got \"0xff\" (did you mean \
                 \"0x00000000000000ff\"?)",
            ),
            (
                of("'0x20000000000000000'"),
                "hexStart: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\"",
            ),
            (
                of("'0x000000000000000000'"),
                "hexStart: hex value too long (18 chars, max 17): \"000000000000000000\"",
            ),
            ("f(".repeat(300), "CEL parse error: expression recursion limit exceeded: 250"),
        ] {
            assert_eq!(ShardSelector::parse(&text).unwrap_err(), message, "{text}");
        }
    }
}
