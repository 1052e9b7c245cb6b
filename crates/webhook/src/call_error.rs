//! The errors of calling a webhook, before it has answered.

use pintle_dialer::Cause;
use std::fmt;

/// The reason why a call had no response. Its text is that of Go's HTTP client.
#[derive(Debug)]
pub struct CallError {
    url: String,
    cause: Cause,
}

impl CallError {
    pub(crate) fn new(url: &str, cause: Cause) -> CallError {
        CallError { url: url.to_owned(), cause }
    }

    /// Whether the call timed out.
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause, Cause::Timeout | Cause::SlowBody)
    }

    /// Whether a retry may succeed soon: an established connection was lost.
    pub fn is_transient(&self) -> bool {
        self.cause.is_transient()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A response had begun: the text is that of Kubernetes' client, which names no URL.
        if let Cause::SlowBody | Cause::BrokenBody | Cause::MalformedBody(_) = self.cause {
            return write!(f, "{}", self.cause);
        }
        write!(f, "Post \"{}\": {}", self.url, self.cause)
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_error_names_the_url() {
        let error = CallError::new("https://a/x", Cause::Reset);
        assert_eq!(error.to_string(), "Post \"https://a/x\": read: connection reset by peer");
        assert!(error.is_transient() && !error.is_timeout());
        let broken = CallError::new("https://a/x", Cause::BrokenBody);
        assert_eq!(
            broken.to_string(),
            "unexpected error when reading response body. Please retry. Original error: unexpected EOF"
        );
    }
}
