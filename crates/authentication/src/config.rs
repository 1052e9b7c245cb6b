//! Reads the configuration file: `AuthenticationConfiguration` of `apiserver.config.k8s.io`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/>).
//!
//! [`read`] decodes it; [`validate`] reports its errors by field, and compiles its expressions.

mod decode;
pub(crate) mod expressions;
#[cfg(test)]
mod tests;
mod validation;

pub use expressions::Expressions;
pub use validation::validate;

use pintle_go_forms::{FileError, read_file};
use pintle_machinery::{ErrorList, Value, ValueExt, status::aggregate};
use std::path::Path;

/// The configuration of authentication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthenticationConfiguration {
    /// Issuers of tokens.
    pub jwt: Vec<JwtAuthenticator>,
    /// The rule for anonymous requests; `None` when the file has none.
    pub anonymous: Option<AnonymousAuthConfig>,
}

/// The rule for anonymous requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnonymousAuthConfig {
    /// Whether they are accepted at all.
    pub enabled: bool,
    /// The paths at which they are accepted; an empty list accepts all paths.
    pub conditions: Vec<String>,
}

/// An issuer of tokens, and the mapping of its claims to users.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JwtAuthenticator {
    /// The issuer.
    pub issuer: Issuer,
    /// The rules that claims must satisfy.
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// The mapping of claims to the user.
    pub claim_mappings: ClaimMappings,
    /// The rules that users must satisfy.
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// A token issuer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Issuer {
    /// The issuer URL: the claim `iss` of its tokens.
    pub url: String,
    /// The URL of the discovery document, if it is not below the issuer URL.
    pub discovery_url: String,
    /// The trust anchors of its TLS certificate, as PEM; "" uses the system's.
    pub certificate_authority: String,
    /// The accepted audiences, one of which a token must have.
    pub audiences: Vec<String>,
    /// `MatchAny`, or "" with a single audience.
    pub audience_match_policy: String,
    /// The network of the issuer, `controlplane` or `cluster`; empty for direct connections.
    pub egress_selector_type: String,
}

/// A required value of a claim, or an expression on all claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimValidationRule {
    /// The claim's name.
    pub claim: String,
    /// The required value.
    pub required_value: String,
    /// The expression.
    pub expression: String,
    /// The message when the expression is false.
    pub message: String,
}

/// The mapping of claims to the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimMappings {
    /// The user name.
    pub username: PrefixedClaimOrExpression,
    /// The groups.
    pub groups: PrefixedClaimOrExpression,
    /// The UID.
    pub uid: ClaimOrExpression,
    /// The extra fields.
    pub extra: Vec<ExtraMapping>,
}

/// A claim whose value is prefixed, or an expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// The prefix; it is required with a claim, and may be empty.
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

/// An extra field of the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtraMapping {
    /// The key of the extra field.
    pub key: String,
    /// The expression of its values.
    pub value_expression: String,
}

/// A rule that users must satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserValidationRule {
    /// The expression.
    pub expression: String,
    /// The message when the expression is false.
    pub message: String,
}

/// The reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to load authentication configuration from file {path:?}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        source: FileError,
    },
    /// The file is not a configuration.
    #[error("failed to load authentication configuration from file {path:?}: {reason}")]
    Decode {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// Fields are invalid.
    #[error("invalid authentication configuration: {}", aggregate(.0.iter().map(ToString::to_string)))]
    Invalid(ErrorList),
}

/// Reads and decodes a file, without validation; also returns the file's content.
///
/// # Errors
/// When the file cannot be read or decoded.
pub fn read(path: &Path) -> Result<(AuthenticationConfiguration, Vec<u8>), ConfigError> {
    let named = || path.display().to_string();
    let bytes = read_file(path).map_err(|source| ConfigError::Read { path: named(), source })?;
    let config = parse(&bytes).map_err(|reason| ConfigError::Decode { path: named(), reason })?;
    Ok((config, bytes))
}

/// Decodes the content of a file, without validation.
///
/// # Errors
/// When the content is not a configuration.
pub fn parse(bytes: &[u8]) -> Result<AuthenticationConfiguration, String> {
    if bytes.is_empty() {
        return Err("empty config data".to_owned());
    }
    let tree = decode::FILE.decode_strict(bytes).map_err(|error| error.to_string())?;
    Ok(from_tree(&tree))
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
