//! Answers the authorization checks of CEL expressions
//! (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library>).
//!
//! The evaluation of an expression is synchronous, and an authorizer may have to wait. A check is therefore polled
//! once: RBAC and the node authorizer answer at once. When an authorizer has to wait, the evaluation fails,
//! [`ExpressionAuthorizer::settle`] awaits and caches the decision, and the evaluation is repeated. The caller
//! evaluates in a loop:
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
//! Each iteration adds at least one decision, and the cost of checks bounds their number.

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

/// Answers the authorization checks of one request's expressions.
pub struct ExpressionAuthorizer {
    asker: Arc<Asker>,
    answers: Mutex<Answers>,
    /// The runtime, for checks on threads that are not its own.
    runtime: Option<Handle>,
}

#[derive(Default)]
struct Answers {
    known: HashMap<AuthorizationCheck, AuthorizationDecision>,
    /// The undecided check, and its future decision.
    pending: Option<(AuthorizationCheck, BoxFuture<'static, AuthorizationDecision>)>,
}

struct Asker {
    user: Arc<UserInfo>,
    authorizer: Arc<dyn Authorizer>,
}

impl ExpressionAuthorizer {
    /// Answers for a user; [`pintle_cel::Authorization::authorizer`] makes the variable `authorizer` from it.
    pub fn new(user: Arc<UserInfo>, authorizer: Arc<dyn Authorizer>) -> Arc<ExpressionAuthorizer> {
        Arc::new(ExpressionAuthorizer {
            asker: Arc::new(Asker { user, authorizer }),
            answers: Mutex::default(),
            runtime: Handle::try_current().ok(),
        })
    }

    /// Awaits the decision that the last evaluation lacked.
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

/// The user of a service account
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens>).
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

    /// Allows the user `jane`; is pending on checks of secrets.
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
        let activation =
            Activation::new().with("authorizer", Authorization::authorizer(authorizer.clone()).into());
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
        // Called once, awaited, and cached from then on.
        assert_eq!(evaluate(secrets).await, ("Ok(true) in 2".to_owned(), 1));
        let twice = format!("{secrets} && {secrets} && {pods} && {pods}");
        assert_eq!(evaluate(&twice).await, ("Ok(true) in 2".to_owned(), 2));
        assert_eq!(evaluate(&format!("{secrets} && {other}")).await, ("Ok(false) in 3".to_owned(), 2));
    }
}
