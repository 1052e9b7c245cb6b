//! Authorization checks of expressions
//! (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library>).
//!
//! Evaluation is synchronous and must not wait, but an authorizer may need to (it may be a webhook). Expressions
//! therefore call an [`Authority`], which either decides at once or reports that the decision is pending. In the latter
//! case the evaluation ends with [`EvaluationError::Undecided`](crate::EvaluationError::Undecided). The caller awaits
//! the decision and evaluates again, which repeats the same checks in the same order, since expressions have no
//! effects. The cost of a check bounds the number of repetitions.

use crate::types::Type;
use std::fmt;
use std::sync::Arc;

/// An authorization check of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthorizationCheck {
    /// The namespace and name of the service account to check; `None` checks the user of the request.
    pub service_account: Option<(Arc<str>, Arc<str>)>,
    /// The verb.
    pub verb: Arc<str>,
    /// The resource or path.
    pub target: CheckTarget,
}

/// The target of a check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CheckTarget {
    /// A non-resource path.
    Path(Arc<str>),
    /// A resource.
    Resource(ResourceCheck),
}

/// The resource of a check, as far as the expression specifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ResourceCheck {
    /// The group.
    pub group: Arc<str>,
    /// The resource.
    pub resource: Arc<str>,
    /// The subresource, or "".
    pub subresource: Arc<str>,
    /// The namespace, or "".
    pub namespace: Arc<str>,
    /// The name, or "".
    pub name: Arc<str>,
    /// The field selector in text form, or "".
    pub field_selector: Arc<str>,
    /// The label selector in text form, or "".
    pub label_selector: Arc<str>,
}

/// The decision on a check.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AuthorizationDecision {
    /// Whether the action is allowed.
    pub allowed: bool,
    /// The reason, or "".
    pub reason: Arc<str>,
    /// The error of the authorizer, if any.
    pub error: Option<Arc<str>>,
}

/// Decides the authorization checks of expressions.
pub trait Authority: Send + Sync {
    /// Decides without waiting. `None` ends the evaluation, which must be repeated when the decision is available.
    fn check(&self, check: &AuthorizationCheck) -> Option<AuthorizationDecision>;
}

/// A value through which an expression builds a check.
#[derive(Clone)]
pub struct Authorization {
    pub(crate) authority: Arc<dyn Authority>,
    pub(crate) service_account: Option<(Arc<str>, Arc<str>)>,
    pub(crate) part: Part,
}

/// The stage of a check that is being built.
#[derive(Clone)]
pub(crate) enum Part {
    Authorizer,
    Path(Arc<str>),
    Group(Arc<str>),
    Resource(ResourceCheck),
}

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";

impl Authorization {
    /// The variable `authorizer`.
    pub fn authorizer(authority: Arc<dyn Authority>) -> Authorization {
        Authorization { authority, service_account: None, part: Part::Authorizer }
    }

    /// The type of the variable `authorizer`.
    pub fn authorizer_type() -> Type {
        Type::object(AUTHORIZER)
    }

    /// The variable `authorizer.requestResource`: a check of the resource of the request.
    pub fn request_resource(authority: Arc<dyn Authority>, resource: ResourceCheck) -> Authorization {
        Authorization { authority, service_account: None, part: Part::Resource(resource) }
    }

    /// The type of the variable `authorizer.requestResource`.
    pub fn request_resource_type() -> Type {
        Type::object(RESOURCE_CHECK)
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.part {
            Part::Authorizer => AUTHORIZER,
            Part::Path(_) => "kubernetes.authorization.PathCheck",
            Part::Group(_) => "kubernetes.authorization.GroupCheck",
            Part::Resource(_) => RESOURCE_CHECK,
        }
    }

