//! Buckets and labels that the metrics of validating and mutating policies share.

/// The upper bounds of durations, in seconds.
pub(super) const BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

/// The label `error_type` of an evaluation with this error.
pub(super) fn error_type(error: Option<&str>) -> &'static str {
    match error {
        None => "no_error",
        Some(text) if text.starts_with("compilation") => "compile_error",
        Some(text) if text.starts_with("validation failed due to running out of cost budget") => {
            "out_of_budget"
        }
        Some(_) => "invalid_error",
    }
}
