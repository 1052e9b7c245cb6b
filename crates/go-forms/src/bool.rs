//! Booleans, as Go's `strconv` reads them.

/// Parses a boolean as `strconv.ParseBool` does; `None` is its error `invalid syntax`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
