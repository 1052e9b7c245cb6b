//! Tokens in secrets, which do not expire
//! (<https://kubernetes.io/docs/concepts/configuration/secret/#serviceaccount-token-secrets>).

use crate::{
    Config, ObjectKind,
    claims::LegacyClaims,
    objects::{Object, unreadable},
    user::split_username,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use pintle_auth::authn::InvalidCredentials;
use pintle_machinery::Status;

/// The issuer of these tokens.
pub(crate) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// The label of a secret with the date of its token's last use.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label of a secret whose token is no longer accepted.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

impl LegacyClaims {
    /// Checks that the secret still contains the token, and that the account exists.
    pub(crate) async fn validate(
        &self,
        config: &Config,
        subject: &str,
        token: &str,
        now: Timestamp,
    ) -> Result<(), InvalidCredentials> {
        let claims = [
            (subject, "sub"),
            (&self.namespace, "namespace"),
            (&self.secret, "secretName"),
            (&self.name, "serviceAccountName"),
            (&self.uid, "serviceAccountUID"),
        ];
        if let Some((_, name)) = claims.iter().find(|(value, _)| value.is_empty()) {
            return Err(InvalidCredentials::new(format!("{name} claim is missing")));
        }
        if split_username(subject) != Some((&*self.namespace, &*self.name)) {
            return Err(InvalidCredentials::new("sub claim is invalid"));
        }
        if !config.lookup {
            return Ok(());
        }
        let (namespace, name) = (&self.namespace, &self.name);
        let invalidated = || InvalidCredentials::new("Token has been invalidated");
        let json =
            find(config, ObjectKind::Secret, namespace, &self.secret).await.map_err(|_| invalidated())?;
        let secret: Object<'_> = serde_json::from_slice(&json).map_err(|_| invalidated())?;
        if secret.metadata.deleted_at().is_some() {
            return Err(invalidated());
        }
        let own = secret.data.as_ref().and_then(|data| STANDARD.decode(data.get("token")?.as_bytes()).ok());
        if !is_equal(&own.unwrap_or_default(), token.as_bytes()) {
            return Err(InvalidCredentials::new("Token does not match server's copy"));
        }
        let account = find(config, ObjectKind::ServiceAccount, namespace, name).await;
        let account = account.map_err(|status| InvalidCredentials::new(status.message))?;
        let account: Object<'_> = serde_json::from_slice(&account)
            .map_err(|error| InvalidCredentials::new(unreadable(&error).message))?;
        if account.metadata.deleted_at().is_some() {
            return Err(InvalidCredentials::new(format!(
                "ServiceAccount {namespace}/{name} has been deleted"
            )));
        }
        let uid = &account.metadata.uid;
        if *uid != self.uid {
            return Err(InvalidCredentials::new(format!(
                "ServiceAccount UID ({uid}) does not match claim ({})",
                self.uid
            )));
        }
        let refusal = self.count(config, &secret, &account);
        self.note_use(config, &secret, now).await;
        refusal
    }

    fn count(
        &self,
        config: &Config,
        secret: &Object<'_>,
        account: &Object<'_>,
    ) -> Result<(), InvalidCredentials> {
        if !secret.metadata.label(INVALID_SINCE).is_empty() {
            config.metrics.legacy_invalid.inc();
            return Err(InvalidCredentials::new(format!(
                "the token in secret {}/{} for service account {}/{} has been marked invalid. Use tokens from the \
                 TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the \
                 secret to temporarily allow use of this token",
                self.namespace, self.secret, self.namespace, self.name
            )));
        }
        let secrets = account.secrets.as_deref().unwrap_or_default();
        match secrets.iter().any(|secret| secret.name == self.secret) {
            true => config.metrics.legacy_auto.inc(),
            false => config.metrics.legacy_manual.inc(),
        }
        Ok(())
    }

    /// Labels the secret with the date, once a day. A label of tomorrow is from a server whose clock is ahead.
    async fn note_use(&self, config: &Config, secret: &Object<'_>, now: Timestamp) {
        let today = now.to_zoned(TimeZone::UTC).date();
        let last_used = secret.metadata.label(LAST_USED);
        let tomorrow = today.checked_add(1.day()).unwrap_or(today);
        if last_used != today.to_string() && last_used != tomorrow.to_string() {
            let label = (LAST_USED, today.to_string());
            config.objects.label_secret(&self.namespace, &self.secret, &secret.metadata.uid, label).await;
        }
    }
}

/// An object from the cache, or else from the store, since it may be new.
async fn find(config: &Config, kind: ObjectKind, namespace: &str, name: &str) -> Result<Bytes, Status> {
    for is_consistent in [false, true] {
        if let Some(found) = config.objects.find(kind, namespace, name, is_consistent).await? {
            return Ok(found.json);
        }
    }
    Err(Status::not_found(&kind.resource(), name))
}

/// Compares secrets in constant time.
pub(crate) fn is_equal(own: &[u8], shown: &[u8]) -> bool {
    own.len() == shown.len() && own.iter().zip(shown).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
