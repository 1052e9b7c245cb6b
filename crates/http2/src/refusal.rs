//! Requests that are not executed.

/// The reason why a request is refused.
///
/// A rewritten block tells it as the scheme of the request, which no client can choose: requests with a scheme other than
/// `http` and `https` do not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The stream is reset with `PROTOCOL_ERROR`. The library bounds the number of streams that it resets itself, and closes
    /// the connection beyond it.
    Malformed,
    /// 400: a header that has no meaning in HTTP/2, with its name.
    Header(&'static str),
    /// 400: a `TE` other than `trailers`.
    Te,
    /// 431: a target that is too long for the library, or too many headers.
    TooLarge,
}

/// The headers that have no meaning in HTTP/2, in the order in which Go's server looks for them: their names, names in
/// messages and schemes.
const HEADERS: [(&[u8], &str, &str); 5] = [
    (b"connection", "Connection", "refused-connection"),
    (b"keep-alive", "Keep-Alive", "refused-keep-alive"),
    (b"proxy-connection", "Proxy-Connection", "refused-proxy-connection"),
    (b"transfer-encoding", "Transfer-Encoding", "refused-transfer-encoding"),
    (b"upgrade", "Upgrade", "refused-upgrade"),
];
const MALFORMED: &str = "refused-malformed";
const TE: &str = "refused-te";
const TOO_LARGE: &str = "refused-too-large";

impl Refusal {
    /// The refusal for a header of this name.
    pub(crate) fn of_header(name: &[u8]) -> Option<Refusal> {
        HEADERS.iter().find(|(refused, ..)| *refused == name).map(|(_, shown, _)| Refusal::Header(shown))
    }

    /// The refusal that a request with this scheme stands for.
    pub fn of_scheme(scheme: &str) -> Option<Refusal> {
        match scheme {
            "https" | "http" => None,
            MALFORMED => Some(Refusal::Malformed),
            TE => Some(Refusal::Te),
            TOO_LARGE => Some(Refusal::TooLarge),
            _ => {
                let header = HEADERS.iter().find(|(.., refused)| *refused == scheme);
                header.map(|(_, shown, _)| Refusal::Header(shown))
            }
        }
    }

    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Refusal::Malformed => MALFORMED,
            Refusal::Te => TE,
            Refusal::TooLarge => TOO_LARGE,
            Refusal::Header(name) => {
                HEADERS.iter().find(|(_, shown, _)| *shown == name).map_or(TE, |(.., scheme)| scheme)
            }
        }
    }

    /// Which of two refusals Go's server tells.
    pub(crate) fn before(self, other: Refusal) -> Refusal {
        let position = |refusal: Refusal| match refusal {
            Refusal::Header(name) => HEADERS.iter().position(|(_, shown, _)| *shown == name),
            Refusal::Malformed | Refusal::TooLarge => None,
            Refusal::Te => Some(HEADERS.len()),
        };
        // A head that is too large is refused before its headers are looked at: `None` is the least.
        if position(self) <= position(other) { self } else { other }
    }
}
