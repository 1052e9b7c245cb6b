//! Authenticates the tokens of one issuer.

use super::{
    claims::Claims,
    distributed_claims::ClaimResolver,
    key_set::RemoteKeySet,
    metrics::JwtMetrics,
    provider,
    verifier::{Verifier, issuer_of},
};
use crate::config::{
    Expressions, JwtAuthenticator, PrefixedClaimOrExpression,
    expressions::{Expression, Variable, visible},
};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use pintle_auth::authn::{Authenticated, Authentication, InvalidCredentials};
use pintle_cel::Value as CelValue;
use pintle_config_metrics::content_hash;
use pintle_dialer::{Dialer, EgressSelector, Network};
use pintle_jwt::{Algorithm, Token};
use pintle_machinery::{UserInfo, Value, json, user::CREDENTIAL_ID};
use pintle_webhook::DocumentClient;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinHandle};

/// Authenticates the tokens of an issuer, once its discovery document was fetched. Dropping it cancels the discovery.
pub struct JwtTokenAuthenticator {
    config: JwtAuthenticator,
    expressions: Expressions,
    algorithms: Vec<Algorithm>,
    resolver: Option<ClaimResolver>,
    provider: Arc<Provider>,
    metrics: JwtMetrics,
    issuer_hash: String,
    task: JoinHandle<()>,
}

/// The state of the issuer's discovery.
struct Provider {
    keys: ArcSwapOption<RemoteKeySet>,
    /// The last error of the discovery; `None` once it has succeeded.
    error: Mutex<Option<String>>,
    is_ready: watch::Sender<bool>,
}

/// The interval of discovery attempts.
const RETRY: Duration = Duration::from_secs(10);

impl JwtTokenAuthenticator {
    /// Starts the discovery of the issuer. Tokens with algorithms other than these are rejected.
    ///
    /// # Errors
    /// When the trust anchors of the issuer's certificate are invalid, or the network of the issuer is not configured.
    pub(super) fn start(
        config: JwtAuthenticator,
        expressions: Expressions,
        algorithms: Vec<Algorithm>,
        metrics: JwtMetrics,
        egress: &EgressSelector,
    ) -> Result<JwtTokenAuthenticator, String> {
        let dialer = dialer(&config.issuer.egress_selector_type, egress)?;
        let client = DocumentClient::new(config.issuer.certificate_authority.as_bytes(), dialer);
        let client = Arc::new(client.map_err(|error| format!("oidc: {error}"))?);
        let issuer_hash = content_hash(config.issuer.url.as_bytes());
        let provider = Arc::new(Provider {
            keys: ArcSwapOption::empty(),
            error: Mutex::new(Some(format!(
                "oidc: authenticator for issuer {:?} is not initialized",
                config.issuer.url
            ))),
            is_ready: watch::Sender::new(false),
        });
        let groups_claim = &config.claim_mappings.groups.claim;
        let resolver =
            (!groups_claim.is_empty()).then(|| ClaimResolver::new(groups_claim.clone(), client.clone()));
        let (asking, issuer) = (provider.clone(), config.issuer.clone());
        let counted = (metrics.clone(), issuer_hash.clone());
        let task = tokio::spawn(async move {
            loop {
                match provider::discover(&client, &issuer.url, &issuer.discovery_url).await {
                    Ok(url) => {
                        let keys = RemoteKeySet::new(client.clone(), url, Some(counted));
                        asking.keys.store(Some(Arc::new(keys)));
                        *asking.error.lock() = None;
                        asking.is_ready.send_replace(true);
                        return;
                    }
                    Err(error) => {
                        tracing::error!(
                            issuer = issuer.url,
                            error,
                            "oidc authenticator: initializing plugin"
                        );
                        *asking.error.lock() = Some(error);
                    }
                }
                tokio::time::sleep(RETRY).await;
            }
        });
        Ok(JwtTokenAuthenticator {
            config,
            expressions,
            algorithms,
            resolver,
            provider,
            metrics,
            issuer_hash,
            task,
        })
    }

    /// The issuer URL: the claim `iss` of its tokens.
    pub fn issuer(&self) -> &str {
        &self.config.issuer.url
    }

    /// Whether tokens can be authenticated.
    ///
    /// # Errors
    /// The last error of the discovery.
    pub fn health(&self) -> Result<(), String> {
        match &*self.provider.error.lock() {
            None => Ok(()),
            Some(error) => Err(format!(
                "oidc: authenticator for issuer {:?} is not healthy: {error}",
                self.config.issuer.url
            )),
        }
    }

