//! Token reviews: authenticate a token for another service
//! (<https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/>).

use super::{group::GROUP, self_subject_review::user_info};
use crate::declare::Declare;
use pintle_auth::authn::{Authenticated, TokenAuthenticator};
use pintle_machinery::{Status, Value, ValueExt, json, status::aggregate};
use pintle_registry::{Backing, BoxFuture, NamedCreater, RequestContext, Resource, Verb};
use std::sync::{Arc, OnceLock};

/// The declaration of the resource.
pub fn resource(reviewer: &Arc<TokenReviewer>) -> Resource {
    let mut resource = GROUP.cluster("TokenReview", "tokenreviews").verbs([Verb::Create]);
    resource.backing = Backing::Creater(reviewer.clone());
    resource
}

/// Authenticates the tokens of reviews with the server's own authenticators. These read objects, so they are set after
/// the stores exist; until then every token is rejected.
#[derive(Default)]
pub struct TokenReviewer {
    audiences: Vec<String>,
    authenticator: OnceLock<Arc<dyn TokenAuthenticator>>,
}

impl TokenReviewer {
    /// Creates a reviewer for a server with these audiences, the default of reviews.
    pub fn new(audiences: Vec<String>) -> TokenReviewer {
        TokenReviewer { audiences, authenticator: OnceLock::new() }
    }

    /// Sets the authenticator. Only the first call has an effect.
    pub fn set_authenticator(&self, authenticator: Arc<dyn TokenAuthenticator>) {
        let _ = self.authenticator.set(authenticator);
    }

    async fn review(&self, mut review: Value) -> Result<Value, Status> {
        let token = review.str_at("spec.token");
        let mut audiences: Vec<String> = review
            .items_at("spec.audiences")
            .iter()
            .filter_map(|audience| audience.as_str().map(str::to_owned))
            .collect();
        if audiences.is_empty() {
            audiences.clone_from(&self.audiences);
        }
        // The same form as in the header of a request.
        let token = token.split(' ').next().unwrap_or_default().trim();
        let mut why = vec!["invalid bearer token".to_owned()];
        let found = match self.authenticator.get() {
            Some(authenticator) if !token.is_empty() => {
                authenticator.authenticate_token(token, &audiences).await
            }
            _ => Ok(None),
        };
        let found = found.unwrap_or_else(|error| {
            why.push(error.reason);
            None
        });
        match found.map(|found| self.agreed(found, &audiences)) {
            Some(Some(found)) => {
                review.set("status.authenticated", true);
                review.set("status.user", user_info(&found.user));
                review.set("status.audiences", json!(found.audiences));
            }
            Some(None) => return Err(Status::internal_error("error validating audiences")),
            None => {
                review.remove_at("status.authenticated");
                review.set("status.error", aggregate(why.into_iter()));
            }
        }
        Ok(review)
    }

    /// Restricts the result to the requested audiences. A result without audiences counts for the server's own ones.
    fn agreed(&self, mut found: Authenticated, audiences: &[String]) -> Option<Authenticated> {
        if found.audiences.is_empty() {
            found.audiences.clone_from(&self.audiences);
        }
        found.audiences.retain(|audience| audiences.contains(audience));
        (audiences.is_empty() || !found.audiences.is_empty()).then_some(found)
    }
}

fn require_token(review: &Value) -> Result<(), Status> {
    match review.str_at("spec.token") {
        "" => Err(Status::bad_request("token is required for TokenReview in authentication")),
        _ => Ok(()),
    }
}

impl NamedCreater for TokenReviewer {
    fn prepare<'a>(
        &'a self,
        _: &'a RequestContext<'a>,
        review: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(require_token(review)))
    }

    fn create<'a>(&'a self, _: &'a RequestContext<'a>, body: Value) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.review(body))
    }
}

impl std::fmt::Debug for TokenReviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenReviewer").field("audiences", &self.audiences).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authn::{Authentication, InvalidCredentials};
    use pintle_machinery::UserInfo;
    use pintle_registry::testing::now;

    struct Known;

    impl TokenAuthenticator for Known {
        fn authenticate_token<'a>(
            &'a self,
            token: &'a str,
            _: &'a [String],
        ) -> BoxFuture<'a, Authentication> {
            let user = Arc::new(UserInfo { name: "jane".to_owned(), ..UserInfo::default() });
            let found = |audiences: &[&str]| {
                let audiences = audiences.iter().map(|audience| (*audience).to_owned()).collect();
                Ok(Some(Authenticated { user: user.clone(), audiences, ..Authenticated::default() }))
            };
            Box::pin(std::future::ready(match token {
                "static" => found(&[]),
                "other" => found(&["other"]),
                "wrong" => Err(InvalidCredentials::new("it is wrong".to_owned())),
                _ => Ok(None),
            }))
        }
    }

    #[test]
    fn a_review_tells_who_or_why_not() {
        let reviewer = TokenReviewer::new(vec!["own".to_owned()]);
        reviewer.set_authenticator(Arc::new(Known));
        let check = |spec: Value, expected: Result<Value, &str>| {
            let review =
                json!({"spec": spec.clone(), "status": {"authenticated": true, "user": {"username": "eve"}}});
            let answer = require_token(&review).and_then(|()| now(reviewer.review(review)));
            let answer = answer.map(|review| review["status"].clone());
            let answer = answer.map_err(|status| status.message);
            assert_eq!(answer, expected.map_err(str::to_owned), "{spec}");
        };
        let jane = |audience: &str| {
            Ok(json!({"authenticated": true, "user": {"username": "jane"}, "audiences": [audience]}))
        };
        let nobody = |why: &str| Ok(json!({"user": {"username": "eve"}, "error": why}));
        check(json!({"token": "static"}), jane("own"));
        check(json!({"token": "static", "audiences": ["x", "own"]}), jane("own"));
        check(json!({"token": "other", "audiences": ["other"]}), jane("other"));
        check(json!({"token": "x"}), nobody("invalid bearer token"));
        check(json!({"token": "wrong"}), nobody("[invalid bearer token, it is wrong]"));
        check(json!({"token": "Bearer static"}), nobody("invalid bearer token"));
        check(json!({"token": ""}), Err("token is required for TokenReview in authentication"));
        check(json!({"token": "other"}), Err("Internal error occurred: error validating audiences"));
    }
}
