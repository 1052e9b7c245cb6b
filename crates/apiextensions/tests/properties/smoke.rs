//! Runs the fuzz targets on generated inputs: valid inputs, cut, spliced and with bytes changed.

#[path = "../../../../fuzz/src/definition.rs"]
mod definition;
#[path = "../../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../../fuzz/src/structural.rs"]
pub(crate) mod structural;

use random::Random;

const ROUNDS: u32 = 3_000;

/// Schemas and objects that use all features of schemas.
const CORPUS: [&str; 5] = [
    r#"{"schema":{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{
        "a":{"type":"string","pattern":"^[a-z]+$","maxLength":5,"default":"x"},"n":{"type":"integer","format":"int32","minimum":1,
        "maximum":9,"multipleOf":2},"d":{"type":"string","format":"date-time"},"e":{"type":"string","enum":["p","q"]}}}}},
        "object":{"apiVersion":"g/v","kind":"K","metadata":{"name":"n"},"spec":{"a":"abc","n":4,"x":[{}],"e":"p"}},
        "old":{"spec":{"a":"ABC","n":5}}}"#,
    r#"{"schema":{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map",
        "x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"number",
        "maximum":1.5,"nullable":true}}}},"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"},
        "minItems":1,"maxItems":3}}},"object":{"l":[{"k":"1","v":null},{"k":"2","v":7}],"s":["a","a"]},
        "old":{"l":[{"k":"2","v":7}],"s":["a","a"]}}"#,
    r#"{"schema":{"type":"object","properties":{"p":{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true},"i":{"x-kubernetes-int-or-string":true},"m":{"type":"object",
        "additionalProperties":{"type":"object","properties":{"z":{"type":"boolean","default":true}}}}}},
        "object":{"p":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n","labels":{"a":1}},"q":1},"i":"5%","m":{"a":{},"b":null}},
        "old":{}}"#,
    r#"{"schema":{"type":"object","properties":{"status":{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],
        "oneOf":[{"properties":{"a":{"enum":[1]}}},{"not":{"required":["c"]}}],"allOf":[{"maxProperties":2}],
        "properties":{"a":{"type":"integer"},"b":{"type":"string","format":"email"},"c":{"type":"string","format":"uri"}}}}},
        "object":{"status":{"a":2,"b":"x","c":"y"}},"old":{"status":{"a":2}}}"#,
    r#"{"schema":{"type":"object","x-kubernetes-validations":[{"rule":"self.n > oldSelf.n","message":"m"}],"properties":{
        "n":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","messageExpression":"string(self)"}]},
        "l":{"type":"array","maxItems":3,"items":{"type":"string","x-kubernetes-validations":[{"rule":"self.matches('^a')",
        "reason":"FieldValueForbidden"}]}}}},"object":{"n":1,"l":["a","b"]},"old":{"n":1,"l":["b"]}}"#,
];

/// Definitions that use all features of definitions.
const DEFINITIONS: [&str; 3] = [
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
        "spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing",
        "listKind":"ThingList","shortNames":["th"],"categories":["all"]},"versions":[{"name":"v1","served":true,"storage":true,
        "deprecated":true,"deprecationWarning":"old","schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{
        "type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":5,"default":"x"},"n":{"type":"integer",
        "x-kubernetes-validations":[{"rule":"self > 1","message":"m","reason":"FieldValueInvalid"}]}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},"subresources":{"status":{},
        "scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n","labelSelectorPath":".status.s"}},
        "additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a","priority":1}],
        "selectableFields":[{"jsonPath":".spec.a"}]}]}}"#,
    r#"{"metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"a","kind":"A"},
        "conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{
        "namespace":"n","name":"s","path":"/p","port":443}}}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{
        "openAPIV3Schema":{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map",
        "x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},
        "i":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}}},{"name":"v1beta1",
        "served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    r#"{"metadata":{"name":"a.b.k8s.io","annotations":{"api-approved.kubernetes.io":"https://a/1"}},"spec":{"group":"b.k8s.io",
        "scope":"Cluster","names":{"plural":"a","kind":"A"},"preserveUnknownFields":false,"versions":[{"name":"v1","served":true,
        "storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-embedded-resource":false,"properties":{"m":{
        "type":"object","additionalProperties":{"type":"string","pattern":"^a+$","nullable":true}},"e":{"type":"object",
        "x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"d":{"type":"object",
        "default":{"x":1},"properties":{"x":{"type":"integer","minimum":1}}}}}}}]}}"#,
];

/// The starts of values and members, so that most splices are valid JSON.
fn cuts(text: &str) -> Vec<usize> {
    text.match_indices(['{', '[', ',', ':', '"']).map(|(at, _)| at).collect()
}

