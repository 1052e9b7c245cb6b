//! Verifies the tokens of service accounts
//! (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens>).

use crate::{
    Config, ObjectKind, Reference,
    claims::{Claims, Kubernetes, LegacyClaims},
    legacy::LEGACY_ISSUER,
    objects::{AnyObject, unreadable},
    read_claims::issuer_of,
    user,
    verified::{Kind, Verified, VerifiedTokens, digest_of},
};
use jiff::{SignedDuration, Timestamp};
use pintle_auth::{
    BoxFuture,
    authn::{Authenticated, Authentication, InvalidCredentials, Remarks, TokenAuthenticator},
};
use pintle_go_forms::quote;
use pintle_jwt::Token;
use pintle_machinery::Status;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The tolerated difference between clocks.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Authenticates service-account tokens.
pub struct ServiceAccountTokens {
    config: Config,
    verified: VerifiedTokens,
}

impl ServiceAccountTokens {
    /// An authenticator that has not verified any token yet.
    pub fn new(config: Config) -> ServiceAccountTokens {
        ServiceAccountTokens { config, verified: VerifiedTokens::default() }
    }

    async fn judge(&self, text: &str, audiences: &[String]) -> Authentication {
        let mut remarks = Remarks::default();
        match self.find(text, audiences, &mut remarks).await {
            Ok(found) => Ok(found.map(|found| Authenticated { remarks: remarks.shared(), ..found })),
            Err(error) => Err(error.with_remarks(remarks)),
        }
    }

    async fn find(&self, text: &str, audiences: &[String], remarks: &mut Remarks) -> Authentication {
        let digest = digest_of(text);
        let generation = self.config.keys.generation();
        let verified = match self.verified.get(&digest, generation) {
            Some(verified) => verified,
            None => match self.verify(text).await? {
                Some(verified) => {
                    let verified = Arc::new(verified);
                    self.verified.put(text, digest, verified.clone(), generation);
                    verified
                }
                None => return Ok(None),
            },
        };
        let audiences = self.check_audiences(&verified.claims, audiences, remarks)?;
        let now = Timestamp::now();
        match &verified.kind {
            Kind::Legacy(legacy) => {
                legacy.validate(&self.config, &verified.claims.sub, text, now, remarks).await?;
            }
            Kind::Bound { account, other } => {
                let nothing = Kubernetes::default();
                let kubernetes = verified.claims.kubernetes.as_ref().unwrap_or(&nothing);
                check_times(&verified.claims, now)?;
                self.check_bound(kubernetes, [account, other], now).await?;
                self.count_extended(kubernetes, &verified.claims.sub, now, remarks);
            }
        }
        Ok(Some(Authenticated { user: verified.user.clone(), audiences, remarks: None }))
    }

    /// Verifies issuer and signature; `None` for a token of another issuer.
    async fn verify(&self, text: &str) -> Result<Option<Verified>, InvalidCredentials> {
        let Some(issuer) = Token::peek(text).and_then(|payload| issuer_of(&payload)) else { return Ok(None) };
        let is_configured = self.config.issuers.contains(&issuer);
        if !is_configured && issuer != LEGACY_ISSUER {
            return Ok(None);
        }
        let Ok(token) = Token::parse(text) else { return Ok(None) };
        let keys = self.config.keys.candidates(&token.key_id).await;
        if keys.is_empty() {
            return Err(InvalidCredentials::new("invalid signature, no keys found"));
        }
        if !keys.iter().any(|key| token.is_signed_by(key)) {
            // The error text that clients know from the reference's library.
            return Err(InvalidCredentials::new("go-jose/go-jose: error in cryptographic primitive"));
        }
        let claims = Claims::read(&token.payload).map_err(InvalidCredentials::new)?;
        let is_legacy = issuer == LEGACY_ISSUER && !(is_configured && claims.kubernetes.is_some());
        let (kind, user) = match is_legacy {
            true => {
                let legacy = LegacyClaims::read(&token.payload).map_err(InvalidCredentials::new)?;
                let user = user::user(&legacy.namespace, &legacy.name, &legacy.uid, BTreeMap::new());
                (Kind::Legacy(legacy), user)
            }
            false => {
                let kubernetes = claims.kubernetes.clone().unwrap_or_default();
                let kind = Kind::Bound { account: AtomicU64::new(0), other: AtomicU64::new(0) };
                (kind, kubernetes.user(&claims.jti))
            }
        };
        Ok(Some(Verified { claims, kind, user: Arc::new(user) }))
    }

