use super::{CannotWalk, JsonPath, Selected};
use crate::Value;
use pintle_tree::json;
use proptest::prelude::*;

fn object() -> Value {
    json!({
        "kind": "Tab",
        "spec": {
            "list": ["p", "q", "r"],
            "items": [
                {"k": "a", "v": 1, "on": true},
                {"k": "b", "v": 2, "f": 1.5},
                {"k": "b", "v": 3},
            ],
            "map": {"a": "1", "x.y": "2", "example.com/role": "db"},
            "none": null,
            "text": "hi",
        },
    })
}

/// The values that every node of a template selects, as one list; bytes are numbers.
fn select(template: &str) -> Result<Value, CannotWalk> {
    let object = object();
    let path = JsonPath::parse(template).unwrap_or_else(|error| panic!("{template}: {error}"));
    let found = path.find(&object)?;
    let plain = |selected: &Selected<'_>| match selected {
        Selected::Value(value) => (*value).clone(),
        Selected::Byte(byte) => json!(byte),
    };
    Ok(found.iter().map(|values| values.iter().map(plain).collect::<Value>()).collect())
}

#[test]
fn templates_select_what_the_go_library_selects() {
    for (template, expected) in [
        ("", json!([])),
        ("text", json!([["text"]])),
        ("{}", json!([[object()]])),
        ("{.kind}", json!([["Tab"]])),
        ("{$.kind}{@.kind}", json!([["Tab"], ["Tab"]])),
        ("kind: {.kind}!", json!([["kind: "], ["Tab"], ["!"]])),
        ("{ .kind }", json!([["Tab"]])),
        ("{.}", json!([[]])),
        ("{.nope.deeper}", json!([[]])),
        ("{.kind.deeper}", json!([[]])),
        ("{.spec.none}", json!([[null]])),
        ("{.spec.none.x}", json!([[]])),
        ("{.spec.none[0]}", json!([[]])),
        ("{.spec.list}", json!([[["p", "q", "r"]]])),
        ("{.spec.list[0]}", json!([["p"]])),
        ("{.spec.list[]}", json!([["p"]])),
        ("{.spec.list[-1]}", json!([["r"]])),
        ("{.spec.list[-1:]}", json!([["r"]])),
        ("{.spec.list[-2:-1]}", json!([["q"]])),
        ("{.spec.list[0:3:2]}", json!([["p", "r"]])),
        ("{.spec.list[::2]}", json!([["p", "r"]])),
        ("{.spec.list[:]}", json!([["p", "q", "r"]])),
        ("{.spec.list[*]}", json!([["p", "q", "r"]])),
        ("{.spec.list.*}", json!([["p", "q", "r"]])),
        ("{.spec.list[1:1]}", json!([[]])),
        ("{.spec.list[9:9]}", json!([[]])),
        ("{.spec.list[0,2]}", json!([["p", "r"]])),
        ("{.spec.list[0, -1]}", json!([["p", "r"]])),
        ("{.spec.map.x\\.y}", json!([["2"]])),
        ("{.spec.map['x\\.y']}", json!([["2"]])),
        ("{.spec.map['x.y']}", json!([[]])),
        ("{.spec.map['a']}", json!([["1"]])),
        ("{.spec.map['a','x\\.y']}", json!([["1", "2"]])),
        ("{.spec.map.example\\.com/role}", json!([["db"]])),
        ("{.spec.items[*].k}", json!([["a", "b", "b"]])),
        ("{.spec.items[*]['k','v']}", json!([["a", "b", "b", 1, 2, 3]])),
        ("{.spec.items[?(@.k==\"b\")].v}", json!([[2, 3]])),
        ("{.spec.items[?(@.k=='b')].v}", json!([[2, 3]])),
        ("{.spec.items[?(@.k != \"b\")].v}", json!([[1]])),
        ("{.spec.items[?(@.v>1)].v}", json!([[2, 3]])),
        ("{.spec.items[?(@.v<=2)].v}", json!([[1, 2]])),
        ("{.spec.items[?(@.on)].v}", json!([[1]])),
        ("{.spec.items[?(@.on==true)].v}", json!([[1]])),
        ("{.spec.items[?(@.f>=1.5)].v}", json!([[2]])),
        ("{.spec.items[?(@.k==\"a)]\")].v}", json!([[]])),
        ("{.spec.items[?(@.v==@.v)].k}", json!([["a", "b", "b"]])),
        ("{.spec.nope[?(@.v==1)]}", json!([[]])),
        ("{..k}", json!([["a", "b", "b"]])),
        ("{.spec..v}", json!([[1, 2, 3]])),
        ("{.spec.list..}", json!([[["p", "q", "r"], "p", "q", "r"]])),
        ("{.spec.text.*}", json!([[104, 105]])),
        ("{.kind 7}", json!([[7]])),
        ("{true}{-2}{+1.5}", json!([[true], [-2], [1.5]])),
        ("{'a\\'b'}{\"\\x41\\102\\u00e9\\n\"}", json!([["a'b"], ["ABé\n"]])),
        (
            "{range .spec.items[*]}{.k}{\"=\"}{.v}{end}",
            json!([["a"], ["="], [1], ["b"], ["="], [2], ["b"], ["="], [3]]),
        ),
        ("{range .spec.list[*]}{@}{end}{.kind}", json!([["p"], ["q"], ["r"], ["Tab"]])),
        ("{range .nope[*]}{@}{end}{.kind}", json!([["Tab"]])),
        (
            "{range .spec.items[0:2]}{range @.*}{@}{end}{.k}{end}{.kind}",
            json!([["a"], [true], [1], ["a"], [1.5], ["b"], [2], ["b"], ["Tab"]]),
        ),
    ] {
        assert_eq!(select(template), Ok(expected), "{template}");
    }
}

