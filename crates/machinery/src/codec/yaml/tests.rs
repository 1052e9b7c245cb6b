use pintle_schema::{Schema, SchemaRef};
use pintle_tree::{Value, json};

use super::*;

fn kind(group: &str, version: &str, kind: &str) -> SchemaRef<'static> {
    Schema::builtin().by_kind(group, version, kind).unwrap()
}

fn json_of(text: &str) -> Result<String, String> {
    to_json(text.as_bytes())
        .map(|converted| String::from_utf8(converted.json).unwrap())
        .map_err(|error| error.to_string())
}

#[test]
fn scalars_resolve_as_in_yaml_1_1() {
    for (text, expected) in [
        ("y", "true"),
        ("No", "false"),
        ("on", "true"),
        ("OFF", "false"),
        ("'yes'", "\"yes\""),
        ("\"no\"", "\"no\""),
        ("yEs", "\"yEs\""),
        ("~", "null"),
        ("Null", "null"),
        ("", "null"),
        ("5", "5"),
        ("-5", "-5"),
        ("+5", "5"),
        ("010", "8"),
        ("08", "8"),
        ("0o17", "15"),
        ("0x1F", "31"),
        ("0b101", "5"),
        ("-0b11", "-3"),
        ("1_000", "1000"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "18446744073709552000"),
        ("1.0", "1"),
        ("1.5e3", "1500"),
        (".5", "0.5"),
        ("1e400", "\"1e400\""),
        ("1:30", "\"1:30\""),
        ("2024-01-02", "\"2024-01-02\""),
        ("2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\""),
        ("1.2.3", "\"1.2.3\""),
        ("- a", "[\"a\"]"),
        ("!!str 5", "\"5\""),
        ("!!int '5'", "5"),
        ("!!float 5", "5"),
        ("!!binary aGk=", "\"hi\""),
        ("!mine 5", "\"5\""),
        ("|\n  a\n  b\n", "\"a\\nb\\n\""),
        (">-\n  a\n  b\n", "\"a b\""),
        ("\"a\\u00e9\\n\"", "\"aé\\n\""),
        ("{a: 1, 2: b, true: c, 1.5: d}", r#"{"1.5":"d","2":"b","a":1,"true":"c"}"#),
        ("a: 1\n---\nb: 2\n", r#"{"a":1}"#),
        ("# nothing\n", "null"),
        ("{\"a\":[1,\t{}]}", r#"{"a":[1,{}]}"#),
        ("a: |\n  text\n", r#"{"a":"text\n"}"#),
        ("a: |\n  text", r#"{"a":"text"}"#),
        ("a: >2\n  é\n  é", r#"{"a":"é é"}"#),
        ("a: |+\n  text", r#"{"a":"text"}"#),
        ("a: |\n  text\n# c", r#"{"a":"text\n"}"#),
        ("a: |\n  text\n ", r#"{"a":"text\n"}"#),
    ] {
        assert_eq!(json_of(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn anchors_and_merges_are_followed() {
    for (text, expected) in [
        ("{a: &x \"1\", b: *x}", r#"{"a":"1","b":"1"}"#),
        ("base: &b {x: 1, z: 2}\nc: {<<: *b, z: 3}\n", r#"{"base":{"x":1,"z":2},"c":{"x":1,"z":3}}"#),
        ("c: {<<: [{x: 1}, {x: 2, z: 2}]}", r#"{"c":{"x":1,"z":2}}"#),
        ("c: {'<<': 1}", r#"{"c":{"\u003c\u003c":1}}"#),
        ("{.inf: a, -.inf: b, .NaN: c}", r#"{"-.inf":"b",".inf":"a",".nan":"c"}"#),
        ("%YAML 1.1\n%TAG ! tag:x,2020:\n---\na: b", r#"{"a":"b"}"#),
    ] {
        assert_eq!(json_of(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_json_is_refused() {
    for (text, expected) in [
        ("a: &a [*a]", "yaml: anchor value contains itself"),
        ("{[1]: 2}", "yaml: invalid map key"),
        ("{~: 2}", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 2"),
        (
            "{~: [a, {b: true}]}",
            "unsupported map key of type: %!s(<nil>), key: <nil>, value: []interface {}{\"a\", map[interface {}]interface {}{\"b\":true}}",
        ),
        (
            "{9223372036854775808: x}",
            "unsupported map key of type: uint64, key: 0x8000000000000000, value: \"x\"",
        ),
        ("%YAML 1.2\n---\na: b", "yaml: found incompatible YAML document"),
        ("\n# c\n%YAML 3.0\n---\na: b", "yaml: line 2: found incompatible YAML document"),
        ("%YAML 1.1\n%YAML 1.1\n---\na: b", "yaml: line 1: found duplicate %YAML directive"),
        ("%FOO bar\n---\na: b", "yaml: found unknown directive name"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("c: {<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: \u{1}", "yaml: control characters are not allowed"),
        ("a: \u{ffff}", "yaml: control characters are not allowed"),
    ] {
        assert_eq!(json_of(text), Err(expected.to_owned()), "{text}");
    }
    for text in ["metadata: {name: num\n", "a: b: c", "*x", "a:\n\t- b", "[", "'a"] {
        assert!(json_of(text).is_err_and(|error| error.starts_with("yaml: ")), "{text}");
    }
    for (text, expected) in [
        (&b"a: \xff\0"[..], "invalid leading UTF-8 octet"),
        (b"a: \0\xff", "control characters are not allowed"),
        (b"a: \xe2\x82", "incomplete UTF-8 octet sequence"),
        (b"a: \xe2\x28\xa1", "invalid trailing UTF-8 octet"),
        (b"a: \xc0\x80", "invalid length of a UTF-8 sequence"),
        (b"a: \xed\xa0\x80", "invalid Unicode character"),
        (b"a: \xf4\x90\x80\x80", "invalid Unicode character"),
    ] {
        assert_eq!(to_json(text).unwrap_err().to_string(), format!("yaml: {expected}"));
    }
}

/// A block mapping in a mapping in a mapping…
fn nested(depth: usize) -> String {
    (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect()
}

#[test]
fn bombs_are_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let before = format!("*a{}", i - 1);
        text += &format!("a{i}: &a{i} [{}]\n", [before.as_str(); 9].join(", "));
    }
    assert_eq!(json_of(&text).unwrap_err(), "yaml: document contains excessive aliasing");
    assert!(json_of(&"[".repeat(5_000)).is_err());
    assert_eq!(json_of(&nested(1_000)).unwrap_err(), "yaml: exceeded max depth");
    assert!(json_of(&nested(100)).is_ok());
    assert!(json_of(&"- ".repeat(5_000)).is_err());
    assert!(json_of(&"{a: ".repeat(5_000)).is_err());
}

#[test]
fn problems_are_reported_sorted_and_duplicates_first() {
    let text = "kind: ConfigMap\nzoo: 1\nbar: 2\ndata:\n  b: x\n  b: z\n";
    let decoded = decode(text.as_bytes(), kind("", "v1", "ConfigMap")).unwrap();
    assert_eq!(decoded.value, json!({"kind": "ConfigMap", "data": {"b": "z"}}));
    assert_eq!(
        decoded.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "yaml: unmarshal errors:\n  line 6: key \"b\" already set in map",
            "unknown field \"bar\"",
            "unknown field \"zoo\""
        ]
    );
}

#[test]
fn wrong_types_are_told_as_for_json() {
    let error = decode(b"metadata: {name: num}\ndata: {n: 5}\n", kind("", "v1", "ConfigMap")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    );
}

fn yaml_of(value: &Value) -> String {
    String::from_utf8(encode_any(value)).unwrap()
}

#[test]
fn yaml_is_written_as_go_writes_it() {
    let long = "aaaaaaaaa ".repeat(10);
    for (value, expected) in [
        (json!("a"), "a\n"),
        (json!(null), "null\n"),
        (json!({}), "{}\n"),
        (json!([]), "[]\n"),
        (
            json!({"a": {}, "b": [], "c": null, "d": true, "e": 1.5, "f": -3}),
            "a: {}\nb: []\nc: null\nd: true\ne: 1.5\nf: -3\n",
        ),
        (json!({"a": [1, [2, 3], {"b": 1, "c": [4]}]}), "a:\n- 1\n- - 2\n  - 3\n- b: 1\n  c:\n  - 4\n"),
        (json!([[["x"]]]), "- - - x\n"),
        (
            json!([1e18, 1e19, 1.5e19]),
            "- 1000000000000000000\n- 10000000000000000000\n- 15000000000000000000\n",
        ),
        (json!([1e20, -1e19, 2.0]), "- 1e+20\n- -1e+19\n- 2\n"),
        (
            json!({"s": ["y", "no", "5", "1.5", "", "~", "null", "0x1", "1:30", "2024-01-01", "<<", ".5"]}),
            "s:\n- \"y\"\n- \"no\"\n- \"5\"\n- \"1.5\"\n- \"\"\n- \"~\"\n- \"null\"\n- \"0x1\"\n- \"1:30\"\n- \"2024-01-01\"\n- <<\n- \".5\"\n",
        ),
        (
            json!({"s": ["a: b", "a:b", "#a", "a #b", "a#b", "- a", "-a", "-", "'a", "\"a", "[a", "a]", "*a", "&a", "!a", "%a", "@a", "a,b", "? a", "?a", "---", " a", "a ", "a'b"]}),
            "s:\n- 'a: b'\n- a:b\n- '#a'\n- 'a #b'\n- a#b\n- '- a'\n- -a\n- '-'\n- '''a'\n- '\"a'\n- '[a'\n- a]\n- '*a'\n- '&a'\n- '!a'\n- '%a'\n- '@a'\n- a,b\n- '? a'\n- ?a\n- '---'\n- ' a'\n- 'a '\n- a'b\n",
        ),
        (
            json!({"s": "a\nb\n", "t": "a\nb", "u": "a\n\n", "v": " a\n", "w": "\n", "x": "a\tb\nc", "y": "a \nb"}),
            "s: |\n  a\n  b\nt: |-\n  a\n  b\nu: |+\n  a\n\nv: |2\n   a\nw: |2+\n\nx: \"a\\tb\\nc\"\n\"y\": \"a \\nb\"\n",
        ),
        (
            json!({"s": ["é", "\u{1f600}", "\u{7f}", "\u{feff}", "\t"]}),
            "s:\n- é\n- \"\\U0001F600\"\n- \"\\x7F\"\n- \"\\uFEFF\"\n- \"\\t\"\n",
        ),
        (
            json!({"a10": 1, "a2": 1, "a": 1, "B": 1, "1": 1, "true": 1, "_": 1, "": 1}),
            "\"\": 1\n_: 1\n\"1\": 1\nB: 1\na: 1\na2: 1\na10: 1\n\"true\": 1\n",
        ),
        (
            json!({"k": long.trim_end()}),
            "k: aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa\n  aaaaaaaaa aaaaaaaaa\n",
        ),
        (json!({"k": {"m": ["l1\n  l2\n"]}}), "k:\n  m:\n  - |\n    l1\n      l2\n"),
        (json!({"a\nb": 1}), "? |-\n  a\n  b\n: 1\n"),
        (json!({("x".repeat(129)): [1]}), &format!("? {}\n: - 1\n", "x".repeat(129))),
    ] {
        assert_eq!(yaml_of(&value), expected);
        let back = to_json(expected.as_bytes()).unwrap();
        assert_eq!(back.json, json::encode_any(&value), "{expected}");
    }
}

#[test]
fn keys_whose_order_goes_in_circles_are_all_written() {
    let keys = [
        "0", "1", "2", "l3", "l4", "7", "18", "l", "l2p", "l21", "l2", "", "l8", "l7", "l9", "9", "l92",
        "l93", "4", "l5", "l6",
    ];
    let value: Value = keys.iter().map(|key| ((*key).to_owned(), json!(1))).collect();
    let text = yaml_of(&value);
    assert_eq!(json_of(&text).map(|text| serde_json::from_str(&text).ok()), Ok(Some(value)));
}
