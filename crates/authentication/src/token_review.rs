//! Authenticates tokens by a webhook
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication>).

use bytes::Bytes;
use pintle_auth::{
    BoxFuture,
    authn::{Authenticated, Authentication, InvalidCredentials, TokenAuthenticator},
};
use pintle_machinery::{UserInfo, Value, ValueExt, json};
use pintle_webhook::{Backoff, CLIENT_SCHEME, FieldType, ReviewKind, WebhookClient};
use std::{str::FromStr, sync::Arc, time::Duration};

/// The version of `TokenReview` that the webhook gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenReviewVersion {
    /// `authentication.k8s.io/v1beta1`
    #[default]
    V1beta1,
    /// `authentication.k8s.io/v1`
    V1,
}

impl TokenReviewVersion {
    fn review_kind(self) -> ReviewKind {
        const VERSIONS: &[&str] = &["authentication.k8s.io/v1", "authentication.k8s.io/v1beta1"];
        const USER: FieldType = FieldType::Object(
            "UserInfo",
            &[
                ("username", FieldType::Text),
                ("uid", FieldType::Text),
                ("groups", FieldType::Texts),
                ("extra", FieldType::TextsMap("ExtraValue")),
            ],
        );
        const STATUS: FieldType = FieldType::Object(
            "TokenReviewStatus",
            &[
                ("authenticated", FieldType::Bool),
                ("user", USER),
                ("audiences", FieldType::Texts),
                ("error", FieldType::Text),
            ],
        );
        let api_version = match self {
            TokenReviewVersion::V1beta1 => "authentication.k8s.io/v1beta1",
            TokenReviewVersion::V1 => "authentication.k8s.io/v1",
        };
        ReviewKind {
            kind: "TokenReview",
            api_version,
            other_versions: VERSIONS,
            scheme: CLIENT_SCHEME,
            status: STATUS,
        }
    }
}

impl FromStr for TokenReviewVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<TokenReviewVersion, String> {
        match text {
            "v1beta1" => Ok(TokenReviewVersion::V1beta1),
            "v1" => Ok(TokenReviewVersion::V1),
            other => Err(format!(
                "unsupported authentication webhook version {other:?}, supported versions are \"v1\", \"v1beta1\""
            )),
        }
    }
}

/// Calls a webhook for each token. Use it behind a cache.
pub struct TokenReviewWebhook {
    client: WebhookClient,
    version: TokenReviewVersion,
    /// The server's own audiences: those of a token whose review names none.
    own_audiences: Arc<[String]>,
    backoff: Backoff,
}

/// The timeout of one call.
const TIMEOUT: Duration = Duration::from_secs(30);

impl TokenReviewWebhook {
    /// A webhook behind this client.
    pub fn new(
        client: WebhookClient,
        version: TokenReviewVersion,
        own_audiences: Arc<[String]>,
    ) -> TokenReviewWebhook {
        TokenReviewWebhook { client, version, own_audiences, backoff: Backoff::default() }
    }

    async fn review(&self, token: &str, audiences: &[String]) -> Authentication {
        let wanted = if audiences.is_empty() { &*self.own_audiences } else { audiences };
        let ReviewKind { kind, api_version, .. } = self.version.review_kind();
        // The order of the fields is that of the type.
        let audiences = match wanted.is_empty() {
            true => String::new(),
            false => format!(r#","audiences":{}"#, json!(wanted)),
        };
        let question = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{}},"spec":{{"token":{}{audiences}}},"status":{{"user":{{}}}}}}{}"#,
            json!(token),
            '\n'
        );
        let question = Bytes::from(question);
        let answer = self.client.post_until_answered(&question, TIMEOUT, &self.backoff, |_, _| {}).await;
        let answer = answer.map_err(|error| {
            tracing::error!(error, "failed to make webhook authenticator request");
            InvalidCredentials::new(error)
        })?;
        self.judge(&answer, wanted)
    }

    fn judge(&self, answer: &Value, wanted: &[String]) -> Authentication {
        self.version.review_kind().check(answer).map_err(InvalidCredentials::new)?;
        let given: Vec<String> = answer
            .items_at("status.audiences")
            .iter()
            .filter_map(|audience| audience.as_str().map(str::to_owned))
            .collect();
        let given = if given.is_empty() { self.own_audiences.to_vec() } else { given };
        let met: Vec<String> = wanted.iter().filter(|audience| given.contains(audience)).cloned().collect();
        if met.is_empty() && !wanted.is_empty() {
            return Ok(None);
        }
        if !answer.bool_at("status.authenticated") {
            return match answer.str_at("status.error") {
                "" => Ok(None),
                error => Err(InvalidCredentials::new(error.to_owned())),
            };
        }
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let extra = answer.map_at("status.user.extra").iter();
        let user = UserInfo {
            name: answer.str_at("status.user.username").to_owned(),
            uid: answer.str_at("status.user.uid").to_owned(),
            groups: answer.at("status.user.groups").map(texts).unwrap_or_default(),
            extra: extra.map(|(key, values)| (key.to_string(), texts(values))).collect(),
        };
        Ok(Some(Authenticated { user: Arc::new(user), audiences: met, ..Authenticated::default() }))
    }
}

