//! The flags of service account tokens and bootstrap tokens: reads and validates them. Names, defaults and messages are
//! kube-apiserver's (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>), except that
//! a server without any of these flags has an issuer and a key of its own.

use super::arguments::{duration, flag, list, set, set_list, switch};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use pintle_go_forms::{Url, format_duration, quote};
use pintle_service_account::TokenKeys;
use std::{collections::HashSet, path::PathBuf, time::Duration};

/// The default issuer.
const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";
/// The bounds of the limit on token lifetimes.
const MIN_EXPIRATION: Duration = Duration::from_secs(60 * 60);
const MAX_EXPIRATION: Duration = Duration::from_secs(1 << 32);
/// The token lifetime that pod admission requests, and the extended one that it gets.
const TRANSITION: Duration = Duration::from_secs(60 * 60 + 7);
const EXTENDED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The options of service account tokens and bootstrap tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccountOptions {
    /// The accepted issuers; the first one issues tokens.
    pub issuers: Vec<String>,
    /// The files of keys that verify tokens.
    pub key_files: Vec<PathBuf>,
    /// The file of the key that signs tokens.
    pub signing_key_file: Option<PathBuf>,
    /// The socket of the program that signs tokens.
    pub signing_endpoint: Option<String>,
    /// The published URL of the key set, when it is not this server's own.
    pub jwks_uri: Option<String>,
    /// The maximum lifetime of tokens; zero means no limit.
    pub max_token_expiration: Duration,
    /// Whether tokens of admitted pods stay valid beyond the requested lifetime.
    pub extend_token_expiration: bool,
    /// Whether authentication looks up the secret of a token that is stored in one.
    pub lookup: bool,
    /// The audiences of the server; an empty list stands for its issuers.
    pub api_audiences: Vec<String>,
    /// Whether bootstrap tokens, secrets in `kube-system`, are accepted.
    pub enable_bootstrap_token_auth: bool,
}

impl Default for ServiceAccountOptions {
    fn default() -> ServiceAccountOptions {
        ServiceAccountOptions {
            issuers: vec![DEFAULT_ISSUER.to_owned()],
            key_files: Vec::new(),
            signing_key_file: None,
            signing_endpoint: None,
            jwks_uri: None,
            max_token_expiration: Duration::ZERO,
            extend_token_expiration: true,
            lookup: true,
            api_audiences: Vec::new(),
            enable_bootstrap_token_auth: false,
        }
    }
}

