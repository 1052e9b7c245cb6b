//! `CertificateApproval`: authorizes the approval or denial of a certificate signing request for its signer
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#certificateapproval>).

use super::signers::{self, GROUP, REQUESTS};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, ValueExt};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct CertificateApproval;

impl AdmissionPlugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Update
            && request.subresource == "approval"
            && request.is_of(GROUP, REQUESTS)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            // The signer is that of the stored request; the new object cannot change it.
            let signer = request.old_object.map_or("", |old| old.str_at("spec.signerName"));
            signers::check(request, "approve", signer, "requests with").await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, Signers, admit_with};
    use pintle_machinery::json;

    #[test]
    fn approvers_need_the_signer_or_its_domain() {
        let approve = |signer: &str, stored: &str| {
            let old = json!({"metadata": {"name": "a"}, "spec": {"signerName": stored}});
            let new = json!({"metadata": {"name": "a"}, "spec": {"signerName": signer}});
            let authorizer = Signers { verb: "approve", names: &["example.com/one", "other.example.com/*"] };
            let plugin = CertificateApproval;
            let (resource, operation) = (REQUESTS, Operation::Update);
            admit_with(
                &authorizer,
                &plugin,
                &Objects::default(),
                operation,
                resource,
                "approval",
                new,
                Some(&old),
            )
            .map(drop)
        };
        assert_eq!(approve("example.com/one", "example.com/one"), Ok(()));
        assert_eq!(approve("other.example.com/x", "other.example.com/x"), Ok(()));
        let refusal = "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to approve \
                       requests with signerName \"example.com/two\"";
        assert_eq!(approve("example.com/one", "example.com/two"), Err(refusal.to_owned()));
    }
}
