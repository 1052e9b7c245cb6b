//! The headers that concern one connection only, and those that tell of the client.

use crate::target::Origin;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header, request};
use http_body::Body;
use pintle_dialer::UpstreamBody;
use pintle_go_forms::{clean_path, quote};
use std::net::IpAddr;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// The hop-by-hop headers (<https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1>), and those of older standards.
static HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers that permit a page of another origin to read a response: the proxy's own server decides that.
static CROSS_ORIGIN: [HeaderName; 4] = [
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// States by `Cache-Control` what `Pragma: no-cache` asks for. Go does so with each message of HTTP/1 that it reads
/// (<https://www.rfc-editor.org/rfc/rfc7234#section-5.4>).
pub(crate) fn translate_pragma(version: Version, headers: &mut HeaderMap) {
    let asks = headers.get(header::PRAGMA).is_some_and(|pragma| pragma == "no-cache");
    if asks && version < Version::HTTP_2 && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
}

/// Removes the headers that concern the client's connection. `TE: trailers` stays, since trailers pass.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let takes_trailers = has_token(headers, &header::TE, "trailers");
    remove_all(headers);
    if takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// Checks how a response says that it is framed, by the rules of Go's client: other readers could see another body.
///
/// # Errors
/// In Go's words.
pub(crate) fn check_framing(version: Version, headers: &HeaderMap) -> Result<(), String> {
    let refuse = |why: String| Err(format!("net/http: HTTP/1.x transport connection broken: {why}"));
    if version != Version::HTTP_11 {
        return Ok(());
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let codings: Vec<String> = headers.get_all(header::TRANSFER_ENCODING).iter().map(text).collect();
    match codings.as_slice() {
        [] => return Ok(()),
        [coding] if coding.eq_ignore_ascii_case("chunked") => {}
        [coding] => return refuse(format!("unsupported transfer encoding: {}", quote(coding))),
        codings => {
            let codings: Vec<String> = codings.iter().map(|coding| quote(coding)).collect();
            return refuse(format!("too many transfer encodings: [{}]", codings.join(" ")));
        }
    }
    let mut trailers = words(headers, &header::TRAILER).map(canonical_name);
    match trailers.find(|name| matches!(name.as_str(), "Transfer-Encoding" | "Trailer" | "Content-Length")) {
        Some(name) => refuse(format!("bad trailer key {}", quote(&name))),
        None => Ok(()),
    }
}

/// The name of a header in the form in which Go writes it: a capital begins each word.
fn canonical_name(name: &str) -> String {
    let mut is_first = true;
    let letter = |letter: char| {
        let was_first = std::mem::replace(&mut is_first, letter == '-');
        if was_first { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
    };
    name.chars().map(letter).collect()
}

/// Removes the headers that concern the backend's connection, and those that only the proxy's own server may set.
/// A body without a known length may have trailers, which stay announced. A body that came in chunks has no other length,
/// whatever the backend says besides (<https://www.rfc-editor.org/rfc/rfc9112#section-6.3>).
pub(crate) fn clean_response(version: Version, headers: &mut HeaderMap) {
    let is_chunked = headers.contains_key(header::TRANSFER_ENCODING);
    if is_chunked {
        headers.remove(header::CONTENT_LENGTH);
    }
    let may_have_trailers =
        !headers.contains_key(header::CONTENT_LENGTH) && (is_chunked || version >= Version::HTTP_2);
    let trailers: Vec<String> = match may_have_trailers {
        true => words(headers, &header::TRAILER).map(canonical_name).collect(),
        false => Vec::new(),
    };
    remove_all(headers);
    for name in &CROSS_ORIGIN {
        headers.remove(name);
    }
    if let (false, Ok(trailers)) = (trailers.is_empty(), HeaderValue::from_str(&trailers.join(", "))) {
        headers.insert(header::TRAILER, trailers);
    }
}

fn remove_all(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = match headers.contains_key(header::CONNECTION) {
        true => words(headers, &header::CONNECTION).filter_map(|word| word.parse().ok()).collect(),
        false => Vec::new(),
    };
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Whether a request asks for an upgrade of its connection, by the rule of Kubernetes: a substring is enough.
pub fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONNECTION).iter();
    values.any(|value| value.as_bytes().to_ascii_lowercase().windows(7).any(|window| window == b"upgrade"))
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers.contains_key(name) && words(headers, name).any(|word| word.eq_ignore_ascii_case(token))
}

/// The user agent of a request to upgrade whose client sent none: the name of Go's HTTP client.
const USER_AGENT: HeaderValue = HeaderValue::from_static("Go-http-client/1.1");

/// Tells the program that sent the request: once, and not by an empty name. A request to upgrade always tells it.
pub(crate) fn set_user_agent(headers: &mut HeaderMap, is_upgrade: bool) {
    match headers.remove(header::USER_AGENT) {
        Some(name) if name.is_empty() => {}
        Some(name) => drop(headers.insert(header::USER_AGENT, name)),
        None if is_upgrade => drop(headers.insert(header::USER_AGENT, USER_AGENT)),
        None => {}
    }
}

/// Appends the client's address to `X-Forwarded-For`.
pub(crate) fn append_client(headers: &mut HeaderMap, client: Option<IpAddr>) {
    let Some(client) = client else { return };
    let mut chain = Vec::new();
    for value in headers.get_all(FORWARDED_FOR) {
        chain.extend_from_slice(value.as_bytes());
        chain.extend_from_slice(b", ");
    }
    chain.extend_from_slice(client.to_canonical().to_string().as_bytes());
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(chain)) {
        headers.insert(FORWARDED_FOR, value);
    }
}

/// Sets `X-Forwarded-Uri`, `-Host` and `-Proto`, from which a backend builds links to itself. `prefix` is the part of
/// the client's path that the backend does not see. Host and scheme of the client stay what the client told.
pub(crate) fn set_forwarded(headers: &mut HeaderMap, uri: &Uri, prefix: &str, origin: Origin) {
    let path = uri.path();
    let mut forwarded = clean_path(&match prefix.is_empty() {
        true => path.to_owned(),
        false => format!("{prefix}/{path}"),
    });
    // The root gets a second slash, as in the reference.
    if path.ends_with('/') {
        forwarded.push('/');
    }
    let is_backend = origin == Origin::Backend;
    let pairs = [
        (FORWARDED_URI, Some(forwarded.as_str())),
        (FORWARDED_HOST, uri.authority().map(|authority| authority.as_str()).filter(|_| is_backend)),
        (FORWARDED_PROTO, uri.scheme_str().filter(|_| is_backend)),
    ];
    for (name, value) in pairs {
        if let Some(Ok(value)) = value.map(|value| HeaderValue::from_bytes(value.as_bytes())) {
            headers.insert(name, value);
        }
    }
}

/// States the length of the body, where there is none or it is unknown.
pub(crate) fn state_length(head: &mut request::Parts, body: &UpstreamBody) {
    let headers = &mut head.headers;
    if body.is_end_stream() {
        match head.method {
            // Many servers expect it.
            Method::POST | Method::PUT | Method::PATCH => {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            _ => drop(headers.remove(header::CONTENT_LENGTH)),
        }
    } else if !headers.contains_key(header::CONTENT_LENGTH) {
        // The HTTP library assumes that a GET has no body otherwise.
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in rows {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    fn text(headers: &HeaderMap) -> String {
        let rows = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        rows.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn headers_of_one_connection_do_not_pass() {
        let mut headers = map(&[
            ("connection", "X-Hop, keep-alive"),
            ("x-hop", "1"),
            ("x-stay", "1"),
            ("keep-alive", "300"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "x"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("via", "1.1 a"),
        ]);
        remove_hop_by_hop(&mut headers);
        assert_eq!(text(&headers), "x-stay: 1\nvia: 1.1 a\nte: trailers");
    }

    #[test]
    fn pragma_asks_for_fresh_responses_in_http_1() {
        let check = |version: Version, rows: &[(&'static str, &str)], is_added: bool| {
            let (mut headers, before) = (map(rows), map(rows));
            translate_pragma(version, &mut headers);
            assert_eq!(headers != before, is_added, "{rows:?}");
            assert!(!is_added || headers.get(header::CACHE_CONTROL).unwrap() == "no-cache");
        };
        let asks = [("pragma", "no-cache")];
        check(Version::HTTP_11, &asks, true);
        check(Version::HTTP_10, &asks, true);
        check(Version::HTTP_2, &asks, false);
        check(Version::HTTP_11, &[("pragma", "x"), ("pragma", "no-cache")], false);
        check(Version::HTTP_11, &[("pragma", "No-Cache")], false);
        check(Version::HTTP_11, &[asks[0], ("cache-control", "max-age=1")], false);
    }

    #[test]
    fn trailers_stay_announced_where_there_may_be_some() {
        let check = |version: Version, framing: (&'static str, &str), expected: &str| {
            let rows = [("trailer", "X-Late"), ("access-control-allow-origin", "*"), ("x-a", "yes"), framing];
            let mut headers = map(&rows);
            clean_response(version, &mut headers);
            assert_eq!(text(&headers), expected);
        };
        check(Version::HTTP_11, ("transfer-encoding", "chunked"), "x-a: yes\ntrailer: X-Late");
        check(Version::HTTP_11, ("content-length", "3"), "content-length: 3\nx-a: yes");
        check(Version::HTTP_10, ("connection", "close"), "x-a: yes");
        check(Version::HTTP_2, ("x-b", "yes"), "x-b: yes\nx-a: yes\ntrailer: X-Late");
        check(Version::HTTP_2, ("content-length", "3"), "content-length: 3\nx-a: yes");
    }

    #[test]
    fn trailers_are_announced_by_their_canonical_names() {
        let mut headers =
            map(&[("transfer-encoding", "chunked"), ("trailer", "x-b,, X-LATE"), ("trailer", "x_c")]);
        clean_response(Version::HTTP_11, &mut headers);
        assert_eq!(text(&headers), "trailer: X-B, X-Late, X_c");
    }

    #[test]
    fn a_response_has_the_framing_that_go_reads() {
        let check = |version: Version, rows: &[(&'static str, &str)], expected: Option<&str>| {
            let broken = |why| format!("net/http: HTTP/1.x transport connection broken: {why}");
            let checked = check_framing(version, &map(rows));
            assert_eq!(checked.err(), expected.map(broken), "{rows:?}");
        };
        let coding = "transfer-encoding";
        check(Version::HTTP_11, &[("trailer", "content-length")], None);
        check(Version::HTTP_11, &[(coding, "Chunked"), ("trailer", "x-a")], None);
        check(
            Version::HTTP_11,
            &[(coding, "gzip, chunked")],
            Some("unsupported transfer encoding: \"gzip, chunked\""),
        );
        check(Version::HTTP_11, &[(coding, "identity")], Some("unsupported transfer encoding: \"identity\""));
        check(
            Version::HTTP_11,
            &[(coding, "gzip"), (coding, "chunked")],
            Some("too many transfer encodings: [\"gzip\" \"chunked\"]"),
        );
        check(
            Version::HTTP_11,
            &[(coding, "chunked"), ("trailer", "x-a, content-length")],
            Some("bad trailer key \"Content-Length\""),
        );
        check(Version::HTTP_10, &[(coding, "identity")], None);
        check(Version::HTTP_2, &[(coding, "identity")], None);
    }

    #[test]
    fn programs_are_named_once() {
        let check = |rows: &[(&'static str, &str)], is_upgrade: bool, expected: &str| {
            let mut headers = map(rows);
            set_user_agent(&mut headers, is_upgrade);
            assert_eq!(text(&headers), expected);
        };
        check(&[], false, "");
        check(&[], true, "user-agent: Go-http-client/1.1");
        check(&[("user-agent", "")], true, "");
        check(&[("user-agent", "a"), ("user-agent", "b")], false, "user-agent: a");
    }

    #[test]
    fn the_length_of_a_body_in_chunks_is_its_own() {
        let mut headers =
            map(&[("content-length", "5"), ("transfer-encoding", "chunked"), ("trailer", "X-Late")]);
        clean_response(Version::HTTP_11, &mut headers);
        assert_eq!(text(&headers), "trailer: X-Late");
    }

    #[test]
    fn a_request_to_upgrade_is_recognized() {
        let check = |value: &str, expected| {
            assert_eq!(asks_for_upgrade(&map(&[("connection", value)])), expected, "{value}");
        };
        check("Upgrade", true);
        check("keep-alive, upgrade", true);
        check("X-Upgraded", true);
        check("keep-alive", false);
        assert!(!asks_for_upgrade(&HeaderMap::new()));
    }

    #[test]
    fn the_client_and_the_address_are_told() {
        let mut headers = map(&[("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "5.6.7.8")]);
        append_client(&mut headers, Some("::ffff:127.0.0.1".parse().unwrap()));
        assert_eq!(text(&headers), "x-forwarded-for: 1.2.3.4, 5.6.7.8, 127.0.0.1");
        let check = |uri: &str, prefix: &str, expected: &str| {
            let mut headers = map(&[("x-forwarded-uri", "/evil")]);
            set_forwarded(&mut headers, &uri.parse().unwrap(), prefix, Origin::Backend);
            let uri = headers[FORWARDED_URI].to_str().unwrap();
            let [host, proto] = [FORWARDED_HOST, FORWARDED_PROTO].map(|name| headers[name].to_str().unwrap());
            assert_eq!(format!("{proto} {host} {uri}"), expected);
        };
        check("https://1.2.3.4:443/apis/a?x=1", "", "https 1.2.3.4:443 /apis/a");
        check("https://a:1/x//y/../z/", "", "https a:1 /x/z/");
        check("http://a:1/x", "/proxy", "http a:1 /proxy/x");
    }
}