    /// The audiences that the token is presented to, as far as it has them.
    fn check_audiences(
        &self,
        claims: &Claims,
        shown_to: &[String],
        remarks: &mut Remarks,
    ) -> Result<Vec<String>, InvalidCredentials> {
        let own = &self.config.audiences;
        let of_token = match claims.aud.is_empty() {
            true => {
                self.config.metrics.legacy.inc();
                remarks.annotations.push(("authentication.k8s.io/legacy-token", claims.sub.clone()));
                own
            }
            false => &claims.aud,
        };
        let shown_to = if shown_to.is_empty() { own } else { shown_to };
        let common: Vec<String> =
            shown_to.iter().filter(|audience| of_token.contains(audience)).cloned().collect();
        if common.is_empty() && !own.is_empty() {
            return Err(InvalidCredentials::new(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(of_token),
                quoted(shown_to)
            )));
        }
        Ok(common)
    }

    /// Checks that the account, and the other bound object, exist unchanged.
    async fn check_bound(
        &self,
        kubernetes: &Kubernetes,
        [account_seen, other_seen]: [&AtomicU64; 2],
        now: Timestamp,
    ) -> Result<(), InvalidCredentials> {
        let namespace = kubernetes.namespace.as_str();
        let account = &kubernetes.serviceaccount;
        match self.look(ObjectKind::ServiceAccount, namespace, account, account_seen, now).await {
            Ok(Condition::Fine) => {}
            Ok(Condition::Gone) if account.name.is_empty() => {
                return Err(InvalidCredentials::new("resource name may not be empty"));
            }
            // The path of the request for it would be that of no resource.
            Ok(Condition::Gone) if namespace.is_empty() => {
                return Err(InvalidCredentials::new("the server could not find the requested resource"));
            }
            Ok(Condition::Gone) => {
                let status = Status::not_found(&ObjectKind::ServiceAccount.resource(), &account.name);
                return Err(InvalidCredentials::new(status.message));
            }
            Err(status) => return Err(InvalidCredentials::new(status.message)),
            Ok(Condition::Another(uid)) => {
                let claim = &account.uid;
                return Err(InvalidCredentials::new(format!(
                    "service account UID ({uid}) does not match claim ({claim})"
                )));
            }
            Ok(Condition::Deleted) => {
                let name = &account.name;
                return Err(InvalidCredentials::new(format!(
                    "service account {namespace}/{name} has been deleted"
                )));
            }
        }
        let bound = [
            (ObjectKind::Secret, "secret", &kubernetes.secret),
            (ObjectKind::Pod, "pod", &kubernetes.pod),
            // The node of a pod is not checked: pods do not move.
            (ObjectKind::Node, "node", if kubernetes.pod.is_some() { &None } else { &kubernetes.node }),
        ];
        // This server binds a token to one object at most; for a token with several, no revision is remembered.
        let is_single = bound.iter().filter(|(_, _, reference)| reference.is_some()).count() == 1;
        for (kind, name, reference) in bound {
            let Some(reference) = reference else { continue };
            let unseen = AtomicU64::new(0);
            let seen = if is_single { other_seen } else { &unseen };
            let namespace = if kind == ObjectKind::Node { "" } else { namespace };
            match self.look(kind, namespace, reference, seen, now).await {
                Ok(Condition::Fine) => {}
                Ok(Condition::Another(uid)) => {
                    let claim = &reference.uid;
                    return Err(InvalidCredentials::new(format!(
                        "{name} UID ({uid}) does not match service account {name} ref claim ({claim})"
                    )));
                }
                Ok(Condition::Gone | Condition::Deleted) | Err(_) => {
                    return Err(InvalidCredentials::new("service account token has been invalidated"));
                }
            }
        }
        Ok(())
    }

    /// The condition of an object. If it is missing or different in the cache, it is looked up in the store, since it
    /// may be new.
    async fn look(
        &self,
        kind: ObjectKind,
        namespace: &str,
        reference: &Reference,
        seen: &AtomicU64,
        now: Timestamp,
    ) -> Result<Condition, Status> {
        let cached = self.look_once(kind, namespace, reference, seen, now, false).await?;
        match cached {
            Condition::Fine | Condition::Deleted => Ok(cached),
            Condition::Gone | Condition::Another(_) => {
                self.look_once(kind, namespace, reference, seen, now, true).await
            }
        }
    }

    async fn look_once(
        &self,
        kind: ObjectKind,
        namespace: &str,
        reference: &Reference,
        seen: &AtomicU64,
        now: Timestamp,
        is_consistent: bool,
    ) -> Result<Condition, Status> {
        let found = self.config.objects.find(kind, namespace, &reference.name, is_consistent).await?;
        let Some(found) = found else { return Ok(Condition::Gone) };
        if found.revision == seen.load(Ordering::Relaxed) {
            return Ok(Condition::Fine);
        }
        let object: AnyObject<'_> =
            serde_json::from_slice(&found.json).map_err(|error| unreadable(&error))?;
        if object.metadata.uid != reference.uid {
            return Ok(Condition::Another(object.metadata.uid.into_owned()));
        }
        match object.metadata.deleted_at() {
            None => seen.store(found.revision, Ordering::Relaxed),
            Some(deleted_at) if is_over(deleted_at, now) => return Ok(Condition::Deleted),
            // The object expires later without a change of its revision.
            Some(_) => {}
        }
        Ok(Condition::Fine)
    }

    fn count_extended(&self, kubernetes: &Kubernetes, subject: &str, now: Timestamp, remarks: &mut Remarks) {
        let metrics = &self.config.metrics;
        match kubernetes.warnafter {
            None | Some(0) => {}
            Some(warn_after) if now.as_second() > warn_after => {
                metrics.stale.inc();
                let seconds = now.as_second().saturating_sub(warn_after);
                let remark = format!("subject: {subject}, seconds after warning threshold: {seconds}");
                remarks.annotations.push(("authentication.k8s.io/stale-token", remark));
            }
            Some(_) => metrics.valid.inc(),
        }
    }
}

