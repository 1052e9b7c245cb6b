//! Compiles the expressions of the transcript `compile.txt`, which records the reference's results.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use pintle_cel::types::{ObjectTypes, Type};
use pintle_cel::{Environment, Stage};
use std::sync::Arc;

fn environment() -> Environment {
    let text = || Type::String;
    let object = Type::object;
    let mut types = ObjectTypes::default();
    types.insert(
        "Self",
        [
            ("n", Type::Int),
            ("s", text()),
            ("b", Type::Bool),
            ("l", Type::list(text())),
            ("m", Type::map(text(), text())),
            ("d", Type::Timestamp),
            ("i", Type::Dyn),
            ("o", object("Self.o")),
            ("e", text()),
            ("bin", Type::Bytes),
            ("dur", Type::Duration),
            ("num", Type::Double),
            ("date", Type::Timestamp),
            ("ll", Type::list(Type::list(Type::Int))),
            ("lo", Type::list(object("Self.lo"))),
            ("mo", Type::map(text(), object("Self.mo"))),
            ("if", Type::Int),
            ("__if__", Type::Int),
            ("x__dash__y", text()),
        ]
        .map(|(name, of_field)| (name.into(), of_field)),
    );
    types.insert("Self.o", [("p".into(), Type::Int)]);
    types.insert("Self.lo", [("a".into(), Type::Int)]);
    types.insert("Self.mo", [("a".into(), Type::Int)]);
    Environment::new().with_types(Arc::new(types)).with_variable("self", object("Self"))
}

fn outcome(environment: &Environment, source: &str) -> String {
    match environment.compile(source) {
        Ok(program) if matches!(program.result_type(), Type::Bool | Type::Dyn) => "bool".to_owned(),
        Ok(_) => "not bool".to_owned(),
        Err(errors) if errors.stage() == Stage::Compilation => format!("compilation failed: {errors}"),
        Err(errors) => format!("program instantiation failed: {errors}"),
    }
}

#[test]
fn expressions_compile_or_are_refused_as_the_reference_has_it() {
    let without_old = environment();
    let with_old = environment().with_variable("oldSelf", Type::object("Self"));
    let mut rows = 0;
    for row in include_str!("compile.txt").split("\n\n").filter(|row| row.starts_with("> ")) {
        let (source, expected) = row.split_once('\n').expect("an expression and what becomes of it");
        let source = source.strip_prefix("> ").expect("the row begins with it");
        let environment = if source.contains("oldSelf") { &with_old } else { &without_old };
        assert_eq!(outcome(environment, source), expected.trim_end_matches('\n'), "{source}");
        rows += 1;
    }
    assert!(rows > 300);
}

#[test]
fn parsing_stops_at_the_first_syntax_error_beyond_the_limit() {
    let outcome = outcome(&environment(), &"\u{e9}".repeat(300));
    assert!(outcome.ends_with("\n1 more errors were truncated"), "{outcome}");
    assert_eq!(outcome.matches("token recognition error").count(), 100);
}
