//! Bootstrap tokens, with which nodes join a cluster
//! (<https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>).

use crate::{ObjectGetter, ObjectKind, legacy::is_equal, objects::Object};
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use pintle_auth::{
    BoxFuture,
    authn::{Authenticated, Authentication, InvalidCredentials, TokenAuthenticator},
};
use pintle_machinery::{UserInfo, meta::parse_time, user::AUTHENTICATED};
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

/// The namespace of the secrets.
const NAMESPACE: &str = "kube-system";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const USER_PREFIX: &str = "system:bootstrap:";
/// The group of all bootstrap users; the names of their other groups begin with it.
const GROUP: &str = "system:bootstrappers";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
/// The largest length of a group's name after the prefix, in bytes.
const MAX_GROUP: usize = 256;

/// Authenticates tokens in the secrets `bootstrap-token-ID`. Secrets are read from the cache: guessed tokens cause no
/// load on the store.
pub struct BootstrapTokens {
    objects: Arc<dyn ObjectGetter>,
    audiences: Vec<String>,
}

impl BootstrapTokens {
    /// An authenticator with these secrets and the server's own audiences.
    pub fn new(objects: Arc<dyn ObjectGetter>, audiences: Vec<String>) -> BootstrapTokens {
        BootstrapTokens { objects, audiences }
    }

    async fn judge(&self, token: &str, shown_to: &[String]) -> Authentication {
        let Some((id, secret)) = parse(token) else { return Ok(None) };
        let is_meant = |audience: &&String| shown_to.is_empty() || shown_to.contains(audience);
        let audiences: Vec<String> = self.audiences.iter().filter(is_meant).cloned().collect();
        if audiences.is_empty() && !shown_to.is_empty() {
            return Ok(None);
        }
        let name = format!("bootstrap-token-{id}");
        let found = self.objects.find(ObjectKind::Secret, NAMESPACE, &name, false).await;
        let found = found.map_err(|status| InvalidCredentials::new(status.message))?;
        let Some(found) = found else { return Ok(None) };
        match user_of(&found.json, id, secret, Timestamp::now()) {
            Ok(user) => Ok(Some(Authenticated { user: Arc::new(user), audiences, remarks: None })),
            Err(why) => {
                tracing::debug!(secret = %name, why, "a bootstrap token is not accepted");
                Ok(None)
            }
        }
    }
}

impl TokenAuthenticator for BootstrapTokens {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication> {
        Box::pin(self.judge(token, audiences))
    }
}

/// The id and the secret of a token.
fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (id.len() == ID_LENGTH && secret.len() == SECRET_LENGTH && is_plain(id) && is_plain(secret))
        .then_some((id, secret))
}

/// The user of a token in this secret, or the reason why the token is invalid.
fn user_of(json: &[u8], id: &str, shown: &str, now: Timestamp) -> Result<UserInfo, &'static str> {
    let secret: Object<'_> = serde_json::from_slice(json).map_err(|_| "the secret cannot be read")?;
    if secret.metadata.deleted_at().is_some() {
        return Err("the secret is being deleted");
    }
    if secret.secret_type != SECRET_TYPE {
        return Err("the secret has another type");
    }
    let data = |key: &str| {
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        let value = value.and_then(|value: &Cow<'_, str>| STANDARD.decode(value.as_bytes()).ok());
        value.and_then(|value| String::from_utf8(value).ok()).unwrap_or_default()
    };
    if !is_equal(data("token-secret").as_bytes(), shown.as_bytes()) {
        return Err("its secret part is another one");
    }
    if data("token-id") != id {
        return Err("its id is another one");
    }
    let expiration = data("expiration");
    if !expiration.is_empty() && parse_time(&expiration).is_none_or(|expiration| expiration <= now) {
        return Err("it has expired");
    }
    if data("usage-bootstrap-authentication") != "true" {
        return Err("it is not for authentication");
    }
    let extra = data("auth-extra-groups");
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        if !is_group(group) {
            return Err("a group has no allowed name");
        }
        groups.insert(group.to_owned());
    }
    let mut groups: Vec<String> = groups.into_iter().collect();
    groups.push(AUTHENTICATED.to_owned());
    Ok(UserInfo { name: format!("{USER_PREFIX}{id}"), groups, ..UserInfo::default() })
}

/// Whether a bootstrap token may have a group of this name.
fn is_group(group: &str) -> bool {
    let Some(name) = group.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':')) else { return false };
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= MAX_GROUP
        && name.bytes().next_back().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte == b':' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{Value, json};

    #[test]
    fn tokens_are_six_and_sixteen_small_letters_and_digits() {
        assert_eq!(parse("abc123.0123456789abcdef"), Some(("abc123", "0123456789abcdef")));
        for token in [
            "abc123",
            "abc12.0123456789abcdef",
            "abc123.0123456789abcde",
            "ABC123.0123456789abcdef",
            "abc123.0123456789abcdef\n",
            "abc123.0123456789.bcdef",
        ] {
            assert_eq!(parse(token), None, "{token}");
        }
    }

    #[test]
    fn a_secret_makes_a_user_only_when_all_of_it_is_right() {
        let secret = |changes: &[(&str, Option<&str>)]| {
            let mut data = json!({
                "token-id": "abc123", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
                "auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a-1:x", "expiration": "2026-01-02T00:00:00Z",
            });
            for (key, value) in changes {
                match value {
                    Some(value) => data[*key] = json!(value),
                    None => drop(data.as_object_mut().unwrap().remove(key)),
                }
            }
            for value in data.as_object_mut().unwrap().values_mut() {
                *value = json!(STANDARD.encode(value.as_str().unwrap()));
            }
            json!({"metadata": {"uid": "1"}, "type": SECRET_TYPE, "data": data})
        };
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let judge =
            |secret: &Value| user_of(secret.to_string().as_bytes(), "abc123", "0123456789abcdef", now);
        let user = judge(&secret(&[])).unwrap();
        assert_eq!(user.name, "system:bootstrap:abc123");
        let groups = [
            "system:bootstrappers",
            "system:bootstrappers:a-1:x",
            "system:bootstrappers:b",
            "system:authenticated",
        ];
        assert_eq!(user.groups, groups);
        for right in [[("expiration", None)], [("auth-extra-groups", Some(""))], [("description", Some("x"))]]
        {
            assert!(judge(&secret(&right)).is_ok(), "{right:?}");
        }
        let wrong = [
            ("token-secret", Some("0123456789abcdeg")),
            ("token-secret", None),
            ("token-id", Some("abc124")),
            ("usage-bootstrap-authentication", Some("yes")),
            ("usage-bootstrap-authentication", None),
            ("expiration", Some("2026-01-01T00:00:00Z")),
            ("expiration", Some("tomorrow")),
            ("auth-extra-groups", Some("system:masters")),
            ("auth-extra-groups", Some("system:bootstrappers:a,")),
            ("auth-extra-groups", Some("system:bootstrappers:A")),
            ("auth-extra-groups", Some("system:bootstrappers:a:")),
        ];
        for change in wrong {
            assert!(judge(&secret(&[change])).is_err(), "{change:?}");
        }
        let mut other = secret(&[]);
        other["type"] = json!("Opaque");
        assert!(judge(&other).is_err());
        let mut deleted = secret(&[]);
        deleted["metadata"]["deletionTimestamp"] = json!("2027-01-01T00:00:00Z");
        assert!(judge(&deleted).is_err());
    }
}
