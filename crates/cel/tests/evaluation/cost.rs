//! Tests the cost of expressions by the rules of <https://github.com/google/cel-go> (`interpreter/runtimecost.go`) and
//! of
//! Kubernetes' libraries.

use pintle_cel::types::Type;
use pintle_cel::{Activation, Environment, EvaluationError, Value};
use pintle_machinery::json;

fn cost(expression: &str) -> u64 {
    const LIMIT: u64 = 1_000_000;
    let object = json!({
        "s": "0123456789abcdefghij", "n": 5, "l": ["a", "b", "c"], "m": {"a": 1}, "o": {"p": {"q": 1}}, "k": "a",
        "empty": "",
    });
    let environment = Environment::new().with_variable("self", Type::Dyn).with_variable("t", Type::Bool);
    let program = environment.compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let activation = Activation::new().with("self", Value::from_json(&object)).with("t", Value::Bool(true));
    let mut budget = LIMIT;
    // Some rows end in errors.
    let _ = program.evaluate(&activation, &mut budget);
    LIMIT - budget
}

#[test]
fn costs_are_those_of_the_reference() {
    let rows = [
        // A variable costs 1, and so does each step of its path.
        ("true", 0),
        ("t", 1),
        ("self.n", 2),
        ("self.o.p.q", 4),
        ("self.l[0]", 3),
        // A computed step costs its computation, but not as a variable of its own.
        ("self.m[self.k]", 4),
        ("self.l[self.n - 4]", 6),
        ("[1, 2][0]", 2),
        // Presence tests cost only the steps.
        ("has(self.n)", 1),
        ("has(self.o.p)", 2),
        ("has(self.o.x)", 2),
        ("has((true ? {'a': {'b': 1}} : {}).a)", 0),
        ("has((true ? {'a': {'b': 1}} : {'a': {'b': 1}}).a.b)", 1),
        ("has((true ? {'a': {'b': 1}} : {'a': {'b': 1}})[?'a'].c)", 0),
        ("self.?o.?x.?y", 2),
        ("self.?o.?p.?q", 4),
        // Connectives are free, and so are operands that are not evaluated.
        ("t && t", 2),
        ("t || self.n > 1", 1),
        ("!t", 2),
        // A conditional costs its condition and the steps of the branch.
        ("t ? 1 : 2", 1),
        ("t ? self.n : 2", 2),
        ("t ? self.n + 1 : 2", 4),
        // Calls cost 1.
        ("self.n + 1", 3),
        ("-self.n", 3),
        ("size(self.s)", 3),
        // Literals of literals are free, others are not.
        ("[1, 2, 3]", 0),
        ("[self.n]", 12),
        ("{'a': 1}", 0),
        ("{'a': self.n}", 32),
        ("[[1], [2]]", 0),
        ("int('5') + 1", 1),
        // A comparison costs a tenth of the shorter side, rounded up.
        ("self.n == 5", 3),
        ("self.s == '0123456789'", 3),
        ("self.s == '01234567890'", 4),
        ("self.s == ''", 2),
        ("self.s != self.s", 6),
        ("self.s < '01234567890'", 4),
        ("string(self.s) < '01234567890'", 5),
        ("self.l == ['a', 'b', 'c']", 3),
        // Reading texts costs a tenth of their size too.
        ("string(self.s) + 'x'", 6),
        ("self.s.startsWith('0')", 4),
        ("self.s.contains('012345678901')", 6),
        ("self.s.matches('a')", 5),
        ("self.s.matches('abcdefgh')", 8),
        ("self.empty.matches('abcdefgh')", 4),
        ("matches(string(self.s), 'abcdefgh')", 4),
        ("self.s.find('abcdefgh')", 8),
        ("self.s.lowerAscii()", 4),
        ("self.s.replace('a', 'b')", 6),
        ("self.s.split('a')", 6),
        ("self.l.join('--')", 4),
        ("'%s'.format([self.n])", 13),
        // Membership among constants is free; among computed values every item is visited.
        ("self.n in [1, 2, 3]", 2),
        ("self.k in self.l", 5),
        ("self.k in [string(self.k)]", 16),
        ("'a' in self.m", 3),
        // all: per item 2 for the condition, 1 for the accumulator, the predicate; 1 for the result.
        ("[1, 2, 3].all(x, t)", 13),
        ("[1, 2, 3].all(x, x > 0)", 16),
        ("[1, 2, 3].exists(x, x == 3)", 19),
        ("[1, 2, 3].exists_one(x, x == 3)", 10),
        ("[1, 2, 3].map(x, x)", 40),
        ("[1, 2, 3].map(x, 1)", 7),
        ("[1, 2, 3].filter(x, x > 1)", 33),
        ("self.l.all(x, x != '')", 15),
        ("[].all(x, t)", 1),
        ("{'a': 1}.all(k, v, v > 0)", 6),
        ("{'a': 1}.transformMap(k, v, v)", 5),
        // Optionals.
        ("optional.of(1)", 1),
        ("optional.none()", 1),
        ("optional.of(1).orValue(2)", 1),
        ("optional.of(self.n).optMap(x, x + 1)", 11),
        // Kubernetes' libraries.
        ("[1, 2, 3].sum()", 3),
        ("['a', 'b'].isSorted()", 0),
        ("self.l.indexOf('c')", 2),
        ("quantity('10').isLessThan(quantity('20'))", 3),
        ("quantity('1') == quantity('1')", 3),
        ("ip('127.0.0.1').family()", 2),
        ("ip('127.0.0.1') == ip('127.0.0.1')", 3),
        ("ip('127.0.0.1') != ip('127.0.0.1')", 3),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16')", 6),
        ("url('https://example.com').getHost()", 3),
        ("format.dns1123Label().validate('abc')", 9),
        ("semver('1.2.3').major()", 2),
        // Extensions.
        ("sets.contains([1, 2, 3], [1, 2])", 7),
        ("sets.equivalent([1, 2], [1, 2])", 9),
        ("lists.range(5)", 16),
        ("[3, 1, 2].sort()", 29),
        ("['b', 'a'].sort()", 19),
        ("[1, 1].distinct()", 19),
        ("[[1], [2]].flatten()", 13),
        ("[1, 2, 3].slice(0, 2)", 13),
        ("[1, 2, 3].reverse()", 14),
        // Failed expressions have a cost too.
        ("self.x", 2),
        ("self.x.y.z", 2),
        ("1 / (self.n - 5)", 4),
        ("self.x == self.n || true", 5),
        ("self.s.replace(self.x, 'a') == '' || true", 4),
    ];
    let wrong: Vec<_> = rows
        .iter()
        .filter_map(|(expression, wanted)| {
            let found = cost(expression);
            (found != *wanted).then(|| format!("{expression}: wanted {wanted}, found {found}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn evaluation_ends_with_the_budget() {
    let environment = Environment::new();
    for (expression, cost) in [("[1, 2, 3].all(x, x > 0)", 16), ("lists.range(100).size()", 112)] {
        let program = environment.compile(expression).expect("it compiles");
        let mut budget = cost;
        assert!(program.evaluate(&Activation::new(), &mut budget).is_ok(), "{expression}");
        assert_eq!(budget, 0);
        let mut budget = cost - 1;
        let error = program.evaluate(&Activation::new(), &mut budget).expect_err("too dear");
        assert_eq!(error, EvaluationError::CostLimitExceeded);
        assert_eq!(error.to_string(), "operation cancelled: actual cost limit exceeded");
        assert_eq!(budget, 0);
    }
    // No operator absorbs this error.
    let program = environment.compile("[1, 2, 3].all(x, x > 0) || true").expect("it compiles");
    assert_eq!(program.evaluate(&Activation::new(), &mut 5).err(), Some(EvaluationError::CostLimitExceeded));
}

#[test]
fn what_would_take_too_much_ends_before_it_is_made() {
    let long = "x".repeat(100_000);
    let grow = |times: usize, first: &str, next: &str| {
        (0..times).fold(first.to_owned(), |list, _| format!("[{list}].map(x, {next})[0]"))
    };
    let rows = [
        "self.replace('', self).size() > 0".to_owned(),
        "lists.range(9000000000000000000).size() > 0".to_owned(),
        "('%.999999999f' + '').format([1.0]) == ''".to_owned(),
        "self.split('').join(self) == ''".to_owned(),
        format!("{}.size() > 0", grow(40, "[1]", "x + x")),
        format!("{}.sum() > 0", grow(25, "dyn([1])", "x + x")),
        format!("dyn({}).flatten(100).size() > 0", grow(40, "dyn([1])", "dyn([x, x])")),
        format!("{0} == {0}", grow(40, "dyn([1])", "dyn([x, x])")),
        format!("dyn({}).isSorted()", grow(40, "dyn([1])", "dyn([x, x])")),
        format!("'%s'.format([{}]) == ''", grow(40, "dyn([1])", "dyn([x, x])")),
    ];
    let environment = Environment::new().with_variable("self", Type::String);
    for expression in rows {
        let program = environment.compile(&expression).unwrap_or_else(|error| panic!("{error}"));
        let activation = Activation::new().with("self", Value::from(long.as_str()));
        let error = program.evaluate(&activation, &mut { 1_000_000 }).expect_err(&expression);
        assert_eq!(error, EvaluationError::CostLimitExceeded, "{expression}");
    }
}

/// A list that is made of one constant per item has no depth: the stack of this thread would not suffice for it.
#[test]
fn long_lists_of_one_constant_are_flat() {
    let environment = Environment::new();
    for (expression, expected) in [
        ("lists.range(20000).map(x, 'a').size()", 20_000),
        ("lists.range(20000).map(x, 'a').join().size()", 20_000),
        ("lists.range(20000).transformList(i, x, 'a').size()", 20_000),
        ("lists.range(20000).map(x, x % 2 == 0, 'a').size()", 10_000),
    ] {
        let program = environment.compile(expression).unwrap_or_else(|error| panic!("{error}"));
        let value = program.evaluate(&Activation::new(), &mut { 10_000_000 }).expect(expression);
        assert!(matches!(value, Value::Int(size) if size == expected), "{expression}: {value:?}");
    }
}