fn smoke(corpus: &[&str], target: fn(&[u8])) {
    const VALUES: [&str; 12] = [
        "null",
        "1",
        "1.5",
        "-1e300",
        "\"\"",
        "\"a\"",
        "{}",
        "[]",
        "true",
        "[null]",
        "{\"a\":{}}",
        "99999999999999999999",
    ];
    let mut random = Random::default();
    for seed in corpus {
        target(seed.as_bytes());
    }
    for _ in 0..ROUNDS {
        let mut text = corpus[random.below(corpus.len())].to_owned();
        for _ in 0..=random.below(3) {
            let places = cuts(&text);
            let at = places[random.below(places.len())] + 1;
            let end = text[at..].find([',', '}', ']', ':']).map_or(text.len(), |length| at + length);
            match random.below(4) {
                0 => text.replace_range(at..end, VALUES[random.below(VALUES.len())]),
                1 => text.replace_range(at..end, ""),
                2 => text.insert_str(at, VALUES[random.below(VALUES.len())]),
                _ => {
                    let from = places[random.below(places.len())];
                    let length =
                        text[from..].char_indices().map(|(at, _)| at).nth(random.below(40)).unwrap_or(0);
                    let piece = text[from..from + length].to_owned();
                    text.insert_str(at, &piece);
                }
            }
        }
        target(text.as_bytes());
    }
}

#[test]
fn schemas_hold() {
    smoke(&CORPUS, structural::schema);
}

#[test]
fn values_hold() {
    smoke(&CORPUS, structural::values);
}

#[test]
fn definitions_hold() {
    for seed in DEFINITIONS {
        assert!(definition::definition(seed.as_bytes()), "{seed}");
    }
    smoke(&DEFINITIONS, |data| _ = definition::definition(data));
}

#[test]
fn hostile_schemas_are_refused_or_bounded() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{}{}{}", open.repeat(depth), "{}", close.repeat(depth))
    };
    for (open, close) in [
        (r#"{"items":"#, "}"),
        (r#"{"not":"#, "}"),
        (r#"{"allOf":["#, "]}"),
        (r#"{"properties":{"a":"#, "}}"),
        (r#"{"additionalProperties":"#, "}"),
    ] {
        for depth in [10, 120, 100_000] {
            structural::schema(nested(open, close, depth).as_bytes());
        }
    }
    let pattern = r#"{"schema":{"type":"object","properties":{"a":{"type":"string","pattern":"((a{100}){100}){100}"}}},"object":{"a":"a"}}"#;
    structural::values(pattern.as_bytes());
    let text = "a".repeat(50_000);
    let slow = format!(
        r#"{{"schema":{{"type":"object","properties":{{"a":{{"type":"string","pattern":"^(a|a|aa)*$"}}}}}},"object":{{"a":"{text}b"}}}}"#
    );
    structural::values(slow.as_bytes());
}

/// A pairwise comparison of the entries would take a hundred million steps each.
#[test]
fn long_lists_of_definitions_are_gone_through_once() {
    const ENTRIES: usize = 15_000;
    let list = |entry: &dyn Fn(usize) -> String| (0..ENTRIES).map(entry).collect::<Vec<_>>().join(",");
    let names = list(&|at| format!("\"a{at}\""));
    let properties = list(&|at| format!(r#""a{at}":{{"type":"string"}}"#));
    let version = |schema: &str| {
        format!(
            r#""versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]"#
        )
    };
    let items = format!(r#"{{"type":"object","required":[{names}],"properties":{{{properties}}}}}"#);
    let map = |keys: &str, items: &str| {
        let list = format!(
            r#"{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{keys}],"items":{items}}}"#
        );
        version(&format!(r#"{{"type":"object","properties":{{"list":{list}}}}}"#))
    };
    let review = format!(
        r#""conversion":{{"strategy":"Webhook","webhook":{{"conversionReviewVersions":["v1",{names}],"clientConfig":{{"url":"https://a.b/c"}}}}}}"#
    );
    // The maximum number.
    let versions = (0..1000).map(|at| {
        let schema = format!(r#"{{"type":"object","properties":{{"a{at}":{{"type":"string"}}}}}}"#);
        format!(
            r#"{{"name":"v{at}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{schema}}}}}"#,
            at == 1
        )
    });
    let versions = versions.collect::<Vec<_>>().join(",");
    for (spec, is_accepted) in [
        (format!("{review},{}", version(r#"{"type":"object"}"#)), true),
        (map(&names, &items), true),
        (map(&names, r#"{"type":"object"}"#), false),
        (format!(r#""versions":[{versions}]"#), true),
    ] {
        let text = format!(
            r#"{{"metadata":{{"name":"as.b.c"}},"spec":{{"group":"b.c","scope":"Cluster","names":{{"plural":"as","kind":"A"}},{spec}}}}}"#
        );
        assert_eq!(definition::definition(text.as_bytes()), is_accepted, "{}", &text[..200]);
    }
}