    /// Waits until tokens can be authenticated.
    pub async fn ready(&self) {
        let mut is_ready = self.provider.is_ready.subscribe();
        // The sender is dropped no earlier than this authenticator.
        let _ = is_ready.wait_for(|ready| *ready).await;
    }

    /// Removes the issuer's series from the metrics.
    pub(super) fn forget(&self) {
        if let Some(keys) = &*self.provider.keys.load() {
            keys.forget();
        }
    }

    /// Authenticates a token of this issuer; `None` for other tokens.
    pub(super) async fn authenticate(&self, text: &str) -> Authentication {
        let untrusted = Token::peek(text).and_then(|payload| Claims::parse(&payload).ok());
        if untrusted.is_none_or(|claims| issuer_of(&claims) != self.config.issuer.url) {
            return Ok(None);
        }
        let began = Instant::now();
        let found = self.judge(text).await;
        self.metrics.authenticated(&self.issuer_hash, found.is_ok(), began.elapsed());
        let user = found.map_err(InvalidCredentials::new)?;
        Ok(Some(Authenticated { user: Arc::new(user), ..Authenticated::default() }))
    }

    async fn judge(&self, text: &str) -> Result<UserInfo, String> {
        let keys = self.provider.keys.load_full();
        let keys = keys.ok_or("oidc: authenticator not initialized")?;
        let issuer = &self.config.issuer;
        let verifier = Verifier {
            issuer: &issuer.url,
            audiences: &issuer.audiences,
            algorithms: &self.algorithms,
            keys: &keys,
        };
        let mut claims =
            verifier.verify(text).await.map_err(|error| format!("oidc: verify token: {error}"))?;
        if let Some(resolver) = &self.resolver {
            let expanded = resolver.expand(&mut claims, &issuer.audiences, &self.algorithms).await;
            expanded.map_err(|error| format!("oidc: could not expand distributed claims: {error}"))?;
        }
        self.user(&claims)
    }

    fn user(&self, claims: &Claims) -> Result<UserInfo, String> {
        let seen = match self.looks_at_claims() {
            true => visible(&claims.tree()),
            false => Value::Null,
        };
        let mappings = &self.config.claim_mappings;
        let user = UserInfo {
            name: self.username(claims, &seen)?,
            groups: self.groups(claims, &seen)?,
            uid: match (mappings.uid.claim.as_str(), &self.expressions.uid) {
                ("", None) => String::new(),
                ("", Some(expression)) => text_of(expression, &seen, "uid")?,
                (claim, _) => {
                    let uid = claims.text(claim);
                    uid.map_err(|error| format!("oidc: parse uid claim {claim:?}: {error}"))?.to_owned()
                }
            },
            extra: self.extra(claims, &seen)?,
        };
        self.check_claims(claims, &seen)?;
        self.check_user(&user)?;
        Ok(user)
    }

    /// Whether any expression reads claims. Most issuers have no expressions, and their claims are not converted.
    fn looks_at_claims(&self) -> bool {
        let Expressions { username, groups, uid, extra, claim_validation_rules, .. } = &self.expressions;
        username.is_some()
            || groups.is_some()
            || uid.is_some()
            || !extra.is_empty()
            || !claim_validation_rules.is_empty()
    }

    fn username(&self, claims: &Claims, seen: &Value) -> Result<String, String> {
        if let Some(expression) = &self.expressions.username {
            return match text_of(expression, seen, "username")?.as_str() {
                "" => Err("oidc: empty username via CEL expression is not allowed".to_owned()),
                name => Ok(name.to_owned()),
            };
        }
        let PrefixedClaimOrExpression { claim, prefix, .. } = &self.config.claim_mappings.username;
        let name = claims.text(claim);
        let name = name.map_err(|error| format!("oidc: parse username claims {claim:?}: {error}"))?;
        if claim == "email" && claims.get("email_verified").is_some() {
            let is_verified = claims.boolean("email_verified");
            if !is_verified.map_err(|error| format!("oidc: parse 'email_verified' claim: {error}"))? {
                return Err("oidc: email not verified".to_owned());
            }
        }
        Ok(format!("{}{name}", prefix.as_deref().unwrap_or_default()))
    }

