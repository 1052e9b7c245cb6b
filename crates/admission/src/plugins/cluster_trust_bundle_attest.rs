//! `ClusterTrustBundleAttest`: authorizes the attestation of a trust bundle for its signer
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#clustertrustbundleattest>).

use super::signers::{self, GROUP};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, Value, ValueExt, validation::semantically_equal};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct ClusterTrustBundleAttest;

impl AdmissionPlugin for ClusterTrustBundleAttest {
    fn name(&self) -> &'static str {
        "ClusterTrustBundleAttest"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update)
            && request.is_of(GROUP, "clustertrustbundles")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let signer = request.object.str_at("spec.signerName");
            let is_same_bundle = request.old_object.is_some_and(|old| is_same_bundle(&request.object, old));
            if signer.is_empty() || is_same_bundle {
                return Ok(());
            }
            signers::check(request, "attest", signer, "for").await
        })
    }
}

/// Whether an update changes at most the fields of garbage collection, and the fields' managers.
fn is_same_bundle(new: &Value, old: &Value) -> bool {
    const IGNORED: [&str; 3] = ["metadata.ownerReferences", "metadata.finalizers", "metadata.managedFields"];
    let [new, old] = [new, old].map(|object| {
        let mut object = object.clone();
        for path in IGNORED {
            object.remove_at(path);
        }
        object
    });
    semantically_equal(&new, &old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, Signers, admit_with};
    use pintle_machinery::json;

    #[test]
    fn bundles_of_signers_need_a_permission() {
        let bundle = |signer: &str, text: &str| json!({"metadata": {"name": "a"}, "spec": {"signerName": signer, "trustBundle": text}});
        let run = |new: Value, old: Option<&Value>| {
            let authorizer = Signers { verb: "attest", names: &["example.com/one"] };
            let operation = if old.is_some() { Operation::Update } else { Operation::Create };
            let (plugin, objects) = (ClusterTrustBundleAttest, Objects::default());
            admit_with(&authorizer, &plugin, &objects, operation, "clustertrustbundles", "", new, old)
                .map(drop)
        };
        let refused = || {
            Err("clustertrustbundles.certificates.k8s.io \"a\" is forbidden: user not permitted to attest for signerName \
                 \"example.com/two\""
                .to_owned())
        };
        assert_eq!(run(bundle("", "x"), None), Ok(()));
        assert_eq!(run(bundle("example.com/one", "x"), None), Ok(()));
        assert_eq!(run(bundle("example.com/two", "x"), None), refused());
        let old = bundle("example.com/two", "x");
        assert_eq!(run(bundle("example.com/two", "y"), Some(&old)), refused());
        let mut owned = old.clone();
        owned["metadata"]["finalizers"] = json!(["a/b"]);
        assert_eq!(run(owned, Some(&old)), Ok(()));
    }
}
