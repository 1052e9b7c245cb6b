//! Tests of compilation and evaluation together.

use super::*;
use futures_util::FutureExt;
use pintle_cel::{Authority, AuthorizationCheck, AuthorizationDecision, ResourceCheck};
use pintle_machinery::{GroupVersionKind, GroupVersionResource, UserInfo, Value, json};
use pintle_offload::{Pace, is_on_worker, scope};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const STORED: EnvironmentType = EnvironmentType::StoredExpressions;
const ALL: OptionalVariables = OptionalVariables { params: true, authorizer: true };

/// Allows what it is asked the second time; the first time the decision is pending.
#[derive(Default)]
struct Late(AtomicUsize);

impl Authority for Late {
    fn check(&self, _check: &AuthorizationCheck) -> Option<AuthorizationDecision> {
        let decision = AuthorizationDecision { allowed: true, ..AuthorizationDecision::default() };
        (self.0.fetch_add(1, Ordering::Relaxed) > 0).then_some(decision)
    }
}

/// Runs an evaluation to its end.
fn finish<T>(evaluation: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(evaluation)
}

/// Evaluates an expression with variables and an input in a budget; the result as text, and the rest of the budget.
fn evaluate_in(
    budget: u64,
    variables: &[(&str, &str)],
    expression: &str,
    input: &Input<'_>,
) -> (Result<String, String>, u64) {
    let mut compiler = Compiler::with_variables();
    let set = compiler.compile_variables(variables.iter().copied(), ALL);
    let expression = compiler.compile(expression, STORED, ALL, Returns::Anything);
    let values = Variables::new(&set);
    let mut pace = Pace::new();
    let mut evaluation = Evaluation::new(input, &values, budget, &mut pace);
    let value = finish(evaluation.evaluate(&expression));
    let value = value.map(|value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => format!("{value:?}"),
    });
    (value.map_err(|failure| failure.to_string()), evaluation.budget())
}

fn evaluate(variables: &[(&str, &str)], expression: &str, input: &Input<'_>) -> Result<String, String> {
    evaluate_in(POLICY_BUDGET, variables, expression, input).0
}

fn error(expression: &str, optional: OptionalVariables, returns: Returns<'_>) -> String {
    let expression = Compiler::with_variables().compile(expression, STORED, optional, returns);
    expression.error().expect("it does not compile").to_string()
}

#[test]
fn errors_of_compilation_have_the_texts_of_the_reference() {
    let none = OptionalVariables::default();
    for (expression, optional, returns, expected) in [
        ("1", none, Returns::BOOL, "must evaluate to bool but got int"),
        ("null", none, Returns::BOOL, "must evaluate to bool but got null_type"),
        ("object.x", none, Returns::BOOL, "must evaluate to bool but got dyn"),
        ("[true]", none, Returns::BOOL, "must evaluate to bool but got list(bool)"),
        // The type is checked before the pattern is compiled.
        ("object.x.find('[')", none, Returns::BOOL, "must evaluate to bool but got string"),
        ("1", none, Returns::STRING_OR_NULL, "must evaluate to one of [string null_type] but got int"),
        (
            "authorizer.path('/x')",
            ALL,
            Returns::BOOL,
            "must evaluate to bool but got kubernetes.authorization.PathCheck",
        ),
        (
            "params == null",
            none,
            Returns::BOOL,
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n \
             | params == null\n | ^",
        ),
        (
            "request.nope == 1",
            none,
            Returns::BOOL,
            "compilation failed: ERROR: <input>:1:8: undefined field 'nope'\n | request.nope == 1\n | .......^",
        ),
        (
            "variables.x",
            none,
            Returns::BOOL,
            "compilation failed: ERROR: <input>:1:10: undefined field 'x'\n | variables.x\n | .........^",
        ),
    ] {
        assert_eq!(error(expression, optional, returns), expected, "{expression}");
    }
    let without = Compiler::new().compile("variables.x", STORED, none, Returns::BOOL);
    assert!(
        without
            .error()
            .is_some_and(|error| error.to_string().contains("undeclared reference to 'variables'"))
    );
}

