//! `CertificateSubjectRestriction`: refuses requests to the signer of API clients for a certificate of `system:masters`
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#certificatesubjectrestriction>).

use super::signers::{GROUP, REQUESTS};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_go_forms::{PemBlocks, base64};
use pintle_machinery::{Status, ValueExt, user::SYSTEM_MASTERS};
use pintle_registry::BoxFuture;
use std::future::ready;
use x509_parser::{
    certification_request::{X509CertificationRequest, X509CertificationRequestInfo},
    prelude::FromDer,
};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct CertificateSubjectRestriction;

impl AdmissionPlugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for(GROUP, REQUESTS)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(check(request)))
    }
}

fn check(request: &AdmissionRequest<'_>) -> Result<(), Status> {
    if request.object.str_at("spec.signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let asks_for_masters = asks_for_masters(request.object.str_at("spec.request"));
    match asks_for_masters.ok_or_else(|| request.forbidden("failed to parse CSR"))? {
        false => Ok(()),
        true => {
            let why = format!("use of {CLIENT_SIGNER} signer with {SYSTEM_MASTERS} group is not allowed");
            Err(request.forbidden(why))
        }
    }
}

/// Whether one of the organizations is `system:masters`; `None` when the request cannot be parsed.
fn asks_for_masters(text: &str) -> Option<bool> {
    // Other readers may decode a name in an encoding that is unsupported here.
    let is_masters = |name: &[u8]| name == SYSTEM_MASTERS.as_bytes();
    parse_request(text, |info| {
        info.subject.iter_organization().any(|name| match name.as_str() {
            Ok(name) => name == SYSTEM_MASTERS,
            Err(_) => {
                is_masters(&name.as_slice().iter().copied().filter(|byte| *byte != 0).collect::<Vec<_>>())
            }
        })
    })
}

/// Reads the content of a certificate signing request, from base64 and PEM; `None` when it cannot be parsed. The block is
/// the one that signers find.
pub(super) fn parse_request<T>(
    text: &str,
    read: impl FnOnce(&X509CertificationRequestInfo<'_>) -> T,
) -> Option<T> {
    let pem = base64::decode(text).ok()?;
    let text = String::from_utf8_lossy(&pem);
    let block = PemBlocks::of(&text).next()?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents).ok()?;
    Some(read(&request.certification_request_info))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn request_of(organization: &str) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
    }

    fn ask(signer: &str, pem: &str) -> Result<(), String> {
        let request = base64::encode(pem.as_bytes());
        let object = json!({"metadata": {"name": "a"}, "spec": {"signerName": signer, "request": request}});
        let plugin = CertificateSubjectRestriction;
        admit(&plugin, &Objects::default(), Operation::Create, REQUESTS, "", object, None).map(drop)
    }

    const REFUSAL: &str = "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of \
                           kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";

    #[test]
    fn masters_are_made_by_other_signers_only() {
        assert_eq!(ask(CLIENT_SIGNER, &request_of("devs")), Ok(()));
        assert_eq!(ask("example.com/own", &request_of(SYSTEM_MASTERS)), Ok(()));
        assert_eq!(ask(CLIENT_SIGNER, &request_of(SYSTEM_MASTERS)), Err(REFUSAL.to_owned()));
    }

    #[test]
    fn the_block_that_signers_find_is_judged() {
        let (masters, devs) = (request_of(SYSTEM_MASTERS), request_of("devs"));
        let with_headers = masters.replacen('\n', "\nA: b\n\n", 1);
        let with_other_end = devs.replace("END CERTIFICATE REQUEST", "END CERTIFICATE");
        let with_text_behind_end = devs.trim_end().to_owned() + "x\n";
        for pem in [
            with_headers + &devs,
            with_other_end + &masters,
            with_text_behind_end + &masters,
            format!("-----BEGIN CERTIFICATE REQUEST-----\n{masters}{devs}"),
        ] {
            assert_eq!(ask(CLIENT_SIGNER, &pem), Err(REFUSAL.to_owned()), "{pem}");
        }
    }
}
