//! The flags of authentication (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/>).

use super::{
    arguments::{OutOfRange, duration, flag, list, set, set_list, switch},
    oidc::OidcOptions,
};
use clap::{Arg, ArgMatches, value_parser};
use http::HeaderName;
use pintle_auth::RequestHeaders;
use pintle_authentication::TokenReviewVersion;
use pintle_machinery::json;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The authenticators of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthenticationOptions {
    /// The headers of front proxies.
    pub request_header: RequestHeaderOptions,
    /// An OpenID Connect issuer.
    pub oidc: OidcOptions,
    /// The file with issuers and the rule for anonymous requests (`--authentication-config`).
    pub config_file: Option<PathBuf>,
    /// The token webhook.
    pub webhook: TokenWebhookOptions,
    /// Whether anonymous requests are accepted (`--anonymous-auth`); `None` is the default, yes.
    pub anonymous_auth: Option<bool>,
}

/// The token webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenWebhookOptions {
    /// Its kubeconfig file; `None` disables the webhook.
    pub config_file: Option<PathBuf>,
    /// The version of `TokenReview` that it gets.
    pub version: TokenReviewVersion,
    /// How long its responses are cached.
    pub cache_ttl: Duration,
}

impl Default for TokenWebhookOptions {
    fn default() -> TokenWebhookOptions {
        TokenWebhookOptions {
            config_file: None,
            version: TokenReviewVersion::default(),
            cache_ttl: Duration::from_secs(120),
        }
    }
}

/// Front proxies, which send the user in headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestHeaderOptions {
    /// The certificate authority of front proxies; `None` disables them.
    pub client_ca_file: Option<PathBuf>,
    /// The allowed common names of their certificates; an empty list allows any.
    pub allowed_names: Vec<String>,
    /// The headers with the user name.
    pub username_headers: Vec<String>,
    /// The headers with the user's UID.
    pub uid_headers: Vec<String>,
    /// The headers with the groups.
    pub group_headers: Vec<String>,
    /// The prefixes of headers with extra fields.
    pub extra_headers_prefix: Vec<String>,
}

impl AuthenticationOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let mut args = OidcOptions::args();
        args.extend([
            flag(
                "authentication-config",
                "FILE",
                "File with the JWT authenticators and the conditions of anonymous authentication",
            )
            .value_parser(value_parser!(PathBuf)),
            flag(
                "authentication-token-webhook-config-file",
                "FILE",
                "Kubeconfig file of the token authentication webhook",
            )
            .value_parser(value_parser!(PathBuf)),
            flag(
                "authentication-token-webhook-version",
                "VERSION",
                "Version of TokenReview that the token webhook gets: v1beta1 or v1",
            )
            .value_parser(|text: &str| text.parse::<TokenReviewVersion>().map_err(OutOfRange::Message)),
            flag(
                "authentication-token-webhook-cache-ttl",
                "DURATION",
                "Time for which responses of the token webhook are cached",
            )
            .value_parser(duration),
            flag(
                "requestheader-client-ca-file",
                "FILE",
                "Certificate authorities of the client certificates of front proxies",
            )
            .value_parser(value_parser!(PathBuf)),
            list(
                "requestheader-allowed-names",
                "NAME,…",
                "Allowed common names in front proxies' certificates; empty allows all",
            ),
            list(
                "requestheader-username-headers",
                "HEADER,…",
                "Headers with the user name, from front proxies",
            ),
            list("requestheader-uid-headers", "HEADER,…", "Headers with the user's UID, from front proxies"),
            list(
                "requestheader-group-headers",
                "HEADER,…",
                "Headers with the user's groups, from front proxies",
            ),
            list(
                "requestheader-extra-headers-prefix",
                "PREFIX,…",
                "Prefixes of headers with the user's extra fields, from front proxies",
            ),
            switch("anonymous-auth", "Accepts requests without credentials, as the user system:anonymous"),
        ]);
        args
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> AuthenticationOptions {
        let mut options = AuthenticationOptions::default();
        let proxy = &mut options.request_header;
        proxy.client_ca_file = matches.get_one("requestheader-client-ca-file").cloned();
        let lists = [
            ("requestheader-allowed-names", &mut proxy.allowed_names),
            ("requestheader-username-headers", &mut proxy.username_headers),
            ("requestheader-uid-headers", &mut proxy.uid_headers),
            ("requestheader-group-headers", &mut proxy.group_headers),
            ("requestheader-extra-headers-prefix", &mut proxy.extra_headers_prefix),
        ];
        for (name, option) in lists {
            set_list(matches, name, option);
        }
        options.oidc = OidcOptions::read(matches);
        options.config_file = matches.get_one("authentication-config").cloned();
        let webhook = &mut options.webhook;
        webhook.config_file = matches.get_one("authentication-token-webhook-config-file").cloned();
        set(matches, "authentication-token-webhook-version", &mut webhook.version);
        set(matches, "authentication-token-webhook-cache-ttl", &mut webhook.cache_ttl);
        options.anonymous_auth = matches.get_one("anonymous-auth").copied();
        options
    }
}

