//! The flags of an OpenID Connect issuer
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-flags>).

use super::arguments::{flag, list, set_list};
use clap::{Arg, ArgAction, ArgMatches};
use pintle_authentication::{
    config::{
        AuthenticationConfiguration, ClaimMappings, ClaimValidationRule, Issuer, JwtAuthenticator,
        PrefixedClaimOrExpression,
    },
    oidc::Algorithm,
};
use std::path::PathBuf;

/// An OpenID Connect issuer; the default is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OidcOptions {
    /// The URL of the issuer.
    pub issuer_url: Option<String>,
    /// The required audience of its tokens.
    pub client_id: Option<String>,
    /// The file with the trust anchors of its TLS certificate; `None` uses the system's.
    pub ca_file: Option<PathBuf>,
    /// The claim with the user name; `None` is `sub`.
    pub username_claim: Option<String>,
    /// The prefix of user names; `None` is the issuer, except for the claim `email`, and `-` is no prefix.
    pub username_prefix: Option<String>,
    /// The claim with the groups.
    pub groups_claim: Option<String>,
    /// The prefix of groups.
    pub groups_prefix: Option<String>,
    /// The allowed signing algorithms; an empty list allows RS256.
    pub signing_algs: Vec<String>,
    /// Claims and their required values.
    pub required_claims: Vec<(String, String)>,
}

const FLAGS: [(&str, &str, &str); 7] = [
    ("oidc-issuer-url", "URL", "URL of the OpenID Connect issuer"),
    ("oidc-client-id", "ID", "Client ID that must be among the audiences of ID tokens"),
    ("oidc-ca-file", "FILE", "Certificate authorities of the issuer's serving certificate"),
    ("oidc-username-claim", "CLAIM", "Claim with the user name"),
    ("oidc-username-prefix", "PREFIX", "Prefix of user names; - for none"),
    ("oidc-groups-claim", "CLAIM", "Claim with the user's groups"),
    ("oidc-groups-prefix", "PREFIX", "Prefix of groups"),
];

impl OidcOptions {
    /// The flags.
    pub(crate) fn args() -> Vec<Arg> {
        let mut args: Vec<Arg> = FLAGS.iter().map(|(name, value, help)| flag(name, value, help)).collect();
        args.push(list("oidc-signing-algs", "ALG,…", "Allowed signing algorithms of ID tokens"));
        args.push(
            flag("oidc-required-claim", "CLAIM=VALUE", "Claim and value that ID tokens must have")
                .action(ArgAction::Append)
                .value_parser(pair),
        );
        args
    }

    /// Reads the flags.
    pub(crate) fn read(matches: &ArgMatches) -> OidcOptions {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let mut options = OidcOptions {
            issuer_url: text("oidc-issuer-url"),
            client_id: text("oidc-client-id"),
            ca_file: text("oidc-ca-file").map(PathBuf::from),
            username_claim: text("oidc-username-claim"),
            username_prefix: text("oidc-username-prefix"),
            groups_claim: text("oidc-groups-claim"),
            groups_prefix: text("oidc-groups-prefix"),
            ..OidcOptions::default()
        };
        set_list(matches, "oidc-signing-algs", &mut options.signing_algs);
        let claims = matches.get_many::<(String, String)>("oidc-required-claim").into_iter().flatten();
        options.required_claims = claims.cloned().collect();
        options
    }

    /// Whether any flag is set.
    pub(crate) fn is_given(&self) -> bool {
        *self != OidcOptions::default()
    }