    fn groups(&self, claims: &Claims, seen: &Value) -> Result<Vec<String>, String> {
        let PrefixedClaimOrExpression { claim, prefix, .. } = &self.config.claim_mappings.groups;
        if !claim.is_empty() && claims.get(claim).is_some() {
            let groups = claims.texts(claim);
            let mut groups =
                groups.map_err(|error| format!("oidc: parse groups claim {claim:?}: {error}"))?;
            if let Some(prefix) = prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                groups.iter_mut().for_each(|group| group.insert_str(0, prefix));
            }
            return Ok(groups);
        }
        match &self.expressions.groups {
            None => Ok(Vec::new()),
            Some(expression) => expression
                .evaluate(Variable::Claims, seen, texts)
                .map_err(|error| format!("oidc: error evaluating group claim expression: {error}")),
        }
    }

    fn extra(&self, claims: &Claims, seen: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Ok(id) = claims.text("jti")
            && !id.is_empty()
        {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.expressions.extra {
            let values = expression.evaluate(Variable::Claims, seen, |value| Ok(texts(value)))?;
            let values = values.map_err(|error| {
                format!("oidc: error evaluating extra claim expression: {}: {error}", expression.text)
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }

    fn check_claims(&self, claims: &Claims, seen: &Value) -> Result<(), String> {
        let required = self.config.claim_validation_rules.iter().filter(|rule| !rule.claim.is_empty());
        for rule in required {
            let claim = &rule.claim;
            if claims.get(claim).is_none() {
                return Err(format!("oidc: required claim {claim} not present in ID token"));
            }
            let value = claims.text(claim).map_err(|error| format!("oidc: parse claim {claim}: {error}"))?;
            if value != rule.required_value {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {value}, want = {}",
                    rule.required_value
                ));
            }
        }
        check(&self.expressions.claim_validation_rules, Variable::Claims, seen)
            .map_err(|error| format!("oidc: error evaluating claim validation expression: {error}"))
    }

    fn check_user(&self, user: &UserInfo) -> Result<(), String> {
        if self.expressions.user_validation_rules.is_empty() {
            return Ok(());
        }
        let seen = visible(&json!({
            "username": user.name,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
        }));
        check(&self.expressions.user_validation_rules, Variable::User, &seen)
            .map_err(|error| format!("oidc: error evaluating user info validation rule: {error}"))
    }
}

/// The dialer of the network that an issuer names. An issuer without one is reached directly.
fn dialer(selector_type: &str, egress: &EgressSelector) -> Result<Dialer, String> {
    let network = match selector_type {
        "" => return Ok(Dialer::default()),
        "cluster" => Network::Cluster,
        _ => Network::ControlPlane,
    };
    let dialer = egress.configured(network);
    dialer.ok_or_else(|| format!("oidc: egress lookup for {selector_type:?} is not configured"))
}

impl Drop for JwtTokenAuthenticator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn check(rules: &[(Expression, String)], variable: Variable, seen: &Value) -> Result<(), String> {
    // All rules are evaluated before the result of any counts.
    let mut failed = None;
    for (expression, message) in rules {
        let holds = expression.evaluate(variable, seen, |value| {
            value.as_bool().ok_or_else(|| "validation expression must return a boolean".to_owned())
        })?;
        if !holds && failed.is_none() {
            failed = Some(format!("validation expression '{}' failed: {message}", expression.text));
        }
    }
    failed.map_or(Ok(()), Err)
}

fn text_of(expression: &Expression, seen: &Value, what: &str) -> Result<String, String> {
    let text = expression.evaluate(Variable::Claims, seen, |value| {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("{what} claim expression must return a string"))
    });
    text.map_err(|error| format!("oidc: error evaluating {what} claim expression: {error}"))
}

/// A string or a list of strings, without the empty ones.
fn texts(value: CelValue<'_>) -> Result<Vec<String>, String> {
    let wrong = || "expression must return a string or a list of strings".to_owned();
    let mut texts = match &value {
        CelValue::String(text) => vec![text.as_str().to_owned()],
        CelValue::Null => Vec::new(),
        CelValue::List(items) => {
            let text = |item: Result<CelValue<'_>, pintle_cel::EvaluationError>| {
                let item = item.map_err(|error| error.to_string())?;
                item.as_str().map(str::to_owned).ok_or_else(wrong)
            };
            items.iter().map(text).collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}