impl TokenAuthenticator for TokenReviewWebhook {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication> {
        Box::pin(self.review(token, audiences))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_dialer::Dialer;
    use pintle_webhook::{Credentials, Kubeconfig};

    fn webhook() -> TokenReviewWebhook {
        let config = Kubeconfig {
            server: "http://127.0.0.1".to_owned(),
            ca: Vec::new(),
            insecure_skip_tls_verify: false,
            tls_server_name: None,
            client_certificate: None,
            credentials: Credentials::None,
        };
        let own = Arc::from(["api".to_owned()]);
        TokenReviewWebhook::new(
            WebhookClient::of_kubeconfig(&config, &Dialer::default()).unwrap(),
            TokenReviewVersion::V1,
            own,
        )
    }

    #[test]
    fn versions_are_named_as_in_the_flag() {
        assert_eq!("v1".parse(), Ok(TokenReviewVersion::V1));
        assert_eq!("v1beta1".parse(), Ok(TokenReviewVersion::V1beta1));
        assert_eq!(
            "v2".parse::<TokenReviewVersion>().unwrap_err(),
            "unsupported authentication webhook version \"v2\", supported versions are \"v1\", \"v1beta1\""
        );
    }

    #[test]
    fn an_approved_token_has_the_user_of_the_review() {
        let review = json!({"kind": "TokenReview", "status": {
            "authenticated": true,
            "user": {"username": "jane", "uid": "7", "groups": ["devs"], "extra": {"scope": ["a", "b"]}},
        }});
        let found = webhook().judge(&review, &["api".to_owned()]).unwrap().unwrap();
        let expected = UserInfo {
            name: "jane".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["devs".to_owned()],
            extra: [("scope".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into(),
        };
        assert_eq!(*found.user, expected);
        assert_eq!(found.audiences, ["api"]);
    }

    #[test]
    fn a_token_is_valid_for_the_audiences_of_its_review_only() {
        let audiences = |given: &[&str], wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|audience| (*audience).to_owned()).collect();
            let review = json!({"status": {"authenticated": true, "audiences": given}});
            webhook().judge(&review, &wanted).unwrap().map(|found| found.audiences)
        };
        assert_eq!(audiences(&["a", "b"], &["b", "c"]), Some(vec!["b".to_owned()]));
        assert_eq!(audiences(&["a"], &["c"]), None);
        // A review without audiences is for the server's own.
        assert_eq!(audiences(&[], &["api", "c"]), Some(vec!["api".to_owned()]));
        assert_eq!(audiences(&[], &["c"]), None);
        assert_eq!(audiences(&["a"], &[]), Some(Vec::new()));
    }

    #[test]
    fn a_token_that_is_not_approved_has_no_user() {
        let judge = |review: Value| webhook().judge(&review, &[]).map_err(|error| error.reason);
        assert_eq!(judge(json!({"status": {}})), Ok(None));
        assert_eq!(judge(json!({})), Ok(None));
        assert_eq!(judge(json!({"status": {"error": "expired"}})), Err("expired".to_owned()));
        assert_eq!(
            judge(json!({"kind": "Status", "status": {"authenticated": true}})),
            Err("no kind \"Status\" is registered for version \"authentication.k8s.io/v1\" in scheme \
                 \"k8s.io/client-go/kubernetes/scheme/register.go:82\""
                .to_owned())
        );
        let beta = json!({"apiVersion": "authentication.k8s.io/v1beta1", "status": {"authenticated": true}});
        assert!(judge(beta).is_err());
    }
}
