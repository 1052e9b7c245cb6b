//! Reads the configuration file: `AuthorizationConfiguration` of `apiserver.config.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization>).
//!
//! A configuration that [`AuthorizationConfiguration::parse`] returns is valid: types are known, names are unique,
//! webhooks are complete and their match conditions compile. All errors are reported at once, by field.

mod decode;
#[cfg(test)]
mod tests;
mod types;
mod validation;

pub use types::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType, FailurePolicy,
    WebhookConfiguration,
};

use pintle_machinery::{Map, Value, status::aggregate};

/// The reason why a configuration is invalid. It names fields, not the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfiguration(pub(crate) String);

impl AuthorizationConfiguration {
    /// Parses and validates the content of a file.
    ///
    /// # Errors
    /// All errors of the configuration.
    pub fn parse(bytes: &[u8]) -> Result<AuthorizationConfiguration, InvalidConfiguration> {
        // An empty file is a configuration without authorizers.
        let tree = match bytes.is_empty() {
            true => Ok(Value::Object(Map::new())),
            false => decode::FILE.decode_strict(bytes),
        };
        let tree = tree.map_err(|reason| {
            InvalidConfiguration(format!("failed to load AuthorizationConfiguration from file: {reason}"))
        })?;
        let configuration = validation::validate(&tree)
            .map_err(|errors| InvalidConfiguration(aggregate(errors.iter().map(ToString::to_string))))?;
        // Built-in authorizers have the name of their type.
        let wrong = configuration.authorizers.iter().filter_map(|AuthorizerConfiguration { name, kind }| {
            let AuthorizerKind::BuiltIn(authorizer_type) = kind else { return None };
            let expected = authorizer_type.authorizer_name();
            (*name != expected).then(|| {
                format!("expected name {expected} for authorizer {authorizer_type} instead of {name}")
            })
        });
        let wrong: Vec<_> = wrong.collect();
        match wrong.is_empty() {
            true => Ok(configuration),
            false => Err(InvalidConfiguration(aggregate(wrong.into_iter()))),
        }
    }
}