    /// The error of flags that contradict each other, or the file with issuers.
    pub(crate) fn error(&self, has_file: bool) -> Option<&'static str> {
        let lacks = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
        match has_file {
            _ if !self.is_given() => None,
            true => Some("authentication-config file and oidc-* flags are mutually exclusive"),
            false if lacks(&self.issuer_url) || lacks(&self.client_id) => Some(
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
            ),
            false => None,
        }
    }

    /// The authentication configuration that the flags stand for.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn configuration(&self) -> Result<AuthenticationConfiguration, String> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (Some(url), Some(client)) = (given(&self.issuer_url), given(&self.client_id)) else {
            return Ok(AuthenticationConfiguration::default());
        };
        let username_claim = self.username_claim.clone().unwrap_or_else(|| "sub".to_owned());
        let username_prefix = match self.username_prefix.as_deref().unwrap_or_default() {
            // The prefix keeps user names of several issuers distinct; e-mail addresses are distinct already.
            "" if username_claim != "email" => format!("{url}#"),
            "-" => String::new(),
            prefix => prefix.to_owned(),
        };
        let groups = match given(&self.groups_claim) {
            None => PrefixedClaimOrExpression::default(),
            Some(claim) => PrefixedClaimOrExpression {
                claim,
                prefix: Some(self.groups_prefix.clone().unwrap_or_default()),
                expression: String::new(),
            },
        };
        let certificate_authority = match &self.ca_file {
            None => String::new(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("--oidc-ca-file: {}: {error}", path.display()))?,
        };
        let rules = self.required_claims.iter().map(|(claim, value)| ClaimValidationRule {
            claim: claim.clone(),
            required_value: value.clone(),
            ..ClaimValidationRule::default()
        });
        let jwt = JwtAuthenticator {
            issuer: Issuer { url, audiences: vec![client], certificate_authority, ..Issuer::default() },
            claim_mappings: ClaimMappings {
                username: PrefixedClaimOrExpression {
                    claim: username_claim,
                    prefix: Some(username_prefix),
                    expression: String::new(),
                },
                groups,
                ..ClaimMappings::default()
            },
            claim_validation_rules: rules.collect(),
            ..JwtAuthenticator::default()
        };
        Ok(AuthenticationConfiguration { jwt: vec![jwt], anonymous: None })
    }

    /// The allowed signing algorithms.
    ///
    /// # Errors
    /// When an algorithm is not supported.
    pub(crate) fn algorithms(&self) -> Result<Vec<Algorithm>, String> {
        if self.signing_algs.is_empty() {
            return Ok(vec![Algorithm::Rs256]);
        }
        let algorithm = |name: &String| {
            Algorithm::parse(name).ok_or_else(|| format!("oidc: unsupported signing alg: {name:?}"))
        };
        self.signing_algs.iter().map(algorithm).collect()
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (claim, value) = text.split_once('=').ok_or("malformed pair, expect string=string")?;
    Ok((claim.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_a_configuration() {
        let options = |change: fn(&mut OidcOptions)| {
            let mut options = OidcOptions {
                issuer_url: Some("https://a.example.com".to_owned()),
                client_id: Some("me".to_owned()),
                ..OidcOptions::default()
            };
            change(&mut options);
            options.configuration().map(|config| config.jwt)
        };
        let prefix = |change| options(change).unwrap()[0].claim_mappings.username.prefix.clone().unwrap();
        assert_eq!(prefix(|_| {}), "https://a.example.com#");
        assert_eq!(prefix(|options| options.username_claim = Some("email".to_owned())), "");
        assert_eq!(prefix(|options| options.username_prefix = Some("-".to_owned())), "");
        assert_eq!(prefix(|options| options.username_prefix = Some("o:".to_owned())), "o:");
        assert!(options(|options| options.ca_file = Some("/no/such/file".into())).is_err());
        assert_eq!(OidcOptions::default().configuration(), Ok(AuthenticationConfiguration::default()));
    }

    #[test]
    fn issuer_and_client_belong_together_and_exclude_a_file() {
        let options = |issuer: Option<&str>, client: Option<&str>| OidcOptions {
            issuer_url: issuer.map(str::to_owned),
            client_id: client.map(str::to_owned),
            ..OidcOptions::default()
        };
        let check = |options: OidcOptions, has_file: bool, expected: Option<&str>| {
            let error = options.error(has_file);
            assert_eq!(error.and_then(|error| error.split(' ').next()), expected, "{options:?}");
        };
        check(options(None, None), false, None);
        check(options(None, None), true, None);
        check(options(Some("https://a"), Some("b")), false, None);
        check(options(Some("https://a"), None), false, Some("oidc-issuer-url"));
        check(options(Some("https://a"), Some("")), false, Some("oidc-issuer-url"));
        check(options(None, Some("b")), false, Some("oidc-issuer-url"));
        check(options(Some("https://a"), None), true, Some("authentication-config"));
    }

    #[test]
    fn no_algorithm_is_not_one() {
        for name in ["none", "HS256", "EdDSA", "rs256"] {
            let options = OidcOptions { signing_algs: vec![name.to_owned()], ..OidcOptions::default() };
            assert_eq!(options.algorithms().unwrap_err(), format!("oidc: unsupported signing alg: {name:?}"));
        }
    }
}
