//! The configuration file: `AuthenticationConfiguration` of `apiserver.config.k8s.io`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/>), from bytes to types.
//!
//! [`read`] gives what is written; [`validate`] says what is wrong with it, by field, and compiles its expressions.

mod decode;
pub(crate) mod expressions;
#[cfg(test)]
mod tests;
mod validation;

pub use expressions::Expressions;
pub use validation::validate;

use pintle_machinery::{ErrorList, Value, ValueExt};
use std::{io, path::Path};

/// Who is believed to be who they say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthenticationConfiguration {
    /// Issuers of tokens.
    pub jwt: Vec<JwtAuthenticator>,
    /// Who shows nothing; `None` is not said.
    pub anonymous: Option<AnonymousAuthConfig>,
}

/// Whether requests without credentials are let in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnonymousAuthConfig {
    /// Whether they are at all.
    pub enabled: bool,
    /// The paths at which they are; none given are all.
    pub conditions: Vec<String>,
}

/// An issuer of tokens, and what its tokens say of users.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JwtAuthenticator {
    /// Who issues them.
    pub issuer: Issuer,
    /// What claims have to say.
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// Which claims say who the user is.
    pub claim_mappings: ClaimMappings,
    /// What users have to be.
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// Who issues tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Issuer {
    /// What the claim `iss` says.
    pub url: String,
    /// Where the issuer describes itself, if not below its URL; "" is there.
    pub discovery_url: String,
    /// The authorities of its TLS certificate, as PEM; "" are the system's.
    pub certificate_authority: String,
    /// For whom tokens are: one of these.
    pub audiences: Vec<String>,
    /// `MatchAny`, or "" with one audience.
    pub audience_match_policy: String,
    /// The way out of the cluster; this server has none.
    pub egress_selector_type: String,
}

/// What a claim has to say, or an expression about all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimValidationRule {
    /// The claim.
    pub claim: String,
    /// What it says.
    pub required_value: String,
    /// The expression.
    pub expression: String,
    /// What is told when it is false.
    pub message: String,
}

/// Which claims say who the user is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimMappings {
    /// The name.
    pub username: PrefixedClaimOrExpression,
    /// The groups.
    pub groups: PrefixedClaimOrExpression,
    /// The identity.
    pub uid: ClaimOrExpression,
    /// More.
    pub extra: Vec<ExtraMapping>,
}

/// A claim whose value gets a prefix, or an expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// The prefix; it has to be said that there is none.
    pub prefix: Option<String>,
    /// The expression.
    pub expression: String,
}

/// A claim, or an expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// The expression.
    pub expression: String,
}

/// More about the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtraMapping {
    /// What it is called.
    pub key: String,
    /// Its values.
    pub value_expression: String,
}

/// What a user has to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserValidationRule {
    /// The expression.
    pub expression: String,
    /// What is told when it is false.
    pub message: String,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to load authentication configuration from file {path:?}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is no configuration.
    #[error("failed to load authentication configuration from file {path:?}: {reason}")]
    Decode {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// Fields are wrong.
    #[error("invalid authentication configuration: {}", aggregate(.0))]
    Invalid(ErrorList),
}

/// The configuration in a file, as it is written, and the file's content.
///
/// # Errors
/// When it cannot be read, or is no configuration.
pub fn read(path: &Path) -> Result<(AuthenticationConfiguration, Vec<u8>), ConfigError> {
    let named = || path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| ConfigError::Read { path: named(), source })?;
    let config = parse(&bytes).map_err(|reason| ConfigError::Decode { path: named(), reason })?;
    Ok((config, bytes))
}

/// The configuration in the content of a file.
///
/// # Errors
/// Why it is none.
pub fn parse(bytes: &[u8]) -> Result<AuthenticationConfiguration, String> {
    if bytes.is_empty() {
        return Err("empty config data".to_owned());
    }
    decode::decode(bytes).map(|tree| from_tree(&tree))
}

fn from_tree(tree: &Value) -> AuthenticationConfiguration {
    let anonymous = tree.field("anonymous").filter(|field| field.is_object());
    AuthenticationConfiguration {
        jwt: tree.items_at("jwt").iter().map(jwt_authenticator).collect(),
        anonymous: anonymous.map(|anonymous| AnonymousAuthConfig {
            enabled: anonymous.bool_at("enabled"),
            conditions: anonymous.items_at("conditions").iter().map(|item| text(item, "path")).collect(),
        }),
    }
}

fn jwt_authenticator(tree: &Value) -> JwtAuthenticator {
    let rules = tree.items_at("claimValidationRules").iter().map(|rule| ClaimValidationRule {
        claim: text(rule, "claim"),
        required_value: text(rule, "requiredValue"),
        expression: text(rule, "expression"),
        message: text(rule, "message"),
    });
    let user_rules = tree.items_at("userValidationRules").iter().map(|rule| UserValidationRule {
        expression: text(rule, "expression"),
        message: text(rule, "message"),
    });
    let extra = tree.items_at("claimMappings.extra").iter().map(|mapping| ExtraMapping {
        key: text(mapping, "key"),
        value_expression: text(mapping, "valueExpression"),
    });
    let prefixed = |field: &str| PrefixedClaimOrExpression {
        claim: text(tree, &format!("claimMappings.{field}.claim")),
        prefix: tree.at(&format!("claimMappings.{field}.prefix")).and_then(Value::as_str).map(str::to_owned),
        expression: text(tree, &format!("claimMappings.{field}.expression")),
    };
    let audiences = tree.items_at("issuer.audiences").iter();
    JwtAuthenticator {
        issuer: Issuer {
            url: text(tree, "issuer.url"),
            discovery_url: text(tree, "issuer.discoveryURL"),
            certificate_authority: text(tree, "issuer.certificateAuthority"),
            audiences: audiences.map(|audience| audience.as_str().unwrap_or_default().to_owned()).collect(),
            audience_match_policy: text(tree, "issuer.audienceMatchPolicy"),
            egress_selector_type: text(tree, "issuer.egressSelectorType"),
        },
        claim_validation_rules: rules.collect(),
        claim_mappings: ClaimMappings {
            username: prefixed("username"),
            groups: prefixed("groups"),
            uid: ClaimOrExpression {
                claim: text(tree, "claimMappings.uid.claim"),
                expression: text(tree, "claimMappings.uid.expression"),
            },
            extra: extra.collect(),
        },
        user_validation_rules: user_rules.collect(),
    }
}

fn text(tree: &Value, path: &str) -> String {
    tree.str_at(path).to_owned()
}

/// All errors as one line, as Kubernetes prints several: in brackets, none of them twice.
fn aggregate(errors: &ErrorList) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
