//! Patterns of schemas.

/// Whether a pattern is a regular expression.
///
/// # Errors
/// Why it is none.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    if pattern.is_empty() {
        return Ok(());
    }
    regex::RegexBuilder::new(pattern)
        .size_limit(1 << 30)
        .build()
        .map(drop)
        .map_err(|error| format!("error parsing regexp: {error}"))
}
