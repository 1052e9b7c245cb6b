//! Authorizes actions of users for certificate signers
//! (<https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#authorization>).

use crate::AdmissionRequest;
use pintle_auth::authz::Attributes;
use pintle_go_forms::quote;
use pintle_machinery::Status;

pub(super) const GROUP: &str = "certificates.k8s.io";
pub(super) const REQUESTS: &str = "certificatesigningrequests";

/// Authorizes a verb on a signer: on this one, or on all signers of its domain. `what` is part of the message of a
/// refusal.
///
/// # Errors
/// 403 when the user is not authorized.
pub(super) async fn check(
    request: &AdmissionRequest<'_>,
    verb: &str,
    signer: &str,
    what: &str,
) -> Result<(), Status> {
    let domain = signer.split('/').next().unwrap_or_default();
    let all_of_domain = format!("{domain}/*");
    for name in [signer, &all_of_domain] {
        let attributes = Attributes {
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..Attributes::of(request.context.user, verb)
        };
        if request.context.authorizer.authorize(&attributes).await.is_allowed() {
            return Ok(());
        }
    }
    Err(request.forbidden(format!("user not permitted to {verb} {what} signerName {}", quote(signer))))
}
