//! Reads the impersonation headers.

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use pintle_go_forms::quote;
use pintle_machinery::{Status, UserInfo};
use std::collections::BTreeMap;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Removes the impersonation headers and returns the user that they name. The error has another text where only the legacy
/// mode exists.
///
/// # Errors
/// 400 for headers that name groups or other attributes and no user.
pub(super) fn take(headers: &mut HeaderMap, is_constrained: bool) -> Result<Option<UserInfo>, Status> {
    let is_ours = |name: &str| matches!(name, USER | UID | GROUP) || name.starts_with(EXTRA_PREFIX);
    let names: Vec<_> = headers.keys().filter(|name| is_ours(name.as_str())).cloned().collect();
    if names.is_empty() {
        return Ok(None);
    }
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in &names {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            let values = headers.get_all(name).iter().map(text);
            extra.entry(unescape(key)).or_default().extend(values);
        }
    }
    let groups = headers.get_all(GROUP).iter().map(text).collect();
    let wanted = UserInfo { name: one(USER), uid: one(UID), groups, extra };
    for name in names {
        headers.remove(name);
    }
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    match wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        true => Ok(None),
        false => Err(Status::bad_request(match is_constrained {
            true => format!("requested {} without impersonating a user name", in_go(&wanted)),
            false => format!("requested {} without impersonating a user", references(&wanted)),
        })),
    }
}

/// The text of a header; bytes that are not UTF-8 are replaced, so that the value is not taken for absent.
fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Decodes percent escapes in the key of an extra field. A key with a malformed escape stays as it is.
fn unescape(key: &str) -> String {
    let is_whole = key
        .split('%')
        .skip(1)
        .all(|rest| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)));
    match is_whole {
        true => percent_decode_str(key).decode_utf8_lossy().into_owned(),
        false => key.to_owned(),
    }
}

/// The parts of a user as object references, in the format of Go's `%v`.
fn references(user: &UserInfo) -> String {
    const VERSION: &str = "authentication.k8s.io/v1";
    let reference = |kind: &str, name: &str, version: &str, path: &str| {
        // Kind, namespace, name, UID, API version, resource version, field path.
        format!("{{{kind}  {name}  {version}  {path}}}")
    };
    let groups = user.groups.iter().map(|group| reference("Group", group, "", ""));
    let extra = user.extra.iter().flat_map(|(key, values)| {
        values.iter().map(move |value| reference("UserExtra", value, VERSION, key))
    });
    let uid = (!user.uid.is_empty()).then(|| reference("UID", &user.uid, VERSION, ""));
    let all: Vec<String> = groups.chain(extra).chain(uid).collect();
    format!("[{}]", all.join(" "))
}

/// The user in the format of Go's `%#v`.
fn in_go(user: &UserInfo) -> String {
    let list = |texts: &[String]| {
        let texts: Vec<_> = texts.iter().map(|text| quote(text)).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra: Vec<_> =
        user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
    let extra = match extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}
