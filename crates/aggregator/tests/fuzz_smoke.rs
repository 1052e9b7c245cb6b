//! Runs the fuzz targets of other servers' documents on fixed mutations of valid documents.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/remote_documents.rs"]
mod remote_documents;

use random::Random;

const ROUNDS: u32 = 2_000;

const DISCOVERY: [&str; 2] = [
    r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"a","creationTimestamp":null},"versions":[{"version":"v1","resources":[{"resource":"things","responseKind":{"group":"","version":"","kind":"Thing"},"scope":"Namespaced","singularResource":"thing","verbs":["get","list"],"shortNames":["th"],"categories":["all"],"subresources":[{"subresource":"status","responseKind":null,"verbs":["get"]}]}],"freshness":"Current"}]}]}"#,
    r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"a/v1","resources":[{"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["get"],"shortNames":["th"]},{"name":"things/status","singularName":"","namespaced":true,"kind":"Thing","verbs":["get"]},{"name":"b/scale","singularName":"","namespaced":false,"group":"autoscaling","version":"v1","kind":"Scale","verbs":[]}]}"#,
];

const OPENAPI: [&str; 2] = [
    r##"{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{"/apis/a/v1/x":{"parameters":[{"$ref":"#/parameters/p"},{"in":"body","name":"b","required":true,"schema":{"$ref":"#/definitions/A"}}],"get":{"operationId":"o","tags":["t"],"deprecated":true,"security":[{"k":["s"]}],"responses":{"200":{"description":"d","schema":{"$ref":"#/definitions/A"},"headers":{"h":{"type":"array","items":{"type":"string"}}}},"default":{"$ref":"#/responses/r"}}}},"/apis/b/v1/x":{"get":{"responses":{"200":{"schema":{"type":"file"}}}}}},"definitions":{"A":{"type":["object","null"],"required":["b"],"properties":{"b":{"$ref":"#/definitions/B"},"x-c":{"default":1}},"x-kubernetes-group-version-kind":[{"group":"a","version":"v1","kind":"A"}]},"B":{"items":[{"$ref":"#/definitions/A"}],"allOf":[{"maxLength":3}],"additionalProperties":false}},"parameters":{"p":{"in":"query","name":"q","type":"integer","maximum":1.5}}}"##,
    r##"{"paths":{"/apis/a/v1/x":{"get":{"responses":{"200":{"schema":{"$ref":"#/definitions/B"}}}}},"/apis/b/v1/y":{"get":{"responses":{"200":{"schema":{"$ref":"#/definitions/B"}}}}}},"definitions":{"B":{"not":{"oneOf":[{"$ref":"#/definitions/B"}]}},"B_v2":{}}}"##,
];

fn mutated(seeds: &[&str], random: &mut Random) -> Vec<u8> {
    let mut data = seeds[random.below(seeds.len())].as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(data.len() + 1);
        match random.below(6) {
            0 if random.below(4) == 0 => data.truncate(at),
            1 => data.insert(at, b"{}[]:,\"#/$0"[random.below(11)]),
            2 if at < data.len() => data[at] ^= 1 << random.below(8),
            3 => drop(data.drain(at..(at + random.below(30)).min(data.len()))),
            _ => {
                let other = seeds[random.below(seeds.len())].as_bytes();
                let from = random.below(other.len());
                let length = random.below((other.len() - from).min(60));
                data.splice(at..at, other[from..from + length].iter().copied());
            }
        }
    }
    data
}

#[test]
fn discovery_documents_hold() {
    assert!(DISCOVERY.iter().all(|seed| remote_documents::remote_discovery(seed.as_bytes())));
    let mut random = Random::default();
    for _ in 0..ROUNDS {
        remote_documents::remote_discovery(&mutated(&DISCOVERY, &mut random));
    }
}

#[test]
fn openapi_documents_hold() {
    assert!(OPENAPI.iter().all(|seed| remote_documents::remote_openapi(seed.as_bytes())));
    let mut random = Random::default();
    for _ in 0..ROUNDS {
        remote_documents::remote_openapi(&mutated(&OPENAPI, &mut random));
    }
}
