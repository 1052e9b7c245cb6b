//! The reasons why a head is refused.

/// The reason why a head is refused, with the response of Go's `net/http`. The connection ends with the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 400 without a reason.
    Malformed,
    /// 400 with the reason.
    BadRequest(&'static str),
    /// 417: an expectation other than `100-continue`.
    Expectation,
    /// 431.
    HeadersTooLarge,
    /// 501: an unsupported transfer encoding.
    TransferEncoding,
    /// 505: an HTTP version other than 1.x.
    Version,
}