impl RequestHeaderOptions {
    /// The errors of the names, in kube-apiserver's order; `has_uids` is the feature gate `RemoteRequestHeaderUID`.
    pub(crate) fn errors(&self, has_uids: bool) -> Vec<String> {
        let uid_headers = if has_uids { &self.uid_headers } else { &Vec::new() };
        let lists = [
            ("requestheader-username-headers", &self.username_headers),
            ("requestheader-group-headers", &self.group_headers),
            ("requestheader-extra-headers-prefix", &self.extra_headers_prefix),
            ("requestheader-allowed-names", &self.allowed_names),
            ("requestheader-uid-headers", uid_headers),
        ];
        let is_empty = |name: &String| name.trim().is_empty();
        let empty = lists.iter().filter(|(_, names)| names.iter().any(is_empty));
        let mut errors: Vec<String> = empty.map(|(flag, _)| format!("empty value in {flag:?}")).collect();
        let standard = RequestHeaders::standard();
        if !has_uids && !self.uid_headers.is_empty() {
            errors.push(
                "--requestheader-uid-headers requires the \"RemoteRequestHeaderUID\" feature to be enabled"
                    .to_owned(),
            );
        }
        if !uid_headers.is_empty() && !standard.uid.iter().all(|name| headers(uid_headers).contains(name)) {
            errors.push(
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - \
                        API aggregation will not work"
                    .to_owned(),
            );
        }
        for (flag, names) in lists.iter().filter(|(flag, _)| *flag != "requestheader-allowed-names") {
            let wrong = names.iter().filter(|name| !is_empty(name) && header(name).is_none());
            errors.extend(wrong.map(|name| format!("--{flag}: {name:?} is no name of a header")));
        }
        errors
    }

    /// The header names of front proxies, from options without errors.
    pub(crate) fn headers(&self) -> RequestHeaders {
        let headers = RequestHeaders {
            username: headers(&self.username_headers),
            uid: headers(&self.uid_headers),
            group: headers(&self.group_headers),
            extra_prefix: headers(&self.extra_headers_prefix).iter().map(ToString::to_string).collect(),
        };
        let standard = RequestHeaders::standard();
        let lacks = |given: &[HeaderName], standard: &[HeaderName]| {
            !given.is_empty() && !standard.iter().all(|name| given.contains(name))
        };
        for (lacking, flag, header) in [
            (lacks(&headers.username, &standard.username), "username-headers", "X-Remote-User header"),
            (lacks(&headers.group, &standard.group), "group-headers", "X-Remote-Group header"),
            (
                !headers.extra_prefix.is_empty()
                    && !headers.extra_prefix.contains(&"x-remote-extra-".to_owned()),
                "extra-headers-prefix",
                "X-Remote-Extra- header prefix",
            ),
        ] {
            if lacking {
                tracing::warn!(
                    "--requestheader-{flag} is set without specifying the standard {header} - API aggregation will \
                     not work"
                );
            }
        }
        headers
    }

    /// The lists as published for extension servers.
    pub(crate) fn published(&self) -> BTreeMap<String, String> {
        let mut lists = BTreeMap::from([
            ("requestheader-allowed-names".to_owned(), published_list(&self.allowed_names)),
            ("requestheader-username-headers".to_owned(), published_list(&self.username_headers)),
            ("requestheader-group-headers".to_owned(), published_list(&self.group_headers)),
            ("requestheader-extra-headers-prefix".to_owned(), published_list(&self.extra_headers_prefix)),
        ]);
        if !self.uid_headers.is_empty() {
            lists.insert("requestheader-uid-headers".to_owned(), published_list(&self.uid_headers));
        }
        lists
    }
}

fn header(name: &str) -> Option<HeaderName> {
    name.trim().parse().ok()
}

fn headers(names: &[String]) -> Vec<HeaderName> {
    names.iter().filter_map(|name| header(name)).collect()
}

/// A list as published for extension servers.
fn published_list(items: &[String]) -> String {
    json!(items).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_checked() {
        let check = |change: fn(&mut RequestHeaderOptions), expected: Option<&str>| {
            let mut options = RequestHeaderOptions {
                username_headers: vec!["X-Remote-User".to_owned()],
                ..RequestHeaderOptions::default()
            };
            change(&mut options);
            let errors = options.errors(true).join(", ");
            match expected {
                None => assert_eq!(errors, ""),
                Some(part) => assert!(errors.contains(part), "{errors}"),
            }
        };
        check(|_| {}, None);
        check(|options| options.uid_headers = vec!["x-remote-uid".to_owned()], None);
        check(
            |options| options.uid_headers = vec!["X-Uid".to_owned()],
            Some("--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header"),
        );
        check(
            |options| options.group_headers = vec![" ".to_owned()],
            Some("empty value in \"requestheader-group-headers\""),
        );
        check(|options| options.group_headers = vec!["a b".to_owned()], Some("is no name of a header"));
        check(
            |options| options.uid_headers = vec!["X-Uid".to_owned(), String::new()],
            Some("empty value in \"requestheader-uid-headers\", --requestheader-uid-headers is set without"),
        );
        check(
            |options| options.allowed_names = vec![String::new()],
            Some("empty value in \"requestheader-allowed-names\""),
        );
        let uid_headers = vec!["X-Remote-Uid".to_owned()];
        let errors = RequestHeaderOptions { uid_headers, ..RequestHeaderOptions::default() }.errors(false);
        let expected =
            "--requestheader-uid-headers requires the \"RemoteRequestHeaderUID\" feature to be enabled";
        assert_eq!(errors, [expected]);
    }
}