#[test]
fn mutations_construct_objects_and_patches() {
    let none = OptionalVariables::default();
    let error = |source: &str, returns: Returns<'_>| {
        let expression = Compiler::with_variables().compile_mutation(source, STORED, none, returns);
        expression.error().map(ToString::to_string).unwrap_or_default()
    };
    for (source, expected) in [
        ("Object{spec: Object.spec{nope: 'x'}}", ""),
        ("has(object.data) ? Object{data: {'a': 'b'}} : Object{}", ""),
        ("Object.spec{}", "must evaluate to Object but got Object.spec"),
        ("{'data': {'a': 'b'}}", "must evaluate to Object but got map(string, map(string, string))"),
        ("null", "must evaluate to Object but got null_type"),
    ] {
        assert_eq!(error(source, Returns::configuration()), expected, "{source}");
    }
    for (source, expected) in [
        ("[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/b'), value: request.name}]", ""),
        ("object.a.map(a, JSONPatch{op: 'remove', path: a})", ""),
        ("[]", "must evaluate to list(JSONPatch) but got list(dyn)"),
        ("JSONPatch{}", "must evaluate to list(JSONPatch) but got JSONPatch"),
    ] {
        assert_eq!(error(source, Returns::json_patch()), expected, "{source}");
    }
    let other = Compiler::new().compile("Object{} == Object{}", STORED, none, Returns::BOOL);
    assert!(
        other.error().is_some_and(|error| error.to_string().contains("undeclared reference to 'Object'"))
    );
}

#[test]
fn variables_have_the_types_of_their_results() {
    let mut compiler = Compiler::with_variables();
    let variables = [("n", "size(object.x)"), ("l", "[{'a': 1}]"), ("q", "quantity('1')"), ("bad", "nope")];
    compiler.compile_variables(variables, ALL);
    let check = |source: &str, expected: &str| {
        let expression = compiler.compile(source, STORED, ALL, Returns::Anything);
        assert_eq!(expression.result_type().map(ToString::to_string).as_deref(), Some(expected), "{source}");
    };
    check("variables.n", "int");
    check("variables.l", "list(map(string, int))");
    check("variables.q", "dyn");
    check("variables.bad", "dyn");
}

#[test]
fn variables_are_lazy_and_shared() {
    let object = json!({"items": (0..1000).collect::<Vec<_>>()});
    let input = Input { object: Some(&object), ..Input::default() };
    let variables = [("sum", "object.items.map(x, x + 1).size()"), ("bad", "object.none")];
    assert_eq!(evaluate(&variables, "string(variables.sum)", &input), Ok("1000".to_owned()));
    let cost = |expression: &str| {
        let (value, rest) = evaluate_in(POLICY_BUDGET, &variables, expression, &input);
        assert!(value.is_ok(), "{value:?}");
        POLICY_BUDGET - rest
    };
    let once = cost("variables.sum > 0");
    assert!(once > 1000);
    // The second read costs its selection only; a variable that is not read costs nothing.
    assert!(cost("variables.sum > 0 && variables.sum > 1") < once + 10);
    assert!(cost("true || variables.sum > 0") < 10);
    assert_eq!(
        evaluate(&variables, "variables.bad == 1", &input),
        Err("expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: no such key: \
             none"
            .to_owned())
    );
    assert_eq!(evaluate(&variables, "string(variables.bad == 1 || true)", &input), Ok("true".to_owned()));
    assert_eq!(evaluate(&variables, "string(has(variables.sum))", &input), Ok("true".to_owned()));
}

#[test]
fn variables_of_one_name_may_depend_on_each_other() {
    let variables = [("a", "1"), ("b", "variables.a"), ("a", "variables.b")];
    let found = evaluate(&variables, "variables.a == 1", &Input::default()).unwrap_err();
    assert!(found.ends_with("composited variable \"a\" depends on itself"), "{found}");
}

#[test]
fn chains_of_variables_end_before_the_stack_does() {
    let names: Vec<String> = (0..3000).map(|index| format!("v{index}")).collect();
    let deep = format!("{}0{}", "(1 + ".repeat(40), ")".repeat(40));
    let expressions: Vec<String> = (0..3000usize)
        .map(|index| match index.checked_sub(1) {
            Some(before) => format!("variables.v{before} + {deep}"),
            None => deep.clone(),
        })
        .collect();
    let variables: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(expressions.iter().map(String::as_str)).collect();
    assert_eq!(evaluate(&variables, "string(variables.v5)", &Input::default()), Ok("240".to_owned()));
    assert_eq!(evaluate(&variables, "string(variables.v14)", &Input::default()), Ok("600".to_owned()));
    let found = evaluate(&variables, "string(variables.v2999)", &Input::default()).unwrap_err();
    assert!(found.ends_with("expressions are nested too deeply"), "{found}");
}

