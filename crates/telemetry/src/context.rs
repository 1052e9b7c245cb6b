//! The identity of a span, as processes tell each other of it (<https://www.w3.org/TR/trace-context/>).

use std::{fmt, str::FromStr};

/// The target of the spans that are exported.
pub const TARGET: &str = "spans";

/// The header by which processes tell each other of spans.
pub const TRACEPARENT: &str = "traceparent";

/// A trace, and a span of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; not zero.
    pub trace: u128,
    /// The span; not zero.
    pub span: u64,
    /// Whether the spans of the trace are exported.
    pub is_sampled: bool,
}

/// A header that is no `traceparent`; it is treated as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTraceparent;

impl FromStr for TraceContext {
    type Err = InvalidTraceparent;

    fn from_str(text: &str) -> Result<TraceContext, InvalidTraceparent> {
        let mut fields = text.trim().split('-');
        let mut field = |length: usize| {
            let field = fields.next().filter(|field| field.len() == length).ok_or(InvalidTraceparent)?;
            let is_hex = field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_hex.then_some(field).ok_or(InvalidTraceparent)
        };
        let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let trace = u128::from_str_radix(trace, 16).map_err(|_| InvalidTraceparent)?;
        let span = u64::from_str_radix(span, 16).map_err(|_| InvalidTraceparent)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| InvalidTraceparent)?;
        // Versions to come may have more fields, and flags that are not known yet.
        let has_more = fields.next().is_some();
        let is_known = version != "00" || (!has_more && flags <= 2 + 1);
        if version == "ff" || !is_known || trace == 0 || span == 0 {
            return Err(InvalidTraceparent);
        }
        Ok(TraceContext { trace, span, is_sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparents_are_read_by_the_rules_of_the_w3c() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(valid.parse::<TraceContext>().unwrap().to_string(), valid);
        for (text, sampled) in [
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", Some(false)),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", Some(true)),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", None),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
            ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", None),
            ("00-4bf92f-00f067aa0ba902b7-01", None),
            ("", None),
        ] {
            assert_eq!(
                text.parse::<TraceContext>().ok().map(|context| context.is_sampled),
                sampled,
                "{text}"
            );
        }
    }
}
