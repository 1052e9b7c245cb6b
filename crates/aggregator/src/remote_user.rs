//! The headers in which a front proxy, such as the aggregator, tells another server of the user
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#original-request-username-and-group>).

use http::{HeaderMap, HeaderName, HeaderValue, header};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::UserInfo;

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA_PREFIX: &str = "x-remote-extra-";
const IMPERSONATE_PREFIX: &str = "impersonate-";

/// Replaces credentials, and all user and impersonation headers of the client, by the headers of the authenticated user.
///
/// # Errors
/// When a value cannot be sent in a header, with the text of Go's client.
pub fn set(headers: &mut HeaderMap, user: &UserInfo) -> Result<(), String> {
    headers.remove(header::AUTHORIZATION);
    for name in [USER, UID, GROUP] {
        headers.remove(name);
    }
    let is_of_user = |name: &HeaderName| {
        [EXTRA_PREFIX, IMPERSONATE_PREFIX].iter().any(|prefix| name.as_str().starts_with(prefix))
    };
    if headers.keys().any(is_of_user) {
        let names: Vec<HeaderName> = headers.keys().filter(|name| is_of_user(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
    headers.insert(USER, value("X-Remote-User", &user.name)?);
    if !user.uid.is_empty() && enabled(Gate::RemoteRequestHeaderUID) {
        headers.insert(UID, value("X-Remote-Uid", &user.uid)?);
    }
    for group in &user.groups {
        headers.append(GROUP, value("X-Remote-Group", group)?);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA_PREFIX}{}", escape(key));
        let invalid = |_| format!("net/http: invalid header field name {name:?}");
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(invalid)?;
        for text in values {
            headers.append(&header, value(&name, text)?);
        }
    }
    Ok(())
}

fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    // Go trims the blanks around a value.
    HeaderValue::from_str(text.trim_matches([' ', '\t', '\r', '\n']))
        .or_else(|_| HeaderValue::from_bytes(text.as_bytes()))
        .map_err(|_| format!("net/http: invalid header field value for {name:?}"))
}

/// A key with the bytes that no header name may have, and percent signs, as percent escapes.
fn escape(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'%' => out.push_str("%25"),
            byte if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) => {
                out.push(char::from(byte.to_ascii_lowercase()));
            }
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use std::collections::BTreeMap;

    #[test]
    fn the_uid_is_told_unless_its_gate_is_closed() {
        let user = UserInfo { name: "jane".to_owned(), uid: "1".to_owned(), ..UserInfo::default() };
        let told = || {
            let mut headers = HeaderMap::new();
            set(&mut headers, &user).unwrap();
            headers.get(UID).map(|uid| uid.to_str().unwrap().to_owned())
        };
        assert_eq!(told().as_deref(), Some("1"));
        let _gates = override_gates(&FeatureGates::default().with(Gate::RemoteRequestHeaderUID, false));
        assert_eq!(told(), None);
    }

    #[test]
    fn the_authenticated_user_replaces_all_others() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer x"),
            ("x-remote-user", "evil"),
            ("x-remote-group", "evil"),
            ("x-remote-uid", "evil"),
            ("x-remote-extra-other", "evil"),
            ("impersonate-user", "evil"),
            ("impersonate-extra-a", "evil"),
            ("x-custom", "kept"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let user = UserInfo {
            name: "j\u{e9} x:y".to_owned(),
            uid: String::new(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: BTreeMap::from([
                ("Acme.com/project".to_owned(), vec!["p%201".to_owned()]),
                ("a%b \u{e9}".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
                ("empty".to_owned(), Vec::new()),
            ]),
        };
        set(&mut headers, &user).unwrap();
        let rows = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
        let expected = [
            "x-custom: kept",
            "x-remote-user: j\u{e9} x:y",
            "x-remote-group: a",
            "x-remote-group: b",
            "x-remote-extra-acme.com%2fproject: p%201",
            "x-remote-extra-a%25b%20%c3%a9: 1",
            "x-remote-extra-a%25b%20%c3%a9: 2",
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_value_that_no_header_can_have_is_an_error() {
        let user = UserInfo { name: "a\nb".to_owned(), ..UserInfo::default() };
        let error = set(&mut HeaderMap::new(), &user).unwrap_err();
        assert_eq!(error, "net/http: invalid header field value for \"X-Remote-User\"");
    }
}
