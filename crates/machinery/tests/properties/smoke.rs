//! Runs the fuzz targets on generated inputs: corpora of valid inputs, cut, spliced and with bytes changed.

#[path = "../../../../fuzz/src/continue_tokens.rs"]
pub(crate) mod continue_tokens;
#[path = "../../../../fuzz/src/json_paths.rs"]
pub(crate) mod json_paths;
#[path = "../../../../fuzz/src/managed_fields.rs"]
pub(crate) mod managed_fields;
#[path = "../../../../fuzz/src/patches.rs"]
pub(crate) mod patches;
#[path = "../../../../fuzz/src/pem_blocks.rs"]
mod pem_blocks;
#[path = "../../../../fuzz/src/quantities.rs"]
pub(crate) mod quantities;
#[path = "../../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../../fuzz/src/selectors.rs"]
pub(crate) mod selectors;

use random::Random;

const ROUNDS: u32 = 2_000;

fn smoke(target: fn(&[u8]), corpus: &[&str]) {
    let mut random = Random::default();
    for seed in corpus {
        target(seed.as_bytes());
    }
    for _ in 0..ROUNDS {
        let mut data = corpus[random.below(corpus.len())].as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(data.len() + 1);
            match random.below(4) {
                0 => data.truncate(at),
                1 => data.insert(at, random.below(256) as u8),
                2 if at < data.len() => data[at] = b"{}[]\",:=!()-0a$/\\"[random.below(17)],
                _ => {
                    let other = corpus[random.below(corpus.len())].as_bytes();
                    let from = random.below(other.len());
                    data.splice(at..at, other[from..].iter().copied());
                }
            }
            data.truncate(4096);
        }
        target(&data);
    }
}

#[test]
fn selectors_hold() {
    let corpus =
        ["a=b", "a in (b,c),!d", "x notin (),y>5,z<6", "a==b,c!=d", "metadata.name=a\\,b,spec.x!=c", "a.b/c"];
    smoke(selectors::label_selector, &corpus);
    smoke(selectors::field_selector, &corpus);
}

#[test]
fn pem_blocks_hold() {
    let corpus = [
        "-----BEGIN A B-----\nAAAA\nAAA=\n-----END A B-----\n",
        "x\n-----BEGIN C-----\r\nA: b\r\n\r\nAA AA\r\n-----END C----- \r\ny\n",
        "-----BEGIN -----\n-----END -----",
    ];
    smoke(pem_blocks::blocks, &corpus);
}

#[test]
fn json_paths_hold() {
    let corpus = [
        "{.spec.l[-1:]}\n{\"spec\":{\"l\":[1,2,3]}}",
        "{.a[?(@.k==\"b\")].v}\n{\"a\":[{\"k\":\"b\",\"v\":1},{\"k\":\"c\"}]}",
        "{range .a[*]}{..x}{\"\\t\"}{end}\n{\"a\":[{\"x\":[{\"x\":1}]},null]}",
        ".m['a\\.b','c'][0:4:2].*\n{\"m\":{\"a.b\":[true],\"c\":[1.5,\"x\"]}}",
    ];
    smoke(json_paths::json_path, &corpus);
}

#[test]
fn quantities_hold() {
    smoke(
        quantities::quantity,
        &["1", "1.5Gi", "-100m", "1e-3", "9223372036854775807", "0.0000000001", "8Ei", "+1E6"],
    );
}

#[test]
fn continue_tokens_hold() {
    let corpus = [
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJkZWZhdWx0L2FcdTAwMDAifQ",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9",
    ];
    smoke(continue_tokens::continue_token, &corpus);
}

#[test]
fn patches_hold() {
    let corpus = [
        r#"{"a":[1,{"b":null}]}
[{"op":"add","path":"/a/-","value":2},{"op":"move","from":"/a/0","path":"/c"}]"#,
        r#"{"a":{"b":1}}
[{"op":"copy","from":"/a","path":"/a/c"},{"op":"test","path":"","value":{}}]"#,
        r#"{"spec":{"containers":[{"name":"a"}]}}
{"spec":{"containers":[{"name":"a","$patch":"delete"},{"name":"b"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a"}]}}
{"spec":{"$setElementOrder/containers":[{"name":"a"}]}}"#,
        r#"{"metadata":{"finalizers":["a"]}}
{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}"#,
        r#"{"spec":{"volumes":[{"name":"v"}]}}
{"spec":{"volumes":[{"name":"v","$retainKeys":["name"]}]}}"#,
    ];
    smoke(patches::json_patch, &corpus);
    smoke(patches::merge_patch, &corpus);
    smoke(patches::strategic_patch, &corpus);
}

#[test]
fn managed_fields_hold() {
    let corpus = [
        r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{}}}}}"#,
        r#"{"f:a":{"v:1":{},"v:\"x\"":{},"i:0":{},"v:1.0":{}},"z:new":{"f:b":{}}}"#,
        r#"{".":{},"f:":{},"k:{}":{},"v:null":{}}"#,
        r#"{"f:a":{"v:1444444444444444444444444444444444444444444444444444444444444444444444444444":{},"v:-0.0":{}}}"#,
    ];
    smoke(managed_fields::fields_v1, &corpus);
}

#[test]
fn applies_hold() {
    let corpus = [
        r#"{"metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"}}
{"metadata":{"name":"a","finalizers":["a/b"]},"data":{"k":"w","l":null}}"#,
        r#"{"spec":{"containers":[{"name":"a","env":[{"name":"A","value":"1"}]},{"name":"b"}]}}
{"spec":{"containers":[{"name":"b","ports":[{"containerPort":80}]},{"name":"a","env":[]}]}}"#,
        r#"{"spec":{"ports":[{"port":80},{"port":443,"protocol":"UDP"}],"selector":{"a":"b"}}}
{"spec":{"ports":[{"port":443},{"port":80,"targetPort":"web"}]}}"#,
        r#"{"spec":{"replicas":0,"paused":false,"template":{"spec":{"nodeSelector":{}}}}}
{"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}}},"status":{"replicas":1}}"#,
        r#"{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m","memory":1}}}],"tolerations":[{}]}}
{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":1}}}],"tolerations":[]}}"#,
    ];
    smoke(managed_fields::apply, &corpus);
}