#[test]
fn walks_that_cannot_go_on_fail() {
    for template in [
        "{.spec[0]}",
        "{.spec.text[0]}",
        "{.spec.list[3]}",
        "{.spec.list[-4]}",
        "{.spec.list[2:1]}",
        "{.spec.list[0:2:0]}",
        "{.spec.list[0:2:-1]}",
        "{.spec.list[0,7]}",
        "{.spec[?(@.k)]}",
        "{.spec.none[?(@.k)]}",
        "{.spec.items[?(@.k==1)]}",
        "{.spec.items[?(@.v==1.5)]}",
        "{.spec.items[?(@.v=1)]}",
        "{.spec.items[?(@.on<true)]}",
        "{.spec.items[?(@.*==1)]}",
        "{.kind word}",
        "{end}",
        "{..[0]}",
    ] {
        assert_eq!(select(template), Err(CannotWalk), "{template}");
    }
}

#[test]
fn what_is_no_template_is_refused_in_the_words_of_kubernetes() {
    for (template, expected) in [
        ("{", "unclosed action"),
        ("{.a", "unclosed action"),
        ("{.a\n}", "unclosed action"),
        ("{*}", "unrecognized character in action: U+002A '*'"),
        ("{..*}", "unrecognized character in action: U+002A '*'"),
        ("{.a]}", "unrecognized character in action: U+005D ']'"),
        ("{{}", "unrecognized character in action: U+007B '{'"),
        ("{.a[0}", "unterminated array"),
        ("{.a[x]}", "invalid array index x"),
        ("{.a[1:2:3:4]}", "invalid array index 1:2:3:4"),
        ("{.a[-]}", "array index - is not a number"),
        ("{.a[99999999999999999999]}", "array index 99999999999999999999 is not a number"),
        ("{.a[?(@.b}", "unterminated filter"),
        ("{.a[?(@.b)}", "unclosed array expect ]"),
        ("{.a[?(@.b==)]}", "unrecognized character in action: U+003D '='"),
        ("{\"a}", "unterminated quoted string"),
        ("{\"\\q\"}", "unquote string \"\\q\" error invalid syntax"),
        ("{....}", "invalid multiple recursive descent"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
    ] {
        assert_eq!(JsonPath::parse(template), Err(expected.to_owned()), "{template}");
    }
}

#[test]
fn work_is_bounded() {
    let mut value = json!("x");
    for _ in 0..60 {
        value = json!({"a": value, "b": [1, 2, 3]});
    }
    let path = JsonPath::parse(&format!("{{{}}}", "..a".repeat(12))).unwrap();
    assert_eq!(path.find(&value), Err(CannotWalk));
    let path = JsonPath::parse(&"{range @}".repeat(100_000)).unwrap();
    assert_eq!(path.find(&value), Err(CannotWalk));
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(template in r#"[{}\[\]().*@$?'"\\a0:,=<|\-+ re\n]{0,40}"#) {
        if let Ok(path) = JsonPath::parse(&template) {
            let _ = path.find(&object());
        }
        if let Ok(path) = JsonPath::parse_path(&template) {
            let _ = path.first(&object());
        }
    }
}
