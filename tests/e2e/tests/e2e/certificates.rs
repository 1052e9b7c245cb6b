//! Tests certificate signing requests with kubectl: creation, approval, denial and signing by users with permission.

use crate::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_e2e::{Cli, PATIENCE, start};
use pintle_harness::wait_for;

const REQUEST: &str =
    include_str!("../../../../crates/api/src/certificates/certificate_signing_request/testdata/jane.csr");
const CERTIFICATE: &str =
    include_str!("../../../../crates/api/src/certificates/certificate_signing_request/testdata/jane.crt");

fn request(name: &str, signer: &str) -> String {
    let request = STANDARD.encode(REQUEST);
    format!(
        "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{name: {name}}}\nspec: \
         {{request: {request}, signerName: {signer}, usages: [client auth]}}\n"
    )
}

/// The signer, requestor and condition, as `kubectl get` prints them.
fn row(kubectl: &Cli<'_>, name: &str) -> Result<Vec<String>> {
    let table = kubectl.run(&["get", "csr", name, "--no-headers"])?;
    let words: Vec<String> = table.split_whitespace().map(str::to_owned).collect();
    let [_, _, rest @ ..] = words.as_slice() else { panic!("no row: {table}") };
    Ok(rest.to_vec())
}

#[test]
fn requests_are_approved_denied_and_issued() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.feed(&["create", "-f", "-"], &request("wanted", "example.com/own"))?;
    kubectl.feed(&["create", "-f", "-"], &request("unwanted", "example.com/own"))?;
    let asked = row(&kubectl, "wanted")?;
    assert_eq!(asked[0], "example.com/own");
    assert_eq!(asked[2..], ["<none>", "Pending"], "{asked:?}");

    let approved = kubectl.run(&["certificate", "approve", "wanted"])?;
    assert_eq!(approved, "certificatesigningrequest.certificates.k8s.io/wanted approved\n");
    let denied = kubectl.run(&["certificate", "deny", "unwanted"])?;
    assert_eq!(denied, "certificatesigningrequest.certificates.k8s.io/unwanted denied\n");
    assert_eq!(row(&kubectl, "wanted")?[3], "Approved");
    assert_eq!(row(&kubectl, "unwanted")?[3], "Denied");
    let both = kubectl.fails(&["certificate", "approve", "unwanted"])?;
    assert!(both.contains("certificate signing request \"unwanted\" is already Denied"), "{both}");
    let both =
        r#"[{"op": "add", "path": "/status/conditions/-", "value": {"type": "Approved", "status": "True"}}]"#;
    let both =
        kubectl.fails(&["patch", "csr", "unwanted", "--subresource=approval", "--type=json", "-p", both])?;
    assert!(both.contains("Approved and Denied conditions are mutually exclusive"), "{both}");

    let issued = format!("{{\"status\":{{\"certificate\":\"{}\"}}}}", STANDARD.encode(CERTIFICATE));
    kubectl.run(&["patch", "csr", "wanted", "--subresource=status", "--type=merge", "-p", &issued])?;
    assert_eq!(row(&kubectl, "wanted")?[3], "Approved,Issued");
    let certificate = kubectl.run(&["get", "csr", "wanted", "-o", "jsonpath={.status.certificate}"])?;
    assert_eq!(STANDARD.decode(certificate)?, CERTIFICATE.as_bytes());
    Ok(())
}

/// The permissions of approvers: the subresource, and the signers.
const ROLES: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: approve}
rules:
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [get]}
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: approve-own}
rules:
- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: ['example.com/*'], verbs: [approve]}
";

#[test]
fn approvers_need_more_than_the_subresource() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.feed(&["create", "-f", "-"], ROLES)?;
    kubectl.run(&["create", "clusterrolebinding", "approve", "--clusterrole=approve", "--user=jane"])?;
    kubectl.feed(&["create", "-f", "-"], &request("own", "example.com/own"))?;
    kubectl.feed(&["create", "-f", "-"], &request("other", "other.example.com/x"))?;
    let refusal = "user not permitted to approve requests with signerName \"example.com/own\"";
    wait_for("the first role", PATIENCE, || {
        let refused = kubectl.fails(&["certificate", "approve", "own", "--as=jane"]).ok()?;
        refused.contains(refusal).then_some(())
    })?;
    kubectl.run(&[
        "create",
        "clusterrolebinding",
        "approve-own",
        "--clusterrole=approve-own",
        "--user=jane",
    ])?;
    wait_for("the second role", PATIENCE, || {
        kubectl.run(&["certificate", "approve", "own", "--as=jane"]).ok()
    })?;
    assert_eq!(row(&kubectl, "own")?[3], "Approved");
    let refused = kubectl.fails(&["certificate", "approve", "other", "--as=jane"])?;
    assert!(refused.contains("with signerName \"other.example.com/x\""), "{refused}");
    Ok(())
}
