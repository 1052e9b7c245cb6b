//! `CertificateSigning`: authorizes the signing of a certificate signing request for its signer
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#certificatesigning>).

use super::signers::{self, GROUP, REQUESTS};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, Value, ValueExt, validation::semantically_equal};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct CertificateSigning;

impl AdmissionPlugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Update
            && request.subresource == "status"
            && request.is_of(GROUP, REQUESTS)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let nothing = Value::Null;
            let old = request.old_object.unwrap_or(&nothing);
            let is_kept = |path: &str| {
                let (new, old) = (request.object.at(path), old.at(path));
                semantically_equal(new.unwrap_or(&nothing), old.unwrap_or(&nothing))
            };
            if is_kept("status.certificate") && is_kept("status.conditions") {
                return Ok(());
            }
            signers::check(request, "sign", old.str_at("spec.signerName"), "requests with").await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, Signers, admit_with};
    use pintle_machinery::json;

    #[test]
    fn signers_need_their_own_name_when_they_say_something() {
        let object = |signer: &str, status: Value| json!({"metadata": {"name": "a"}, "spec": {"signerName": signer}, "status": status});
        let sign = |signer: &str, status: Value| {
            let old = object(signer, json!({"conditions": [{"type": "Approved"}]}));
            let new = object(signer, status);
            let authorizer = Signers { verb: "sign", names: &["example.com/one"] };
            let plugin = CertificateSigning;
            let (resource, operation) = (REQUESTS, Operation::Update);
            admit_with(
                &authorizer,
                &plugin,
                &Objects::default(),
                operation,
                resource,
                "status",
                new,
                Some(&old),
            )
            .map(drop)
        };
        let refused = || {
            Err("certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to sign requests \
                 with signerName \"example.com/two\""
                .to_owned())
        };
        let signed = json!({"certificate": "YQ==", "conditions": [{"type": "Approved"}]});
        assert_eq!(sign("example.com/one", signed.clone()), Ok(()));
        assert_eq!(sign("example.com/two", signed), refused());
        assert_eq!(sign("example.com/two", json!({"conditions": []})), refused());
        assert_eq!(sign("example.com/two", json!({"conditions": [{"type": "Approved"}]})), Ok(()));
    }
}
