//! Authenticates the tokens of all issuers, which can be replaced while the server runs.

use super::{Algorithm, JwtTokenAuthenticator, metrics::JwtMetrics};
use crate::config::{AuthenticationConfiguration, Expressions};
use arc_swap::ArcSwap;
use pintle_auth::{
    BoxFuture,
    authn::{Authentication, TokenAuthenticator},
};
use pintle_dialer::EgressSelector;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// The authenticators of all issuers of a configuration.
pub struct Issuers {
    current: ArcSwap<Vec<Arc<JwtTokenAuthenticator>>>,
    algorithms: Vec<Algorithm>,
    metrics: JwtMetrics,
    egress: EgressSelector,
}

/// How long the discovery of new issuers may take before the old ones are kept.
const PATIENCE: Duration = Duration::from_secs(60);

impl Issuers {
    /// Starts the discovery of the issuers of a validated configuration. `expressions` are those of its issuers, in
    /// order.
    ///
    /// # Errors
    /// When the trust anchors of an issuer are invalid, or its network is not configured.
    pub fn start(
        config: &AuthenticationConfiguration,
        expressions: Vec<Expressions>,
        algorithms: Vec<Algorithm>,
        metrics: JwtMetrics,
        egress: EgressSelector,
    ) -> Result<Issuers, String> {
        let first = start(config, expressions, &algorithms, &metrics, &egress)?;
        Ok(Issuers { current: ArcSwap::from_pointee(first), algorithms, metrics, egress })
    }

    /// Replaces the configuration by another validated one, after the discovery of all its issuers has succeeded.
    ///
    /// # Errors
    /// When the discovery does not succeed within a minute; the old configuration stays in force.
    pub async fn replace(
        &self,
        config: &AuthenticationConfiguration,
        expressions: Vec<Expressions>,
    ) -> Result<(), String> {
        let next = start(config, expressions, &self.algorithms, &self.metrics, &self.egress)?;
        let ready = async {
            for issuer in &next {
                issuer.ready().await;
            }
        };
        if timeout(PATIENCE, ready).await.is_err() {
            let errors: Vec<_> = next.iter().filter_map(|issuer| issuer.health().err()).collect();
            return Err(errors.join(", "));
        }
        let is_there = |issuer: &str| next.iter().any(|own| own.issuer() == issuer);
        let gone: Vec<_> =
            self.current.load().iter().filter(|issuer| !is_there(issuer.issuer())).cloned().collect();
        self.current.store(Arc::new(next));
        gone.iter().for_each(|issuer| issuer.forget());
        Ok(())
    }

    /// Whether the discovery of all issuers has succeeded.
    ///
    /// # Errors
    /// The errors of the issuers whose discovery has not succeeded.
    pub fn health(&self) -> Result<(), String> {
        let errors: Vec<_> = self.current.load().iter().filter_map(|issuer| issuer.health().err()).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join(", ")) }
    }
}

fn start(
    config: &AuthenticationConfiguration,
    expressions: Vec<Expressions>,
    algorithms: &[Algorithm],
    metrics: &JwtMetrics,
    egress: &EgressSelector,
) -> Result<Vec<Arc<JwtTokenAuthenticator>>, String> {
    let started = config.jwt.iter().zip(expressions).map(|(config, expressions)| {
        JwtTokenAuthenticator::start(
            config.clone(),
            expressions,
            algorithms.to_vec(),
            metrics.clone(),
            egress,
        )
        .map(Arc::new)
    });
    started.collect()
}

impl TokenAuthenticator for Issuers {
    fn authenticate_token<'a>(&'a self, token: &'a str, _: &'a [String]) -> BoxFuture<'a, Authentication> {
        Box::pin(async move {
            // A token names one issuer, and only that one verifies it.
            for issuer in self.current.load_full().iter() {
                if let Some(found) = issuer.authenticate(token).await? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        })
    }
}