impl TokenAuthenticator for ServiceAccountTokens {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication> {
        Box::pin(self.judge(token, audiences))
    }
}

/// The condition of an object that a token is bound to.
enum Condition {
    Fine,
    Gone,
    /// Another object has the name; its uid.
    Another(String),
    /// It has been under deletion for longer than the tolerated clock difference.
    Deleted,
}

/// Whether an object with this deletion timestamp counts as deleted.
fn is_over(deleted_at: Timestamp, now: Timestamp) -> bool {
    now.saturating_sub(LEEWAY).is_ok_and(|limit| deleted_at < limit)
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), InvalidCredentials> {
    let (now, leeway) = (now.as_second(), LEEWAY.as_secs());
    if claims.nbf.is_some_and(|not_before| now.saturating_add(leeway) < not_before) {
        return Err(InvalidCredentials::new("service account token is not valid yet"));
    }
    // Fractions of a second count: the last second of the leeway ends at its start.
    if claims.exp.is_some_and(|expiry| now.saturating_sub(leeway) >= expiry) {
        return Err(InvalidCredentials::new("service account token has expired"));
    }
    if claims.iat.is_some_and(|issued_at| now.saturating_add(leeway) < issued_at) {
        return Err(InvalidCredentials::new("service account token is issued in the future"));
    }
    Ok(())
}

/// A list in the format of Go's `%q`.
fn quoted(texts: &[String]) -> String {
    let quoted: Vec<_> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
