//! What expressions ask of an authorizer
//! (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library>).
//!
//! An expression is evaluated at once, and an authorizer may have to wait. A check is therefore polled once where it is
//! asked: roles and nodes answer then and there. When one has to wait, the evaluation ends, [`ExpressionAuthorizer::settle`]
//! waits for the answer, which is remembered, and the evaluation is repeated. Whoever evaluates does so in a loop:
//!
//! ```ignore
//! let value = loop {
//!     match program.evaluate(&activation, &mut budget.clone()) {
//!         Err(EvaluationError::Undecided) => authorizer.settle().await,
//!         outcome => break outcome,
//!     }
//! };
//! ```
//!
//! Each turn answers a check that was not answered before, and what checks cost bounds how many an evaluation has.

use futures_util::FutureExt;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Selectors, Verdict},
};
use pintle_cel::{Authority, AuthorizationCheck, AuthorizationDecision, CheckTarget};
use pintle_machinery::UserInfo;
use std::{collections::HashMap, sync::Arc};
use tokio::runtime::Handle;

/// Answers the checks of the expressions of one request.
pub struct ExpressionAuthorizer {
    asker: Arc<Asker>,
    answers: Mutex<Answers>,
    /// Checks may be made on a thread that is none of the runtime's.
    runtime: Option<Handle>,
}

#[derive(Default)]
struct Answers {
    known: HashMap<AuthorizationCheck, AuthorizationDecision>,
    /// The check that has to be waited for, and its answer to come.
    pending: Option<(AuthorizationCheck, BoxFuture<'static, AuthorizationDecision>)>,
}

struct Asker {
    user: Arc<UserInfo>,
    authorizer: Arc<dyn Authorizer>,
}

impl ExpressionAuthorizer {
    /// Answers for a user; the variable `authorizer` is made of it by [`pintle_cel::Authorization::authorizer`].
    pub fn new(user: Arc<UserInfo>, authorizer: Arc<dyn Authorizer>) -> Arc<ExpressionAuthorizer> {
        Arc::new(ExpressionAuthorizer {
            asker: Arc::new(Asker { user, authorizer }),
            answers: Mutex::default(),
            runtime: Handle::try_current().ok(),
        })
    }

    /// Waits for the answer for want of which the last evaluation ended.
    pub async fn settle(&self) {
        let Some((check, answer)) = self.answers.lock().pending.take() else { return };
        let decision = answer.await;
        self.answers.lock().known.insert(check, decision);
    }
}

impl Authority for ExpressionAuthorizer {
    fn check(&self, check: &AuthorizationCheck) -> Option<AuthorizationDecision> {
        let mut answers = self.answers.lock();
        if let Some(known) = answers.known.get(check) {
            return Some(known.clone());
        }
        let _entered = self.runtime.as_ref().map(Handle::enter);
        let (asker, asked) = (self.asker.clone(), check.clone());
        let mut answer: BoxFuture<'static, _> = Box::pin(async move { asker.ask(&asked).await });
        match (&mut answer).now_or_never() {
            Some(decision) => {
                answers.known.insert(check.clone(), decision.clone());
                Some(decision)
            }
            None => {
                answers.pending = Some((check.clone(), answer));
                None
            }
        }
    }
}

impl Asker {
    async fn ask(&self, check: &AuthorizationCheck) -> AuthorizationDecision {
        let account =
            check.service_account.as_ref().map(|(namespace, name)| service_account(namespace, name));
        let user = account.as_ref().unwrap_or(&self.user);
        let asked = Attributes::of(user, &check.verb);
        let verdict = match &check.target {
            CheckTarget::Path(path) => {
                self.authorizer.authorize(&Attributes { path, is_resource_request: false, ..asked }).await
            }
            CheckTarget::Resource(resource) => {
                let (fields, labels) = (&resource.field_selector, &resource.label_selector);
                let selectors =
                    (!fields.is_empty() || !labels.is_empty()).then(|| Selectors::parse(fields, labels));
                let attributes = Attributes {
                    group: &resource.group,
                    version: "*",
                    resource: &resource.resource,
                    subresource: &resource.subresource,
                    namespace: &resource.namespace,
                    name: &resource.name,
                    selectors: selectors.as_ref(),
                    ..asked
                };
                self.authorizer.authorize(&attributes).await
            }
        };
        let allowed = verdict.is_allowed();
        let Verdict { reason, error, .. } = verdict;
        let error = (!error.is_empty()).then(|| Arc::from(&*error));
        AuthorizationDecision { allowed, reason: Arc::from(&*reason), error }
    }
}

/// Who a service account is (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens>).
fn service_account(namespace: &str, name: &str) -> UserInfo {
    UserInfo {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        ..UserInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authz::Decision;
    use pintle_cel::{Activation, Authorization, Environment, EvaluationError};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Allows whoever is called `jane`; has to wait when asked for secrets.
    #[derive(Default)]
    struct Jane {
        asked: AtomicUsize,
    }

    impl Authorizer for Jane {
        fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                if attributes.resource == "secrets" {
                    tokio::task::yield_now().await;
                }
                let may = attributes.user.name == "jane";
                Verdict::new(if may { Decision::Allow } else { Decision::NoOpinion })
            })
        }
    }

    async fn evaluate(expression: &str) -> (String, usize) {
        let environment = Environment::new().with_variable("authorizer", Authorization::authorizer_type());
        let program = environment.compile(expression).unwrap();
        let jane = Arc::new(Jane::default());
        let user = Arc::new(UserInfo { name: "jane".to_owned(), ..UserInfo::default() });
        let authorizer = ExpressionAuthorizer::new(user, jane.clone());
        let activation = Activation::new().with("authorizer", Authorization::authorizer(authorizer.clone()));
        let mut turns = 0;
        let outcome = loop {
            turns += 1;
            match program.evaluate(&activation, &mut 10_000_000) {
                Err(EvaluationError::Undecided) => authorizer.settle().await,
                outcome => break outcome,
            }
        };
        let value = outcome.map(|value| value.as_bool().unwrap_or_default());
        (format!("{value:?} in {turns}"), jane.asked.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn expressions_wait_only_for_who_has_to() {
        let pods = "authorizer.group('').resource('pods').check('get').allowed()";
        let secrets = "authorizer.group('').resource('secrets').check('get').allowed()";
        let other =
            "authorizer.serviceAccount('a', 'b').group('').resource('secrets').check('get').allowed()";
        assert_eq!(evaluate(pods).await, ("Ok(true) in 1".to_owned(), 1));
        // Asked once, waited for, known from then on.
        assert_eq!(evaluate(secrets).await, ("Ok(true) in 2".to_owned(), 1));
        let twice = format!("{secrets} && {secrets} && {pods} && {pods}");
        assert_eq!(evaluate(&twice).await, ("Ok(true) in 2".to_owned(), 2));
        assert_eq!(evaluate(&format!("{secrets} && {other}")).await, ("Ok(false) in 3".to_owned(), 2));
    }
}
