//! All issuers, which may change while the server runs.

use super::{Algorithm, JwtTokenAuthenticator};
use crate::{
    config::{AuthenticationConfiguration, Expressions},
    metrics::JwtMetrics,
};
use arc_swap::ArcSwap;
use pintle_auth::{
    BoxFuture,
    authn::{Authentication, TokenAuthenticator},
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Knows the tokens of all issuers of a configuration.
pub struct Issuers {
    current: ArcSwap<Vec<Arc<JwtTokenAuthenticator>>>,
    algorithms: Vec<Algorithm>,
    metrics: JwtMetrics,
}

/// How long new issuers may take to describe themselves before the old ones are kept.
const PATIENCE: Duration = Duration::from_secs(60);

impl Issuers {
    /// Begins to ask the issuers of a validated configuration. The expressions are those of its issuers, in order.
    ///
    /// # Errors
    /// When one cannot be asked at all.
    pub fn start(
        config: &AuthenticationConfiguration,
        expressions: Vec<Expressions>,
        algorithms: Vec<Algorithm>,
        metrics: JwtMetrics,
    ) -> Result<Issuers, String> {
        let first = start(config, expressions, &algorithms, &metrics)?;
        Ok(Issuers { current: ArcSwap::from_pointee(first), algorithms, metrics })
    }

    /// Puts another validated configuration in force as soon as all its issuers have described themselves.
    ///
    /// # Errors
    /// When they have not within a minute; the old ones stay then.
    pub async fn replace(
        &self,
        config: &AuthenticationConfiguration,
        expressions: Vec<Expressions>,
    ) -> Result<(), String> {
        let next = start(config, expressions, &self.algorithms, &self.metrics)?;
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

    /// Whether all issuers have described themselves.
    ///
    /// # Errors
    /// Which have not, and why.
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
) -> Result<Vec<Arc<JwtTokenAuthenticator>>, String> {
    let started = config.jwt.iter().zip(expressions).map(|(config, expressions)| {
        JwtTokenAuthenticator::start(config.clone(), expressions, algorithms.to_vec(), metrics.clone())
            .map(Arc::new)
    });
    started.collect()
}

impl TokenAuthenticator for Issuers {
    fn authenticate_token<'a>(&'a self, token: &'a str, _: &'a [String]) -> BoxFuture<'a, Authentication> {
        Box::pin(async move {
            // A token names one issuer, and none but that one is asked.
            for issuer in self.current.load_full().iter() {
                if let Some(found) = issuer.authenticate(token).await? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        })
    }
}
