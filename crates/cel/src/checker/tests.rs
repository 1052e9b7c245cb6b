use crate::types::{ObjectTypes, Type};
use crate::{Activation, Environment};
use std::sync::Arc;

fn environment() -> Environment {
    let mut types = ObjectTypes::default();
    let field = |name: &str, of_field: &str| (name.into(), Type::parse(of_field).unwrap());
    types.insert(
        "Self",
        [
            field("n", "int"),
            field("s", "string"),
            field("b", "bool"),
            field("d", "timestamp"),
            field("l", "list(string)"),
            field("m", "map(string, int)"),
            field("x", "dyn"),
        ]
        .into_iter()
        .chain([("o".into(), Type::object("Self"))]),
    );
    Environment::new()
        .with_types(Arc::new(types))
        .with_variable("self", Type::object("Self"))
        .with_variable("oldSelf", Type::optional(Type::object("Self")))
}

#[test]
fn expressions_have_the_types_of_their_results() {
    for (source, expected) in [
        ("1", "int"),
        ("1u", "uint"),
        ("1.5e3", "double"),
        ("-1", "int"),
        ("--1", "int"),
        ("b'a'", "bytes"),
        ("null", "null"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[1, 2]", "list(int)"),
        ("[[], [1]]", "list(list(int))"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("self", "Self"),
        ("self.n + 1", "int"),
        ("self.n < 1.5", "bool"),
        ("self.n == 1 && self.s != 'a' || !self.b", "bool"),
        ("self.o.o.l", "list(string)"),
        ("self.l[0]", "string"),
        ("self.m['a']", "int"),
        ("self.m.a", "int"),
        ("self.x.y.z", "dyn"),
        ("self.x + 1", "int"),
        ("self.x + self.x", "dyn"),
        ("self.b ? 1 : 2", "int"),
        ("self.b ? dyn(1) : 'a'", "dyn"),
        ("has(self.o.n)", "bool"),
        ("self.l.all(x, x.size() > 1)", "bool"),
        ("self.l.exists(i, x, i > 0 && x == 'a')", "bool"),
        ("self.l.exists_one(x, x == 'a')", "bool"),
        ("self.l.existsOne(i, x, x == 'a')", "bool"),
        ("self.l.map(x, x.size())", "list(int)"),
        ("self.l.map(x, x != '', x.size())", "list(int)"),
        ("self.l.filter(x, x != '')", "list(string)"),
        ("self.m.map(k, k)", "list(string)"),
        ("self.m.transformList(k, v, k + string(v))", "list(string)"),
        ("self.m.transformMap(k, v, v > 0, k)", "map(string, string)"),
        ("self.m.transformMapEntry(k, v, {v: k})", "map(int, string)"),
        ("self.l.sortBy(x, x.size())", "list(string)"),
        ("self.?o.n", "optional_type(int)"),
        ("self.?o.?n.orValue(1)", "int"),
        ("self.l[?0]", "optional_type(string)"),
        ("oldSelf.n", "optional_type(int)"),
        ("oldSelf.optMap(o, o.n + 1)", "optional_type(int)"),
        ("oldSelf.optFlatMap(o, o.?s)", "optional_type(string)"),
        ("[?oldSelf.s, 'a']", "list(string)"),
        ("{?'a': oldSelf.s}", "map(string, string)"),
        ("optional.none()", "optional_type(dyn)"),
        ("optional.of(1).or(optional.none())", "optional_type(int)"),
        ("type(1)", "type(int)"),
        ("type(1) == int", "bool"),
        ("timestamp('2020-01-01T00:00:00Z') - self.d", "duration"),
        ("google.protobuf.Timestamp", "type(timestamp)"),
        ("quantity('1').add(quantity('2')).asInteger()", "int"),
        ("sign(quantity('1'))", "int"),
        ("ip('::1').family()", "int"),
        ("ip.isCanonical('::1')", "bool"),
        ("cidr('10.0.0.0/8').ip()", "net.IP"),
        ("string(cidr('10.0.0.0/8'))", "string"),
        ("format.dns1123Label().validate('a')", "optional_type(list(string))"),
        ("semver('1.2.3').major()", "int"),
        ("url('https://a').getQuery()", "map(string, list(string))"),
        ("self.l.sort()", "list(string)"),
        ("self.l.max()", "string"),
        ("[1, 2].sum()", "int"),
        ("[[1], [2]].flatten()", "list(int)"),
        ("lists.range(3)", "list(int)"),
        ("sets.contains([1], [2])", "bool"),
        ("'%s %d'.format(['a', 1])", "string"),
        ("'a' in self.l && 'b' in self.m", "bool"),
        ("self.o == null", "bool"),
        (".self.n", "int"),
    ] {
        let compiled = environment().compile(source);
        match compiled {
            Ok(program) => assert_eq!(program.result_type().to_string(), expected, "{source}"),
            Err(errors) => panic!("{source}: {errors}"),
        }
    }
}

#[test]
fn errors_say_what_does_not_fit_and_where() {
    for (source, expected) in [
        ("foo.bar", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo.bar\n | ^"),
        ("self.zzz > 1", "ERROR: <input>:1:5: undefined field 'zzz'\n | self.zzz > 1\n | ....^"),
        (
            "self.n == 'a'",
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'\n | self.n == 'a'\n | .......^",
        ),
        (
            "self.s.frobnicate()",
            "ERROR: <input>:1:18: undeclared reference to 'frobnicate' (in container '')\n | self.s.frobnicate()\n | .................^",
        ),
        (
            "quantity('1').sign()",
            "ERROR: <input>:1:19: found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'\n | quantity('1').sign()\n | ..................^",
        ),
        (
            "cel.bind(x, 1, x)",
            "ERROR: <input>:1:1: undeclared reference to 'cel' (in container '')\n | cel.bind(x, 1, x)\n | ^\nERROR: <input>:1:9: undeclared reference to 'bind' (in container '')\n | cel.bind(x, 1, x)\n | ........^\nERROR: <input>:1:10: undeclared reference to 'x' (in container '')\n | cel.bind(x, 1, x)\n | .........^\nERROR: <input>:1:16: undeclared reference to 'x' (in container '')\n | cel.bind(x, 1, x)\n | ...............^",
        ),
        ("[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"),
        (
            "{'a': 1, 2: 2}",
            "ERROR: <input>:1:10: expected type 'string' but found 'int'\n | {'a': 1, 2: 2}\n | .........^",
        ),
        (
            "self.n && true",
            "ERROR: <input>:1:5: expected type 'bool' but found 'int'\n | self.n && true\n | ....^",
        ),
        (
            "self.n.all(x, true)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.n.all(x, true)\n | ....^",
        ),
        (
            "self.n.y",
            "ERROR: <input>:1:7: type 'int' does not support field selection\n | self.n.y\n | ......^",
        ),
        (
            "'世' +\n 1",
            "ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(string, int)'\n | '世' +\n | .\u{ff0e}..^",
        ),
        (
            "timestamp('yesterday') < self.d",
            "ERROR: <input>:1:11: invalid timestamp argument\n | timestamp('yesterday') < self.d\n | ..........^",
        ),
        (
            "self.s.matches('[a-')",
            "ERROR: <input>:1:16: invalid matches argument\n | self.s.matches('[a-')\n | ...............^",
        ),
        (
            "duration('1 day') > duration('1h')",
            "ERROR: <input>:1:10: invalid duration argument\n | duration('1 day') > duration('1h')\n | .........^",
        ),
        (
            "duration(5) == duration('5s')",
            "ERROR: <input>:1:10: invalid duration argument\n | duration(5) == duration('5s')\n | .........^",
        ),
        (
            "timestamp('0000-01-01T00:00:00Z') < self.d",
            "ERROR: <input>:1:11: invalid timestamp argument\n | timestamp('0000-01-01T00:00:00Z') < self.d\n | ..........^",
        ),
        // `existsOne` with one variable is not among the standard macros.
        (
            "self.l.existsOne(1, true)",
            "ERROR: <input>:1:17: undeclared reference to 'existsOne' (in container '')\n | self.l.existsOne(1, true)\n | ................^",
        ),
        (
            "[1, dyn(2)]",
            "ERROR: <input>:1:8: expected type 'int' but found 'dyn'\n | [1, dyn(2)]\n | .......^",
        ),
        ("type(1){}", "ERROR: <input>:1:8: Syntax error: extraneous input '{' expecting <EOF>"),
        ("self{}", "ERROR: <input>:1:5: 'Self' is not a type\n | self{}\n | ....^"),
        ("int{}", "ERROR: <input>:1:4: 'int' is not a message type\n | int{}\n | ...^"),
    ] {
        let errors = environment().compile(source).expect_err(source).to_string();
        if !expected.contains("Syntax") {
            assert_eq!(errors, expected, "{source}");
        }
    }
}

#[test]
fn what_doubles_with_every_step_is_refused_in_time() {
    let mut types = "[1]".to_owned();
    let mut variables = "[[]]".to_owned();
    let mut copies = "optional.of(1)".to_owned();
    for _ in 0..60 {
        types.push_str(".map(x, {x: x})");
        variables.push_str(".map(x, {x: x, x: [x]})");
        copies.push_str(".optMap(x, x)");
    }
    for source in [types, variables, copies] {
        environment().compile(&source).expect_err(&source);
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{1:", "1", "}"),
        ("-(", "1", ")"),
        ("!(", "true", ")"),
        ("true ? 1 : ", "1", ""),
        ("1 + (", "1", ")"),
        ("size(", "1", ")"),
        ("[1].map(x, ", "1", ")"),
        ("[1].all(x, ", "true", ")"),
        ("[1].exists_one(x, ", "true", ")"),
        ("[1].map(x, x > 0, [1].transformMap(k, v, v > 0,", "1", "))"),
        ("[1][", "0", "]"),
    ] {
        for depth in [100, 249, 251, 1_000, 5_000] {
            let source = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            let compiled = environment().compile(&source);
            if depth < 250 {
                let Ok(program) = compiled else { continue };
                // The evaluation must not overflow the stack, whatever its result.
                drop(program.evaluate(&Activation::new(), &mut 1_000_000));
            } else {
                let errors = compiled.expect_err(&source).to_string();
                assert!(
                    errors.contains("expression recursion limit exceeded: 250")
                        || errors.contains("max recursion depth exceeded")
                        || errors.contains("size exceeds limit"),
                    "{errors}"
                );
            }
        }
    }
    let long = format!("self{}", ".o".repeat(250));
    environment().compile(&long).unwrap();
    let errors = environment().compile(&format!("{long}.o")).unwrap_err();
    assert_eq!(errors.to_string(), "ERROR: <input>:-1:0: max recursion depth exceeded");
    let terms = vec!["self.b"; 5_000].join(" && ");
    environment().compile(&terms).unwrap();
}
