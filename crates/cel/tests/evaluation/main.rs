//! Evaluates expressions and compares the results with the reference server's: there, each was the rule of a
//! definition, and the rule's message expression printed its value.
//!
//! A line of [`answers`](answers) is an expression and its value as `%s` prints it (`=>`, in JSON quotes), the error of
//! its evaluation (`=!`), or the error that keeps it from being planned (`=/`).

use pintle_cel::{Activation, Environment};

mod cost;
mod objects;

/// The cost limit of a rule.
const LIMIT: u64 = 1_000_000;

#[derive(Debug, PartialEq)]
enum Answer {
    Value(String),
    Error(String),
    Refused(String),
}

fn evaluate(expression: &str) -> Answer {
    let environment = Environment::new();
    let compile = |source: &str| environment.compile(source);
    let program = match compile(expression) {
        Ok(program) => program,
        Err(error) => return Answer::Refused(error.to_string()),
    };
    if let Err(error) = program.evaluate(&Activation::new(), &mut { LIMIT }) {
        return Answer::Error(error.to_string());
    }
    let program =
        compile(&format!("'%s'.format([dyn({expression})])")).expect("it compiles inside a call, too");
    match program.evaluate(&Activation::new(), &mut { LIMIT }) {
        Ok(text) => Answer::Value(text.as_str().expect("a text").to_owned()),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn check(answers: &str) {
    let mut wrong = Vec::new();
    for line in answers.lines() {
        let (position, mark) = [" => ", " =! ", " =/ "]
            .iter()
            .filter_map(|mark| Some((line.rfind(mark)?, *mark)))
            .min()
            .unwrap_or_else(|| panic!("{line}: no answer"));
        let (expression, wanted) = (&line[..position], &line[position + 4..]);
        let wanted = match mark {
            " => " => Answer::Value(serde_json::from_str(wanted).expect("a text in quotes")),
            " =! " => Answer::Error(wanted.to_owned()),
            _ => Answer::Refused(wanted.to_owned()),
        };
        let found = evaluate(expression);
        if found != wanted {
            wrong.push(format!("{expression}\n  wanted {wanted:?}\n  found  {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! answers {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            check(include_str!(concat!("answers/", stringify!($name), ".txt")));
        })*
    };
}

answers!(conversions, formatting, libraries, lists, macros, operators, optionals, patterns, strings, times);

/// Chains nest without brackets, and are processed on the current stack.
#[test]
fn long_chains_fit_the_stack() {
    let rows = [
        (format!("1{} == 201", " + 1".repeat(200)), Answer::Value("true".to_owned())),
        (format!("{}true", "!".repeat(200)), Answer::Value("true".to_owned())),
        (format!("true{}", " && true".repeat(2000)), Answer::Value("true".to_owned())),
        (format!("dyn({{}}){}", ".a".repeat(200)), Answer::Error("no such key: a".to_owned())),
    ];
    for (expression, wanted) in rows {
        assert_eq!(evaluate(&expression), wanted, "{expression}");
    }
}
