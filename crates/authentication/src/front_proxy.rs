//! Authenticates the users that a front proxy sends
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authenticating-proxy>).
//!
//! The headers are trusted on connections with a certificate of the proxies' authority whose common name is allowed. On
//! other connections they are ignored; the authentication filter removes them from all requests, so that no later
//! filter can trust them.

use crate::{
    ca_bundle::CaBundle, certificate_verifier::CertificateVerifier, group::with_authenticated_group,
    x509::common_name,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use pintle_auth::{
    RequestHeaders,
    authn::{Authenticated, Authentication, Credentials, InvalidCredentials},
};
use pintle_go_forms::quote;
use pintle_machinery::UserInfo;
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Trusts the headers of front proxies with a valid certificate.
pub struct FrontProxy {
    verifier: CertificateVerifier<Option<String>>,
    allowed_names: Vec<String>,
    headers: RequestHeaders,
}

impl FrontProxy {
    /// Trusts proxies whose certificate is issued by an authority of the bundle and whose common name is in
    /// `allowed_names`; an empty list allows any name.
    pub fn new(bundle: Arc<CaBundle>, allowed_names: Vec<String>, headers: RequestHeaders) -> FrontProxy {
        FrontProxy { verifier: CertificateVerifier::new(bundle), allowed_names, headers }
    }

    /// The names of the headers with the user.
    pub fn headers(&self) -> &RequestHeaders {
        &self.headers
    }

    /// The user that a trusted proxy sends.
    pub(crate) fn authenticate(&self, credentials: &Credentials<'_>) -> Authentication {
        let verified = self.verifier.verify(credentials.certificates, |certificate| {
            Ok(common_name(certificate.subject())?.map(Cow::into_owned))
        })?;
        let Some(name) = verified else { return Ok(None) };
        let name = name.as_deref().unwrap_or_default();
        if !self.allowed_names.is_empty() && !self.allowed_names.iter().any(|allowed| allowed == name) {
            let name = quote(name);
            let why = format!("x509: subject with cn={name} is not in the allowed list");
            return Err(InvalidCredentials::new(why));
        }
        let user = user_of(credentials.headers, &self.headers)?;
        Ok(user.map(|user| Authenticated {
            user: with_authenticated_group(Arc::new(user)),
            ..Authenticated::default()
        }))
    }
}

/// The user that the headers name, if any.
fn user_of(headers: &HeaderMap, names: &RequestHeaders) -> Result<Option<UserInfo>, InvalidCredentials> {
    let first = |own: &[HeaderName]| {
        let values = own.iter().filter_map(|name| headers.get(name));
        values.filter(|value| !value.is_empty()).map(text).next().transpose()
    };
    let Some(name) = first(&names.username)? else { return Ok(None) };
    let uid = first(&names.uid)?.unwrap_or_default();
    let values = names.group.iter().flat_map(|name| headers.get_all(name));
    let groups: Result<_, _> = values.filter(|value| !value.is_empty()).map(text).collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for prefix in &names.extra_prefix {
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                extra.entry(unescape(key)).or_default().push(text(value)?);
            }
        }
    }
    Ok(Some(UserInfo { name, uid, groups: groups?, extra }))
}

fn text(value: &HeaderValue) -> Result<String, InvalidCredentials> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(str::to_owned)
        .map_err(|_| InvalidCredentials::new("a front proxy's header is not UTF-8".to_owned()))
}

/// Decodes percent escapes; a text with a malformed escape stays as it is.
fn unescape(key: &str) -> String {
    let mut rest = key.bytes();
    let mut is_escaped = || {
        while let Some(byte) = rest.next() {
            let is_hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
            if byte == b'%' && !(is_hex(rest.next()) && is_hex(rest.next())) {
                return false;
            }
        }
        true
    };
    match is_escaped() {
        true => percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into),
        false => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Authority, Leaf};
    use rustls_pki_types::CertificateDer;

    fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn ask(
        proxy: &FrontProxy,
        certificates: &[CertificateDer<'static>],
        headers: &HeaderMap,
    ) -> Result<Option<UserInfo>, String> {
        let credentials = Credentials { certificates, bearer_token: None, headers, path: "/" };
        let found = proxy.authenticate(&credentials);
        found.map(|found| found.map(|found| (*found.user).clone())).map_err(|error| error.reason)
    }

    #[test]
    fn headers_tell_users() {
        let authority = Authority::new("front-proxy");
        let bundle = Arc::new(CaBundle::new("test", &authority.pem()).unwrap());
        let mut names = RequestHeaders::standard();
        names.username.insert(0, HeaderName::from_static("x-user"));
        names.extra_prefix.push("x-more-".to_owned());
        let proxy = FrontProxy::new(bundle, Vec::new(), names);
        let shown = [authority.sign(&Leaf::client("proxy"))];
        let user = ask(
            &proxy,
            &shown,
            &headers(&[
                ("x-user", ""),
                ("x-remote-user", "jane"),
                ("x-remote-uid", "7"),
                ("x-remote-group", "a"),
                ("x-remote-group", ""),
                ("x-remote-group", "b"),
                ("x-remote-extra-example.com%2fscopes", "view"),
                ("x-more-example.com%2fscopes", "edit"),
                ("x-remote-extra-%zz", "odd"),
            ]),
        );
        let user = user.unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "7"));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(user.extra["example.com/scopes"], ["view", "edit"]);
        assert_eq!(user.extra["%zz"], ["odd"]);
        assert_eq!(ask(&proxy, &shown, &headers(&[("x-remote-group", "system:masters")])), Ok(None));
    }

    #[test]
    fn only_known_proxies_are_believed() {
        let (authority, other) = (Authority::new("front-proxy"), Authority::new("other"));
        let bundle = Arc::new(CaBundle::new("test", &authority.pem()).unwrap());
        let proxy = FrontProxy::new(bundle, vec!["proxy".to_owned()], RequestHeaders::standard());
        let told = headers(&[("x-remote-user", "admin"), ("x-remote-group", "system:masters")]);
        assert_eq!(ask(&proxy, &[], &told), Ok(None));
        assert!(ask(&proxy, &[other.sign(&Leaf::client("proxy"))], &told).is_err());
        assert_eq!(
            ask(&proxy, &[authority.sign(&Leaf::client("eve"))], &told).unwrap_err(),
            "x509: subject with cn=\"eve\" is not in the allowed list"
        );
        assert!(ask(&proxy, &[authority.sign(&Leaf::client("proxy"))], &told).unwrap().is_some());
    }
}
