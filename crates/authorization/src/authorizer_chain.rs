//! A chain of authorizers.

use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Decision, ResolvedRules, Verdict},
};
use pintle_machinery::{UserInfo, status::aggregate};
use std::{borrow::Cow, sync::Arc};

/// Consults authorizers in order until one of them decides
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#authorization-modules>). When none does,
/// the verdict has the reasons and errors of all.
pub(crate) struct AuthorizerChain(Vec<Arc<dyn Authorizer>>);

impl AuthorizerChain {
    /// A chain of these authorizers, in order.
    pub(crate) fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> AuthorizerChain {
        AuthorizerChain(authorizers)
    }

    async fn decide(&self, attributes: &Attributes<'_>) -> Verdict {
        let (mut reason, mut errors) = (Cow::Borrowed(""), Vec::new());
        for authorizer in &self.0 {
            let verdict = authorizer.authorize(attributes).await;
            if verdict.decision != Decision::NoOpinion {
                return verdict;
            }
            match (reason.is_empty(), verdict.reason.is_empty()) {
                (_, true) => {}
                (true, false) => reason = verdict.reason,
                (false, false) => reason = format!("{reason}\n{}", verdict.reason).into(),
            }
            if !verdict.error.is_empty() {
                errors.push(verdict.error.into_owned());
            }
        }
        let error = match errors.is_empty() {
            true => Cow::Borrowed(""),
            false => aggregate(errors.into_iter()).into(),
        };
        Verdict { decision: Decision::NoOpinion, reason, error }
    }
}

impl Authorizer for AuthorizerChain {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.decide(attributes))
    }

    fn rules_for<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        Box::pin(async move {
            let mut rules = ResolvedRules::default();
            for authorizer in &self.0 {
                rules.merge(authorizer.rules_for(user, namespace).await);
            }
            rules
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::{Future, ready},
        pin::pin,
        task::{Context, Poll, Waker},
    };

    struct Says(Decision, &'static str, &'static str);

    impl Authorizer for Says {
        fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
            let Says(decision, reason, error) = *self;
            Box::pin(ready(Verdict { decision, reason: reason.into(), error: error.into() }))
        }

        fn rules_for<'a>(&'a self, _: &'a UserInfo, _: &'a str) -> BoxFuture<'a, ResolvedRules> {
            let errors = vec![self.2.to_owned()];
            Box::pin(ready(ResolvedRules { incomplete: !self.2.is_empty(), errors, ..Default::default() }))
        }
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("nothing to wait for"),
        }
    }

    #[test]
    fn the_first_who_decides_decides() {
        use Decision::{Allow, Deny, NoOpinion};
        let check = |authorizers: Vec<Says>, decision, reason: &str, error: &str| {
            let authorizers = authorizers.into_iter().map(|says| Arc::new(says) as Arc<dyn Authorizer>);
            let chain = AuthorizerChain::new(authorizers.collect());
            let user = UserInfo::default();
            let verdict = now(chain.authorize(&Attributes::of(&user, "get")));
            assert_eq!(
                (verdict.decision, &*verdict.reason, &*verdict.error),
                (decision, reason, error),
                "{reason}"
            );
        };
        check(vec![], NoOpinion, "", "");
        check(vec![Says(NoOpinion, "a", "e"), Says(Allow, "b", "")], Allow, "b", "");
        check(vec![Says(Deny, "a", "e"), Says(Allow, "b", "")], Deny, "a", "e");
        check(
            vec![Says(NoOpinion, "a", "e"), Says(NoOpinion, "", ""), Says(NoOpinion, "b", "f")],
            NoOpinion,
            "a\nb",
            "[e, f]",
        );
        check(vec![Says(NoOpinion, "", "e"), Says(NoOpinion, "b", "")], NoOpinion, "b", "e");
    }

    #[test]
    fn rules_are_those_of_all() {
        let chain = AuthorizerChain::new(vec![
            Arc::new(Says(Decision::Allow, "", "one")),
            Arc::new(Says(Decision::Allow, "", "two")),
        ]);
        let rules = now(chain.rules_for(&UserInfo::default(), "default"));
        assert!(rules.incomplete);
        assert_eq!(rules.errors, ["one", "two"]);
    }
}