#[test]
fn budgets_end_expressions_and_policies() {
    let object = json!({"items": (0..1000).collect::<Vec<_>>()});
    let input = Input { object: Some(&object), ..Input::default() };
    let squared = "object.items.all(x, object.items.all(y, x != y || true))";
    let found = evaluate(&[], squared, &input).unwrap_err();
    assert_eq!(
        found,
        format!("expression '{squared}' resulted in error: operation cancelled: actual cost limit exceeded")
    );
    let (found, rest) = evaluate_in(100, &[], "object.items.all(x, x >= 0)", &input);
    assert_eq!((found, rest), (Err(Failure::OutOfBudget.to_string()), 0));
    // The cost of variables counts too.
    let variables = [("all", "object.items.all(x, x >= 0)")];
    assert_eq!(
        evaluate_in(100, &variables, "variables.all", &input).0,
        Err(Failure::OutOfBudget.to_string())
    );
}

#[test]
fn expressions_read_the_request() {
    let kind = GroupVersionKind::new("apps", "v1", "Deployment");
    let resource = GroupVersionResource::new("apps", "v1", "deployments");
    let user = UserInfo { name: "jane".to_owned(), groups: vec!["devs".to_owned()], ..UserInfo::default() };
    let attributes = RequestAttributes {
        operation: "CREATE",
        kind: &kind,
        resource: &resource,
        request_kind: &kind,
        request_resource: &resource,
        subresource: "",
        namespace: "shop",
        name: "",
        user: &user,
        dry_run: false,
        options: &Value::Null,
    };
    let request = attributes.to_value();
    let namespace = json!({"metadata": {"name": "shop", "labels": {"a": "b"}}});
    let authority: Arc<dyn Authority> = Arc::new(Late(AtomicUsize::new(1)));
    let input = Input {
        request: Some(&request),
        namespace: Some(&namespace),
        authorizer: Some((authority, request_resource(&attributes))),
        ..Input::default()
    };
    for expression in [
        "object == null && oldObject == null && params == null",
        "request.kind.kind == 'Deployment' && request.resource.group == 'apps'",
        "!has(request.name) && !has(request.subResource) && request.namespace == 'shop'",
        "request.userInfo.username == 'jane' && 'devs' in request.userInfo.groups && !request.dryRun",
        "request.options == null && request.operation == 'CREATE'",
        "namespaceObject.metadata.labels['a'] == 'b'",
        "authorizer.requestResource.check('get').allowed()",
    ] {
        assert_eq!(
            evaluate(&[], &format!("string({expression})"), &input),
            Ok("true".to_owned()),
            "{expression}"
        );
    }
}

#[test]
fn a_pending_decision_ends_the_evaluation_and_is_asked_again() {
    let mut compiler = Compiler::with_variables();
    let check = "authorizer.requestResource.check('get').allowed()";
    let set = compiler.compile_variables([("may", check)], ALL);
    let expression = compiler.compile("variables.may || true", STORED, ALL, Returns::BOOL);
    let authority: Arc<dyn Authority> = Arc::new(Late::default());
    let input = Input { authorizer: Some((authority, ResourceCheck::default())), ..Input::default() };
    let values = Variables::new(&set);
    let mut pace = Pace::new();
    let mut evaluation = Evaluation::new(&input, &values, POLICY_BUDGET, &mut pace);
    assert_eq!(finish(evaluation.evaluate(&expression)).unwrap_err(), Failure::Undecided);
    assert_eq!(finish(evaluation.evaluate(&expression)).unwrap().as_bool(), Some(true));
}

