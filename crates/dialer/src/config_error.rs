//! The errors of a client's configuration.

/// The reason why a client's configuration is unusable.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The URL is invalid.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// The CA certificates are unusable.
    #[error("unable to load root certificates: {0}")]
    Roots(String),
    /// The client's credentials are unusable.
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    /// TLS cannot be configured.
    #[error("{0}")]
    Tls(String),
}