    pub(crate) fn implementation_name(&self) -> &'static str {
        match self.part {
            Part::Authorizer => "library.authorizerVal",
            Part::Path(_) => "library.pathCheckVal",
            Part::Group(_) => "library.groupCheckVal",
            Part::Resource(_) => "library.resourceCheckVal",
        }
    }

    /// A copy at a further stage.
    pub(crate) fn with(&self, part: Part) -> Authorization {
        Authorization {
            authority: self.authority.clone(),
            service_account: self.service_account.clone(),
            part,
        }
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activation, Environment, EvaluationError};
    use std::sync::Mutex;

    /// An authority with fixed decisions that records its checks.
    #[derive(Default)]
    struct Oracle {
        undecided: bool,
        asked: Mutex<Vec<AuthorizationCheck>>,
    }

    impl Authority for Oracle {
        fn check(&self, check: &AuthorizationCheck) -> Option<AuthorizationDecision> {
            self.asked.lock().unwrap().push(check.clone());
            let error = (&*check.verb == "fail").then(|| Arc::from("it failed"));
            let decision =
                AuthorizationDecision { allowed: &*check.verb == "get", reason: "because".into(), error };
            (!self.undecided).then_some(decision)
        }
    }

    fn evaluate(oracle: &Arc<Oracle>, expression: &str) -> Result<String, EvaluationError> {
        let environment = Environment::new()
            .with_variable("authorizer", Authorization::authorizer_type())
            .with_variable("authorizer.requestResource", Type::object(RESOURCE_CHECK));
        let program =
            environment.compile(expression).unwrap_or_else(|errors| panic!("{expression}: {errors}"));
        let resource =
            ResourceCheck { resource: "pods".into(), name: "p".into(), ..ResourceCheck::default() };
        let activation =
            Activation::new().with("authorizer", Authorization::authorizer(oracle.clone()).into()).with(
                "authorizer.requestResource",
                Authorization::authorizer(oracle.clone()).with(Part::Resource(resource)).into(),
            );
        program.evaluate(&activation, &mut 1_000_000).map(|value| value.display())
    }

    #[test]
    fn checks_are_put_together() {
        let check = |expression: &str, answer: Result<&str, &str>, expected: Option<AuthorizationCheck>| {
            let oracle = Arc::new(Oracle::default());
            let found = evaluate(&oracle, expression).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), answer, "{expression}");
            if let Some(expected) = expected {
                assert_eq!(*oracle.asked.lock().unwrap(), [expected], "{expression}");
            }
        };
        let whole = AuthorizationCheck {
            service_account: None,
            verb: "get".into(),
            target: CheckTarget::Resource(ResourceCheck {
                group: "apps".into(),
                resource: "deployments".into(),
                subresource: "scale".into(),
                namespace: "shop".into(),
                name: "web".into(),
                field_selector: "a=b".into(),
                label_selector: "c".into(),
            }),
        };
        check(
            "authorizer.group('apps').resource('deployments').subresource('scale').namespace('shop').name('web')\
             .fieldSelector('a=b').labelSelector('c').check('get').allowed()",
            Ok("true"),
            Some(whole),
        );
        let path = CheckTarget::Path("/healthz".into());
        let of_path = AuthorizationCheck { service_account: None, verb: "put".into(), target: path };
        check("authorizer.path('/healthz').check('put').allowed()", Ok("false"), Some(of_path.clone()));
        let account = Some(("shop".into(), "robot".into()));
        check(
            "authorizer.serviceAccount('shop', 'robot').path('/healthz').check('put').reason()",
            Ok("because"),
            Some(AuthorizationCheck { service_account: account, ..of_path }),
        );
        let pods = ResourceCheck { resource: "pods".into(), name: "p".into(), ..ResourceCheck::default() };
        let of_request = AuthorizationCheck {
            service_account: None,
            verb: "get".into(),
            target: CheckTarget::Resource(pods),
        };
        check("authorizer.requestResource.check('get').allowed()", Ok("true"), Some(of_request));
        check("authorizer.path('/x').check('fail').error()", Ok("it failed"), None);
        check("authorizer.path('/x').check('fail').errored()", Ok("true"), None);
        check("authorizer.path('/x').check('get').error()", Ok(""), None);
        check("authorizer.path(' ')", Err("path must not be empty"), None);
        check("authorizer.group('').resource('')", Err("resource must not be empty"), None);
        check("authorizer.serviceAccount('a', 'B')", Err("Invalid service account name"), None);
        check("authorizer.serviceAccount('a.b', 'b')", Err("Invalid service account namespace"), None);
        check("authorizer == authorizer", Err("no such overload"), None);
    }

    #[test]
    fn nothing_absorbs_that_an_answer_is_missing() {
        let oracle = Arc::new(Oracle { undecided: true, ..Oracle::default() });
        let found = evaluate(&oracle, "authorizer.path('/x').check('get').allowed() || true");
        assert_eq!(found, Err(EvaluationError::Undecided));
    }

    #[test]
    fn checks_are_paid_for() {
        let oracle = Arc::new(Oracle::default());
        let found = evaluate(&oracle, "[1, 2, 3].all(x, authorizer.path('/x').check('get').allowed())");
        assert_eq!(found, Err(EvaluationError::CostLimitExceeded));
        assert_eq!(oracle.asked.lock().unwrap().len(), 2);
    }
}