#[test]
fn match_conditions_hold_fail_or_err() {
    let object = json!({"a": 1});
    let input = Input { object: Some(&object), namespace: Some(&object), ..Input::default() };
    let check = |expressions: &[&str], expected: MatchOutcome| {
        let conditions: Vec<Value> = expressions
            .iter()
            .enumerate()
            .map(|(index, expression)| json!({"name": format!("c{index}"), "expression": expression}))
            .collect();
        let conditions = MatchConditions::compile(&Compiler::new(), &conditions, ALL);
        let set = VariableSet::default();
        let variables = Variables::new(&set);
        let mut pace = Pace::new();
        let found = finish(conditions.evaluate(&input, &variables, &mut pace));
        assert_eq!(found, expected, "{expressions:?}");
    };
    let error = |message: &str, failed| MatchOutcome::Error { message: message.to_owned(), failed };
    check(&[], MatchOutcome::Holds);
    check(&["true", "object.a == 1", "namespaceObject == null"], MatchOutcome::Holds);
    check(&["object.b == 1", "false"], MatchOutcome::Fails { condition: "c1".into(), failed: 1 });
    let missing = "expression 'object.b == 1' resulted in error: no such key: b";
    check(&["true", "object.b == 1"], error(missing, 1));
    check(&["1"], error("compilation error: must evaluate to bool but got int", 1));
}

/// An object whose parts make the operations of expressions long.
fn large() -> Value {
    let item = json!({"a": {"b": {"c": ["x", "y", "z"]}}, "text": "abcdefgh".repeat(8)});
    json!({
        "items": (0..1000).collect::<Vec<_>>(),
        "texts": (0..1000).map(|number| format!("{number:020}")).collect::<Vec<_>>(),
        "deep": vec![item; 1000],
        "long": "a".repeat(100_000),
        "short": "aaaaaaaaaa",
    })
}

/// Expressions that use up their cost limit, each by other operations.
const COSTLY: [&str; 13] = [
    "object.items.all(x, object.items.all(y, x != y || true))",
    "object.items.all(x, object.items.all(y, [x, y].size() == 2))",
    "object.items.all(x, object.items.all(y, {'a': x}.size() == 1))",
    "object.items.all(x, object.items.all(y, object.deep == object.deep))",
    "object.items.all(x, object.items.all(y, !object.long.contains('b')))",
    "object.items.all(x, object.items.all(y, object.short.matches('(a|aa)+$')))",
    "object.items.all(x, object.items.all(y, !object.long.matches('(a|aa)+b')))",
    "object.items.all(x, object.items.all(y, (object.long + object.long).size() > 0))",
    "object.items.all(x, object.items.all(y, object.short.replace('a', 'bb').split('b').size() > 0))",
    "object.items.all(x, object.items.all(y, string(x) + string(y) != ''))",
    "object.items.all(x, sets.contains(object.texts, object.texts))",
    "object.items.all(x, object.items.all(y, quantity('1.5Gi').add(quantity('7Mi')).isGreaterThan(quantity('1'))))",
    "object.items.all(x, object.items.all(y, url('https://example.com:80/path?q=a').getHost() != ''))",
];

/// No expression takes longer than its limits of cost and work suggest. A release build takes a sixth of the time.
#[test]
fn the_whole_cost_of_a_policy_takes_a_bounded_time() {
    let object = large();
    let input = Input { object: Some(&object), ..Input::default() };
    let mut longest = Duration::ZERO;
    for expression in COSTLY {
        let started = Instant::now();
        let (found, rest) = evaluate_in(POLICY_BUDGET, &[], expression, &input);
        let took = started.elapsed();
        println!("{took:?} for a cost of {}: {expression}", POLICY_BUDGET - rest);
        assert!(found.unwrap_err().contains("cost limit exceeded"), "{expression}");
        longest = longest.max(took);
    }
    assert!(longest < Duration::from_secs(20), "{longest:?}");
}

/// The cost of a comparison does not depend on the size of the compared objects.
#[test]
fn work_without_cost_ends_policies() {
    let object = large();
    let input = Input { object: Some(&object), ..Input::default() };
    let comparisons = "object.items.filter(x, x < 50).all(x, object.deep == object.deep)";
    let set = VariableSet::default();
    let values = Variables::new(&set);
    let expression = Compiler::new().compile(comparisons, STORED, ALL, Returns::BOOL);
    let mut pace = Pace::new();
    let mut evaluation = Evaluation::new(&input, &values, 1_000_000, &mut pace);
    let mut evaluate = || finish(evaluation.evaluate(&expression));
    let times = (0..100).take_while(|_| evaluate().is_ok()).count();
    assert!((1..20).contains(&times), "{times}");
    assert_eq!(evaluate().unwrap_err(), Failure::OutOfBudget);
}

