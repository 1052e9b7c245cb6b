//! The strategies of pod certificate requests: the spec is immutable, and only users that may sign for the signer write
//! the status.

use super::{status_validation, validation};
use crate::rules;
use pintle_auth::authz::Attributes;
use pintle_go_forms::quote;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{BoxFuture, RequestContext, Strategy};

pub(super) struct PodCertificateRequestStrategy;

impl Strategy for PodCertificateRequestStrategy {
    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at("status");
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_update(object, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// The strategy of the `status` subresource.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        rules::keep_metadata(object, old);
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        status_validation::validate(object, old, context.now)
    }

    fn review<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a Value,
        old: Option<&'a Value>,
        errors: &'a mut ErrorList,
    ) -> Option<BoxFuture<'a, ()>> {
        let old = old.filter(|old| errors.is_empty() && rules::differs(object, old, "status"))?;
        Some(Box::pin(async move {
            let signer = old.str_at("spec.signerName");
            if !may_sign(context, signer).await {
                let (user, signer) = (quote(&context.user.name), quote(signer));
                let detail = format!("User {user} is not permitted to \"sign\" for signer {signer}");
                errors.push(FieldError::forbidden(&FieldPath::new("spec.signerName"), detail));
            }
        }))
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// Whether the user may sign for this signer, or for all signers of its domain.
async fn may_sign(context: &RequestContext<'_>, signer: &str) -> bool {
    let all_of_domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &all_of_domain] {
        let attributes = Attributes {
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..Attributes::of(context.user, "sign")
        };
        if context.authorizer.authorize(&attributes).await.is_allowed() {
            return true;
        }
    }
    false
}
