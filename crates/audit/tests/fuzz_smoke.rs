//! Runs the fuzz target of audit policies on fixed mutations of a policy with all fields.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/src/audit_policies.rs"]
mod audit_policies;
#[path = "../../../fuzz/src/random.rs"]
mod random;

use random::Random;

const ROUNDS: u32 = 5_000;

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
metadata: {name: p}
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ['system:kube-proxy']
  verbs: [watch]
  resources: [{group: '', resources: [endpoints, services/status]}]
- level: RequestResponse
  userGroups: [\"system:authenticated\"]
  namespaces: ['', kube-system]
  resources: [{group: '*', resources: ['*/log', 'pods/*'], resourceNames: [a]}]
  omitManagedFields: false
- level: Metadata
  nonResourceURLs: [/healthz*, '*']
  omitStages: [Panic, ResponseStarted]
- {level: Request}
";

#[test]
fn policies_hold() {
    let mut random = Random::default();
    audit_policies::audit_policy(POLICY.as_bytes());
    for _ in 0..ROUNDS {
        let mut data = POLICY.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() + 1);
            match random.below(6) {
                0 => data.truncate(at),
                1 => data.insert(at, b"{}[]:,-*&!'\"\n /#"[random.below(16)]),
                2 if at < data.len() => data[at] ^= 1 << random.below(8),
                3 => drop(data.drain(at..(at + random.below(30)).min(data.len()))),
                4 => data.insert(at, random.below(256) as u8),
                _ => {
                    let from = random.below(POLICY.len());
                    let length = random.below(POLICY.len() - from);
                    data.splice(at..at, POLICY.as_bytes()[from..from + length].iter().copied());
                }
            }
        }
        audit_policies::audit_policy(&data);
    }
}
