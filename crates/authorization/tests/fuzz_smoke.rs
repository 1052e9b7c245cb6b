//! Runs the fuzz targets of authorization's files on a fixed sequence of mutations of valid files.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/src/authorization.rs"]
mod authorization;
#[path = "../../../fuzz/src/random.rs"]
mod random;

use random::Random;

const ROUNDS: u32 = 4_000;

const CONFIGURATION: &[u8] = b"apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: strict
  webhook:
    timeout: 3s
    authorizedTTL: 90s
    unauthorizedTTL: 30s
    cacheUnauthorizedRequests: false
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /dev/null}
    matchConditions: [{expression: request.user != 'root'}]
- {type: Node, name: node}
- {type: RBAC, name: rbac}
";

const POLICIES: &[u8] = br#"# who may do what
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "*", "namespace": "*", "resource": "pods", "readonly": true}}
{"user": "jane", "namespace": "shop"}

{"group": "*", "nonResourcePath": "/logs*"}
"#;

fn run(whole: &[u8], target: fn(&[u8])) {
    let mut random = Random::default();
    target(whole);
    for _ in 0..ROUNDS {
        let mut data = whole.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() + 1);
            match random.below(5) {
                0 => data.truncate(at),
                1 => data.insert(at, random.below(256) as u8),
                2 if at < data.len() => data[at] ^= 1 << random.below(8),
                3 => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
                _ => {
                    let from = random.below(whole.len());
                    let length = random.below(whole.len() - from);
                    data.splice(at..at, whole[from..from + length].iter().copied());
                }
            }
        }
        target(&data);
    }
}

#[test]
fn configurations_hold() {
    run(CONFIGURATION, authorization::configuration);
}

#[test]
fn policies_hold() {
    run(POLICIES, authorization::policies);
}
