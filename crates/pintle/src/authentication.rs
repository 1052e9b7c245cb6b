//! The authenticators of the server, put together.

use crate::{Options, run::RunError, secure_serving::SecureServing};
use pintle_apiserver::metrics::Metrics;
use pintle_auth::{
    Anonymous, AuthenticationMetrics, ClientCertificates, FrontProxy, RequestHeaders, TokenCache,
    TokenCacheConfig, TokenFile, TokenUnion, Union,
    authn::{Authenticator, TokenAuthenticator},
};
use std::{collections::HashSet, sync::Arc, time::Duration};

/// Who asks, and what is taken off requests for it.
pub(crate) struct Authentication {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    /// Who knows tokens, for reviews.
    pub(crate) tokens: Arc<dyn TokenAuthenticator>,
    pub(crate) request_headers: RequestHeaders,
}

/// For how long tokens are good that were good.
const TOKEN_SUCCESS_TTL: Duration = Duration::from_secs(10);

impl Authentication {
    /// All ways to prove who one is, in Kubernetes' order. `issued` are those who know the tokens that this server issued.
    pub(crate) fn new(
        options: &Options,
        serving: &SecureServing,
        metrics: &Metrics,
        issued: Vec<Arc<dyn TokenAuthenticator>>,
    ) -> Result<Authentication, RunError> {
        let counted = AuthenticationMetrics::new();
        let counted = counted.map_err(|error| RunError::Assemble(error.to_string()))?;
        let registered = metrics.register(counted.collectors());
        registered.map_err(|error| RunError::Assemble(error.to_string()))?;
        let proxy_options = &options.authentication.request_header;
        let request_headers = proxy_options.headers().map_err(RunError::Options)?;
        check_overlap(options, serving)?;
        let front_proxy = serving.request_header_ca.clone().map(|bundle| {
            FrontProxy::new(bundle, proxy_options.allowed_names.clone(), request_headers.clone())
        });
        // A look into the file's table is cheaper than one into the cache.
        let file = options.token_auth_file.as_deref().map(TokenFile::read).transpose()?;
        let mut tokens: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
        tokens.extend(file.map(|file| Arc::new(file) as Arc<dyn TokenAuthenticator>));
        if !issued.is_empty() {
            let config = TokenCacheConfig {
                success_ttl: TOKEN_SUCCESS_TTL,
                failure_ttl: Duration::ZERO,
                keeps_errors: true,
            };
            let others = Arc::new(TokenUnion(issued));
            tokens.push(Arc::new(TokenCache::with_metrics(others, config, counted.token_cache())));
        }
        let reviewed = Arc::new(TokenUnion(tokens.clone()));
        let union = Union {
            front_proxy,
            certificates: Some(
                ClientCertificates::new(serving.client_ca.clone()).with_lifetimes(counted.lifetimes()),
            ),
            tokens,
            anonymous: Anonymous {
                enabled: options.authentication.anonymous_auth.unwrap_or(true),
                paths: Vec::new(),
            },
            metrics: Some(counted),
        };
        Ok(Authentication { authenticator: Arc::new(union), tokens: reviewed, request_headers })
    }
}

/// An authority of clients must not make every client a front proxy.
fn check_overlap(options: &Options, serving: &SecureServing) -> Result<(), RunError> {
    let Some(proxies) = &serving.request_header_ca else { return Ok(()) };
    if !options.authentication.request_header.allowed_names.is_empty() {
        return Ok(());
    }
    let (clients, proxies) = (serving.client_ca.current(), proxies.current());
    let clients: HashSet<&[u8]> = clients.certificates().iter().map(|der| der.as_ref()).collect();
    match proxies.certificates().iter().any(|der| clients.contains(der.as_ref())) {
        false => Ok(()),
        true => Err(RunError::Options(
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; \
             --requestheader-allowed-names must be specified to ensure regular client certificates cannot set \
             authenticating proxy headers for arbitrary users"
                .to_owned(),
        )),
    }
}