#[test]
fn other_requests_run_between_expressions() {
    let object = large();
    let input = Input { object: Some(&object), ..Input::default() };
    let is_finished_at_once = |expression: &str| {
        let condition = json!({"name": "c", "expression": expression});
        let conditions = vec![condition; 20];
        let conditions = MatchConditions::compile(&Compiler::new(), &conditions, ALL);
        let set = VariableSet::default();
        let variables = Variables::new(&set);
        let mut pace = Pace::new();
        conditions.evaluate(&input, &variables, &mut pace).now_or_never().is_some()
    };
    assert!(!is_finished_at_once("object.items.all(x, object.items.all(y, x < 5))"));
    // A slow machine may interrupt a short evaluation, but not always.
    assert!((0..1000).any(|_| is_finished_at_once("true")));
}

/// The value of an expression on a server with workers, the cost, and whether the request has left its worker.
fn evaluate_in_request(variables: &'static [(&str, &str)], expression: &'static str) -> (String, u64, bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let request = scope(async move {
        let object = large();
        let input = Input { object: Some(&object), ..Input::default() };
        let mut compiler = Compiler::with_variables();
        let set = compiler.compile_variables(variables.iter().copied(), ALL);
        let expression = compiler.compile(expression, STORED, ALL, Returns::Anything);
        let values = Variables::new(&set);
        let mut pace = Pace::new();
        let mut evaluation = Evaluation::new(&input, &values, POLICY_BUDGET, &mut pace);
        let value = evaluation.evaluate(&expression).await;
        let value = match value {
            Ok(value) => value.as_str().unwrap_or_default().to_owned(),
            Err(failure) => failure.to_string(),
        };
        (value, POLICY_BUDGET - evaluation.budget(), !is_on_worker())
    });
    runtime.block_on(async { tokio::spawn(request).await.unwrap() })
}

#[test]
fn costly_expressions_leave_the_workers() {
    let object = large();
    let input = Input { object: Some(&object), ..Input::default() };
    let check = |variables: &'static [(&str, &str)], expression: &'static str, leaves: bool| {
        let (value, cost, left) = evaluate_in_request(variables, expression);
        let (expected, rest) = evaluate_in(POLICY_BUDGET, variables, expression, &input);
        let expected = expected.unwrap_or_else(|error| error);
        assert_eq!((value, cost, left), (expected, POLICY_BUDGET - rest, leaves), "{expression}");
    };
    const SUMS: &[(&str, &str)] = &[
        ("short", "object.items.exists(x, x == 100) ? 1 : 0"),
        (
            "long",
            "variables.short + object.items.filter(x, x < 50).map(x, object.items.filter(y, y < 5).size()).size()",
        ),
        ("endless", "object.items.all(x, object.items.all(y, x + y >= 0))"),
    ];
    check(&[], "string(object.items.size())", false);
    check(
        &[],
        "string(object.items.filter(x, x < 50).map(x, object.items.filter(y, y < 5).size()).size())",
        true,
    );
    check(&[], COSTLY[0], true);
    check(SUMS, "string(variables.short)", false);
    check(SUMS, "string(variables.short + variables.short)", false);
    // The first attempt has computed the short one already; its cost counts once.
    check(SUMS, "string(variables.short + variables.long)", true);
    check(SUMS, "string(variables.endless)", true);
    // The limit of an attempt is no value that other operators absorb.
    check(SUMS, "string(variables.endless || true)", true);
    check(SUMS, "string(true || variables.endless)", false);
}

/// The types of the variables before one are not copied for it.
#[test]
fn very_many_variables_are_compiled_in_time() {
    let names: Vec<String> = (0..20_000).map(|number| format!("a{number}")).collect();
    let started = Instant::now();
    let mut compiler = Compiler::with_variables();
    let variables = compiler
        .compile_variables(names.iter().map(|name| (name.as_str(), "true")), OptionalVariables::default());
    assert_eq!(variables.variables().len(), 20_000);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
