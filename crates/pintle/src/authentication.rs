//! Assembles the server's authenticators.

use crate::{
    Options, TokenWebhookOptions, authentication_config::AuthenticationConfig, run_error::RunError,
    secure_serving::SecureServing,
};
use pintle_apiserver::metrics::Metrics;
use pintle_auth::{
    RequestHeaders,
    authn::{Authenticator, TokenAuthenticator},
};
use pintle_authentication::{
    AudienceAgnostic, AuthenticationMetrics, ClientCertificates, FrontProxy, JwtMetrics, TokenCache,
    TokenCacheConfig, TokenFile, TokenReviewWebhook, TokenUnion, Union,
};
use pintle_dialer::{EgressSelector, Network};
use pintle_webhook::{Kubeconfig, WebhookClient};
use std::{collections::HashSet, sync::Arc, time::Duration};

/// The assembled authentication, and the headers that it removes from requests.
pub(crate) struct Authentication {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    /// Authenticates the tokens of `TokenReview`s.
    pub(crate) tokens: Arc<dyn TokenAuthenticator>,
    /// The headers in which front proxies send the user.
    pub(crate) request_headers: RequestHeaders,
    /// The reloaded configuration file.
    pub(crate) config: AuthenticationConfig,
}

/// The tokens that the server itself issues.
#[derive(Default)]
pub(crate) struct OwnTokens {
    /// The authenticators of these tokens, in order.
    pub(crate) authenticators: Vec<Arc<dyn TokenAuthenticator>>,
    /// The issuers under which it issues them.
    pub(crate) issuers: Vec<String>,
    /// The audiences of this server.
    pub(crate) audiences: Vec<String>,
}

/// How long a successful authentication is cached.
const TOKEN_SUCCESS_TTL: Duration = Duration::from_secs(10);

impl Authentication {
    /// The union of all authenticators, in Kubernetes' order.
    pub(crate) fn new(
        options: &Options,
        serving: &SecureServing,
        metrics: &Metrics,
        own: OwnTokens,
        egress: &EgressSelector,
    ) -> Result<Authentication, RunError> {
        let counted = AuthenticationMetrics::new()?;
        metrics.register(counted.collectors())?;
        let jwt_metrics = JwtMetrics::new(&options.identity())?;
        metrics.register(jwt_metrics.collectors())?;
        let proxy_options = &options.authentication.request_header;
        let request_headers = proxy_options.headers();
        check_overlap(options, serving)?;
        let front_proxy = serving.request_header_ca.clone().map(|bundle| {
            FrontProxy::new(bundle, proxy_options.allowed_names.clone(), request_headers.clone())
        });
        let config = AuthenticationConfig::load(options, own.issuers, &jwt_metrics, egress)?;
        let audiences: Arc<[String]> = own.audiences.into();
        let agnostic = |authenticator: Arc<dyn TokenAuthenticator>| {
            Arc::new(AudienceAgnostic::new(authenticator, audiences.clone())) as Arc<dyn TokenAuthenticator>
        };
        // A lookup in the file's table is cheaper than one in the cache.
        let file = options.token_auth_file.as_deref().map(TokenFile::read).transpose()?;
        let mut tokens: Vec<_> = file.map(|file| agnostic(Arc::new(file))).into_iter().collect();
        let mut asked = own.authenticators;
        asked.extend(config.issuers.clone().map(|issuers| agnostic(issuers)));
        asked.extend(webhook(options, &audiences, egress)?);
        if !asked.is_empty() {
            let config = TokenCacheConfig {
                success_ttl: TOKEN_SUCCESS_TTL,
                failure_ttl: Duration::ZERO,
                keeps_errors: true,
            };
            let asked = Arc::new(TokenUnion(asked));
            tokens.push(Arc::new(TokenCache::with_metrics(asked, config, counted.token_cache())));
        }
        let certificates =
            ClientCertificates::new(serving.client_ca.clone()).with_lifetimes(counted.lifetimes());
        let reviewed = Arc::new(TokenUnion(tokens.clone()));
        let union = Union {
            front_proxy,
            certificates: Some(certificates),
            tokens,
            anonymous: config.anonymous.clone(),
            metrics: Some(counted),
        };
        Ok(Authentication { authenticator: Arc::new(union), tokens: reviewed, request_headers, config })
    }
}

/// The token webhook, with its cache.
fn webhook(
    options: &Options,
    audiences: &Arc<[String]>,
    egress: &EgressSelector,
) -> Result<Option<Arc<dyn TokenAuthenticator>>, RunError> {
    let TokenWebhookOptions { config_file, version, cache_ttl } = &options.authentication.webhook;
    let Some(path) = config_file else { return Ok(None) };
    let failed = |error: &dyn std::fmt::Display| RunError::Options(error.to_string());
    let kubeconfig = Kubeconfig::read(path).map_err(|error| failed(&error))?;
    let client = WebhookClient::of_kubeconfig(&kubeconfig, &egress.dialer(Network::ControlPlane))
        .map_err(|error| failed(&error))?;
    let webhook = Arc::new(TokenReviewWebhook::new(client, *version, audiences.clone()));
    let config = TokenCacheConfig { success_ttl: *cache_ttl, failure_ttl: *cache_ttl, keeps_errors: false };
    Ok(Some(Arc::new(TokenCache::new(webhook, config))))
}

/// Rejects a client authority that is also the front proxies' while any name is allowed: every client would be a front
/// proxy.
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
