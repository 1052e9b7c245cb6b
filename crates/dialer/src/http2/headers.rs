//! The headers of requests, as HTTP/2 has them.

use crate::UpstreamBody;
use http::{
    HeaderName, HeaderValue, Method, Request, Uri,
    header::{self, CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE},
    uri::Authority,
};
use http_body::Body;

/// Headers that belong to a connection of HTTP/1.1.
static OF_CONNECTION: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Brings the head of a request into the form of HTTP/2 (<https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2>): without
/// the headers of a connection, with the host in the URI, and with the length of the body if it is known.
pub(super) fn prepare(request: &mut Request<UpstreamBody>) {
    let length = request.body().size_hint().exact();
    let has_body =
        !matches!(*request.method(), Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT);
    let headers = request.headers_mut();
    if let Some(named) = headers.get(CONNECTION).and_then(|value| value.to_str().ok()).map(str::to_owned) {
        for name in named.split(',') {
            headers.remove(name.trim());
        }
    }
    for name in &OF_CONNECTION {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
    if let Some(length) = length.filter(|length| *length > 0 || has_body)
        && let header::Entry::Vacant(entry) = headers.entry(CONTENT_LENGTH)
    {
        entry.insert(HeaderValue::from(length));
    }
    if let Some(host) = headers.remove(HOST)
        && request.uri().authority().is_none_or(|authority| authority.as_str() != host)
        && let Some(uri) = with_host(request.uri(), &host)
    {
        *request.uri_mut() = uri;
    }
}

/// The URI with another host; `None` when the header's value is no host.
fn with_host(uri: &Uri, host: &HeaderValue) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(Authority::try_from(host.as_bytes()).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};

    #[test]
    fn heads_have_the_form_of_http2() {
        let check = |method: Method,
                     body: &'static str,
                     headers: &[(&str, &str)],
                     expected: &[(&str, &str)],
                     uri: &str| {
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
            let mut request = Request::new(body);
            *request.method_mut() = method;
            *request.uri_mut() = Uri::from_static("https://10.0.0.1:443/x?y=z");
            for (name, value) in headers {
                let name = HeaderName::try_from(*name).unwrap();
                request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
            }
            prepare(&mut request);
            let left = request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
            assert_eq!(left.collect::<Vec<_>>(), expected, "{headers:?}");
            assert_eq!(request.uri().to_string(), uri);
        };
        let same = "https://10.0.0.1:443/x?y=z";
        check(Method::GET, "", &[("a", "b")], &[("a", "b")], same);
        check(Method::GET, "x", &[], &[("content-length", "1")], same);
        check(Method::POST, "", &[], &[("content-length", "0")], same);
        check(Method::POST, "ab", &[("content-length", "2")], &[("content-length", "2")], same);
        check(Method::GET, "", &[("connection", "Upgrade, a"), ("upgrade", "x"), ("a", "b")], &[], same);
        check(Method::GET, "", &[("te", "gzip"), ("keep-alive", "1")], &[], same);
        check(Method::GET, "", &[("te", "trailers")], &[("te", "trailers")], same);
        check(Method::GET, "", &[("host", "10.0.0.1:443")], &[], same);
        check(Method::GET, "", &[("host", "a.example.com")], &[], "https://a.example.com/x?y=z");
        check(Method::GET, "", &[("host", "no host")], &[], same);
    }
}
