//! Runs the fuzz target of audit policies on mutations of a policy with everything in it, the same ones every time.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[path = "../../../fuzz/src/audit_policies.rs"]
mod audit_policies;

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

/// A small generator of the xorshift kind: the same inputs in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

#[test]
fn policies_hold() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
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
