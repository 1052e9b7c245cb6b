//! Issues tokens (<https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/>).

use crate::{
    Binding, ExternalSigner, ExternalSignerError, Reference, TokenKeys, TokenKeysError,
    claims::{Claims, Kubernetes},
    user,
};
use jiff::Timestamp;
use pintle_jwt::KeyError;
use std::sync::Arc;
use uuid::Uuid;

/// The lifetime, in seconds, that the admission of pods requests. Its odd value distinguishes these requests from
/// others: programs in such pods may not refresh their tokens yet.
const TRANSITION_SECONDS: i64 = 60 * 60 + 7;
/// The real lifetime of such tokens, in seconds.
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The reason why no token was issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// There is no key to sign with.
    #[error(transparent)]
    Keys(#[from] TokenKeysError),
    /// Signing failed.
    #[error(transparent)]
    Sign(#[from] KeyError),
    /// The claims cannot be encoded.
    #[error("the claims cannot be written: {0}")]
    Claims(#[from] serde_json::Error),
    /// The external signer signed nothing.
    #[error(transparent)]
    External(#[from] ExternalSignerError),
    /// The server is shutting down.
    #[error("the server shuts down")]
    Stopping,
}

/// Signs the tokens of one issuer.
#[derive(Debug, Clone, Default)]
pub struct TokenIssuer {
    /// The issuer in the tokens.
    pub issuer: String,
    /// The keys.
    pub keys: Arc<TokenKeys>,
    /// The audiences of the server itself, which are the default audiences.
    pub audiences: Vec<String>,
    /// The longest lifetime of tokens, in seconds; `None` is no limit.
    pub max_expiration_seconds: Option<i64>,
    /// Whether tokens requested by the admission of pods get a longer lifetime.
    pub extend_expiration: bool,
}

/// The lifetime of a token, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiration {
    /// The lifetime reported to the client, in seconds.
    pub reported: i64,
    /// The real lifetime, in seconds.
    pub valid: i64,
    /// The age, in seconds, after which uses are counted as those of a stale token.
    pub warn_after: Option<i64>,
}

/// The contents of a token to issue.
#[derive(Debug, Clone, Copy)]
pub struct TokenSpec<'a> {
    /// The namespace of the service account.
    pub namespace: &'a str,
    /// The service account.
    pub service_account: &'a Reference,
    /// The object that the token is bound to.
    pub binding: &'a Binding,
    /// The audiences.
    pub audiences: &'a [String],
    /// The lifetime.
    pub expiration: Expiration,
    /// The time of issue.
    pub now: Timestamp,
}

/// An issued token, with its credential id.
pub struct IssuedToken {
    /// The token itself.
    pub token: String,
    /// Its id in audit events and in the extra fields of users.
    pub credential_id: String,
}

impl TokenIssuer {
    /// The lifetime of a token for which `requested` seconds were requested.
    pub fn expiration(&self, requested: i64, binding: &Binding, audiences: &[String]) -> Expiration {
        let reported = self.max_expiration_seconds.map_or(requested, |max| requested.min(max));
        let is_transition = self.extend_expiration
            && reported == TRANSITION_SECONDS
            && matches!(binding, Binding::Pod(..))
            && audiences.iter().all(|audience| self.audiences.contains(audience));
        match is_transition {
            true => {
                let signed = self.keys.signer().map(ExternalSigner::max_expiration_seconds);
                let valid = signed.map_or(EXTENDED_SECONDS, |max| max.min(EXTENDED_SECONDS));
                Expiration { reported, valid, warn_after: Some(reported) }
            }
            false => Expiration { reported, valid: reported, warn_after: None },
        }
    }

    /// Signs a token. The first call may wait while the server generates its key.
    ///
    /// # Errors
    /// When there is no key, or it cannot be used.
    pub async fn issue(&self, spec: &TokenSpec<'_>) -> Result<IssuedToken, IssueError> {
        let token_id = Uuid::new_v4().to_string();
        let claims = self.claims(spec, &token_id).to_json()?;
        if let Some(signer) = self.keys.signer() {
            let token = signer.sign(&claims).await?;
            return Ok(IssuedToken { token, credential_id: crate::claims::credential_id(&token_id) });
        }
        if self.keys.signing().is_none() {
            let keys = self.keys.clone();
            tokio::task::spawn_blocking(move || keys.ensure()).await.map_err(|_| IssueError::Stopping)??;
        }
        let key = self.keys.signing().ok_or(KeyError::NoPrivateKey)?;
        let token = key.sign_token(claims.as_bytes())?;
        Ok(IssuedToken { token, credential_id: crate::claims::credential_id(&token_id) })
    }

    fn claims(&self, spec: &TokenSpec<'_>, token_id: &str) -> Claims {
        let mut kubernetes = Kubernetes {
            namespace: spec.namespace.to_owned(),
            serviceaccount: spec.service_account.clone(),
            ..Kubernetes::default()
        };
        match spec.binding.clone() {
            Binding::None => {}
            Binding::Pod(pod, node) => (kubernetes.pod, kubernetes.node) = (Some(pod), node),
            Binding::Secret(secret) => kubernetes.secret = Some(secret),
            Binding::Node(node) => kubernetes.node = Some(node),
        }
        let now = spec.now.as_second();
        kubernetes.warnafter = spec.expiration.warn_after.map(|seconds| now.saturating_add(seconds));
        Claims {
            aud: spec.audiences.to_vec(),
            exp: Some(now.saturating_add(spec.expiration.valid)),
            iat: Some(now),
            iss: self.issuer.clone(),
            jti: token_id.to_owned(),
            kubernetes: Some(kubernetes),
            nbf: Some(now),
            sub: user::username(spec.namespace, &spec.service_account.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tokens_of_admitted_pods_for_the_server_itself_are_extended() {
        let own = vec!["own".to_owned()];
        let issuer = |max, extend_expiration| TokenIssuer {
            issuer: "me".to_owned(),
            keys: Arc::new(TokenKeys::from_files(&[], None).unwrap()),
            audiences: own.clone(),
            max_expiration_seconds: max,
            extend_expiration,
        };
        let pod = Binding::Pod(Reference::default(), None);
        let plain = |reported| Expiration { reported, valid: reported, warn_after: None };
        let extended = Expiration { reported: 3607, valid: EXTENDED_SECONDS, warn_after: Some(3607) };
        let check = |issuer: TokenIssuer, requested, binding: &Binding, audiences: &[String], expected| {
            assert_eq!(issuer.expiration(requested, binding, audiences), expected);
        };
        check(issuer(None, true), 3607, &pod, &own, extended);
        check(issuer(None, true), 3600, &pod, &own, plain(3600));
        check(issuer(None, true), 3607, &Binding::None, &own, plain(3607));
        check(issuer(None, true), 3607, &pod, &["other".to_owned()], plain(3607));
        check(issuer(None, true), 3607, &pod, &["own".to_owned(), "other".to_owned()], plain(3607));
        check(issuer(None, false), 3607, &pod, &own, plain(3607));
        check(issuer(Some(7200), true), 3607, &pod, &own, extended);
        check(issuer(Some(3600), true), 3607, &pod, &own, plain(3600));
        check(issuer(Some(3600), true), 86_400, &Binding::None, &own, plain(3600));
    }
}
