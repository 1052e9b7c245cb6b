//! The fuzz targets on inputs made by a fixed rule: valid inputs, cut, spliced and with bytes changed.

#[path = "../../../../fuzz/src/structural.rs"]
pub(crate) mod structural;

const ROUNDS: u32 = 3_000;

/// Schemas and objects with everything that schemas may have.
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

/// Where values and members begin, so that most splices are JSON again.
fn cuts(text: &str) -> Vec<usize> {
    text.match_indices(['{', '[', ',', ':', '"']).map(|(at, _)| at).collect()
}

fn smoke(target: fn(&[u8])) {
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
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for seed in CORPUS {
        target(seed.as_bytes());
    }
    for _ in 0..ROUNDS {
        let mut text = CORPUS[random.below(CORPUS.len())].to_owned();
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
    smoke(structural::schema);
}

#[test]
fn values_hold() {
    smoke(structural::values);
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