impl ServiceAccountOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            flag(
                "service-account-issuer",
                "NAME",
                "Accepted issuers of service account tokens; the first one is in issued tokens",
            )
            .action(ArgAction::Append),
            flag("service-account-key-file", "FILE", "File with keys that verify service account tokens")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf)),
            flag(
                "service-account-signing-key-file",
                "FILE",
                "File with the private key that signs service account tokens",
            )
            .value_parser(value_parser!(PathBuf)),
            flag(
                "service-account-signing-endpoint",
                "SOCKET",
                "Unix socket of the external signer of service account tokens; @NAME for an abstract socket",
            ),
            flag(
                "service-account-jwks-uri",
                "URL",
                "URI of the JSON Web Key Set in the OpenID discovery document",
            ),
            flag(
                "service-account-max-token-expiration",
                "DURATION",
                "Maximum lifetime of service account tokens",
            )
            .value_parser(duration),
            switch(
                "service-account-extend-token-expiration",
                "Extends the lifetime of the tokens that the admission plugin ServiceAccount adds to pods",
            ),
            switch(
                "service-account-lookup",
                "Requires that the secret of a token that is stored in one still exists",
            ),
            list(
                "api-audiences",
                "NAME,…",
                "Audiences of the server, one of which tokens must have; the issuers by default",
            ),
            switch("enable-bootstrap-token-auth", "Accepts the bootstrap tokens in secrets of kube-system"),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> ServiceAccountOptions {
        let mut options = ServiceAccountOptions::default();
        if let Some(issuers) = matches.get_many("service-account-issuer") {
            options.issuers = issuers.cloned().collect();
        }
        options.key_files =
            matches.get_many("service-account-key-file").into_iter().flatten().cloned().collect();
        options.signing_key_file = matches.get_one("service-account-signing-key-file").cloned();
        options.signing_endpoint = matches
            .get_one::<String>("service-account-signing-endpoint")
            .filter(|endpoint| !endpoint.is_empty())
            .cloned();
        options.jwks_uri = matches.get_one("service-account-jwks-uri").cloned();
        set(matches, "service-account-max-token-expiration", &mut options.max_token_expiration);
        set(matches, "service-account-extend-token-expiration", &mut options.extend_token_expiration);
        set(matches, "service-account-lookup", &mut options.lookup);
        set_list(matches, "api-audiences", &mut options.api_audiences);
        set(matches, "enable-bootstrap-token-auth", &mut options.enable_bootstrap_token_auth);
        options
    }

    /// The audiences of the server.
    pub fn audiences(&self) -> &[String] {
        if self.api_audiences.is_empty() { &self.issuers } else { &self.api_audiences }
    }

    /// The error of the limit on token lifetimes.
    pub(crate) fn expiration_error(&self) -> Option<&'static str> {
        let max = self.max_token_expiration;
        let is_valid = max.is_zero() || (MIN_EXPIRATION..=MAX_EXPIRATION).contains(&max);
        (!is_valid)
            .then_some("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds")
    }

    /// The error of the signing key, which excludes a program that signs.
    pub(crate) fn signing_key_error(&self) -> Option<String> {
        let path = self.signing_key_file.as_ref().filter(|_| self.has_issuer())?;
        match self.signing_endpoint {
            Some(_) => Some(
                "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot \
                 be set at the same time"
                    .to_owned(),
            ),
            None => TokenKeys::from_files(&[], Some(path)).err().map(|error| error.to_string()),
        }
    }

    /// The errors of the issuers, and of the URL of the key set.
    pub(crate) fn issuer_errors(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let problem = |issuer: &String| {
            let quoted = quote(issuer);
            match Url::parse(issuer) {
                Err(error) if issuer.contains(':') => Some(format!(
                    "service-account-issuer {quoted} contained a ':' but was not a valid URL: {error}"
                )),
                _ if issuer.is_empty() => {
                    Some("service-account-issuer should not be an empty string".to_owned())
                }
                _ if seen.insert(issuer.clone()) => None,
                _ => Some(format!("service-account-issuer {quoted} is already specified")),
            }
        };
        let mut errors: Vec<String> = self.issuers.iter().filter_map(problem).collect();
        if self.issuers.is_empty() {
            errors.push("service-account-issuer is a required flag".to_owned());
        }
        match self.jwks_uri.as_deref().map(Url::parse) {
            Some(Err(error)) => errors.push(format!("service-account-jwks-uri must be a valid URL: {error}")),
            Some(Ok(url)) if url.scheme() != "https" => {
                errors.push(format!("service-account-jwks-uri requires https scheme, parsed as: {url}"));
            }
            _ => {}
        }
        errors
    }

    /// The error of options without an issuer of tokens.
    pub(crate) fn token_request_error(&self) -> Option<&'static str> {
        match self.has_issuer() {
            true => None,
            false if self.signing_key_file.is_some() || !self.api_audiences.is_empty() => Some(
                "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified \
                 together",
            ),
            false => {
                Some("--service-account-signing-key-file and --service-account-issuer are required flags")
            }
        }
    }

    fn has_issuer(&self) -> bool {
        self.issuers.first().is_some_and(|issuer| !issuer.is_empty())
    }

    /// Logs a warning for valid options that may surprise.
    pub(crate) fn warn(&self) {
        let max = self.max_token_expiration;
        if max.is_zero() || self.signing_endpoint.is_some() {
            return;
        }
        if self.extend_token_expiration && max < TRANSITION {
            tracing::warn!(
                "service-account-extend-token-expiration has no effect: service-account-max-token-expiration is shorter \
                 than {} seconds",
                TRANSITION.as_secs()
            );
        } else if self.extend_token_expiration && max < EXTENDED {
            tracing::warn!(
                "service-account-extend-token-expiration is on: tokens of admitted pods live up to {} seconds, longer than \
                 service-account-max-token-expiration",
                EXTENDED.as_secs()
            );
        }
    }

    /// The errors of the program that signs.
    pub(crate) fn signing_endpoint_errors(&self) -> Vec<String> {
        let Some(endpoint) = &self.signing_endpoint else { return Vec::new() };
        let mut errors = Vec::new();
        if self.signing_key_file.is_some() || !self.key_files.is_empty() {
            errors.push(
                "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with \
                        `--service-account-signing-endpoint` (They are mutually exclusive)"
                    .to_owned(),
            );
        }
        let is_name_part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if endpoint.strip_prefix('@').is_some_and(|name| !name.split('.').all(is_name_part)) {
            errors.push(format!(
                "invalid value {} passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid \
                 abstract socket name",
                quote(endpoint)
            ));
        }
        errors
    }

    /// The maximum lifetime of tokens with an external signer that signs tokens of this lifetime. Logs a warning for valid
    /// options that may surprise.
    ///
    /// # Errors
    /// When the options allow longer ones.
    pub(crate) fn max_expiration_with(&self, signer: Duration) -> Result<Duration, String> {
        let max = match self.max_token_expiration {
            Duration::ZERO => signer,
            max => max,
        };
        let text =
            |duration: Duration| format_duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
        if max > signer {
            return Err(format!(
                "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
                 service-account-signing-endpoint: {} > {}",
                text(max),
                text(signer)
            ));
        }
        if self.extend_token_expiration && max < TRANSITION {
            tracing::warn!(
                "service-account-extend-token-expiration has no effect: the external signer signs no tokens of {} seconds",
                TRANSITION.as_secs()
            );
        } else if self.extend_token_expiration && max < EXTENDED {
            tracing::warn!(
                "service-account-extend-token-expiration is on: tokens of admitted pods live as long as the external signer \
                 allows: {}",
                text(signer)
            );
        }
        Ok(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn read(arguments: &[&str]) -> ServiceAccountOptions {
        let command = Command::new("pintle").args(ServiceAccountOptions::args());
        ServiceAccountOptions::read(&command.get_matches_from([&["pintle"], arguments].concat()))
    }

    #[test]
    fn flags_are_those_of_kube_apiserver() {
        assert_eq!(read(&[]), ServiceAccountOptions::default());
        let options = read(&[
            "--service-account-issuer=https://a",
            "--service-account-issuer=https://b,c",
            "--service-account-key-file=/a",
            "--service-account-key-file=/b",
            "--service-account-signing-key-file=/c",
            "--service-account-signing-endpoint=@signer",
            "--service-account-jwks-uri=https://d/jwks",
            "--service-account-max-token-expiration=48h",
            "--service-account-extend-token-expiration=false",
            "--service-account-lookup=0",
            "--api-audiences=e,f",
            "--api-audiences=g",
            "--enable-bootstrap-token-auth",
        ]);
        let expected = ServiceAccountOptions {
            issuers: vec!["https://a".to_owned(), "https://b,c".to_owned()],
            key_files: vec!["/a".into(), "/b".into()],
            signing_key_file: Some("/c".into()),
            signing_endpoint: Some("@signer".to_owned()),
            jwks_uri: Some("https://d/jwks".to_owned()),
            max_token_expiration: Duration::from_secs(48 * 60 * 60),
            extend_token_expiration: false,
            lookup: false,
            api_audiences: vec!["e".to_owned(), "f".to_owned(), "g".to_owned()],
            enable_bootstrap_token_auth: true,
        };
        assert_eq!(options, expected);
        assert_eq!(options.audiences(), ["e", "f", "g"]);
        assert_eq!(ServiceAccountOptions::default().audiences(), [DEFAULT_ISSUER]);
    }

    #[test]
    fn what_does_not_fit_together_is_told() {
        let check = |arguments: &[&str], expected: Result<(), &str>| {
            let options = read(arguments);
            let alone = options.expiration_error().map(str::to_owned).or_else(|| options.signing_key_error());
            let together = || {
                let mut errors = options.issuer_errors();
                errors.extend(options.token_request_error().map(str::to_owned));
                errors.extend(options.signing_endpoint_errors());
                errors.join(", ")
            };
            assert_eq!(alone.unwrap_or_else(together), expected.err().unwrap_or_default(), "{arguments:?}");
        };
        check(&[], Ok(()));
        check(&["--service-account-max-token-expiration=1h"], Ok(()));
        let limits = "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds";
        check(&["--service-account-max-token-expiration=59m"], Err(limits));
        check(&["--service-account-signing-endpoint="], Ok(()));
        check(&["--service-account-signing-endpoint=@a.b-c_d"], Ok(()));
        check(
            &["--service-account-signing-endpoint=@a/b"],
            Err(
                "invalid value \"@a/b\" passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid \
                 abstract socket name",
            ),
        );
        check(
            &["--service-account-signing-endpoint=/a", "--service-account-signing-key-file=/b"],
            Err(
                "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot be \
                 set at the same time",
            ),
        );
        check(
            &["--service-account-signing-endpoint=/a", "--service-account-key-file=/b"],
            Err("can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with \
                 `--service-account-signing-endpoint` (They are mutually exclusive)"),
        );
        check(
            &["--service-account-issuer="],
            Err(
                "service-account-issuer should not be an empty string, --service-account-signing-key-file and \
                 --service-account-issuer are required flags",
            ),
        );
        check(
            &["--service-account-issuer=", "--api-audiences=a", "--service-account-signing-key-file=/none"],
            Err("service-account-issuer should not be an empty string, --service-account-signing-key-file, \
                 --service-account-issuer, and --api-audiences should be specified together"),
        );
        check(
            &[
                "--service-account-issuer=a",
                "--service-account-issuer=a",
                "--service-account-issuer=::",
                "--service-account-jwks-uri=http://a",
            ],
            Err(
                "service-account-issuer \"a\" is already specified, service-account-issuer \"::\" contained a ':' but was not \
                 a valid URL: parse \"::\": missing protocol scheme, service-account-jwks-uri requires https scheme, parsed \
                 as: http://a",
            ),
        );
        check(
            &["--service-account-signing-key-file=/none"],
            Err("failed to parse service-account-issuer-key-file: open /none: no such file or directory"),
        );
    }
}
