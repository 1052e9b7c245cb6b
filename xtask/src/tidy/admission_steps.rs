//! Checks that each admission plugin is called in the steps whose methods it has.

use super::{
    files_below,
    source::{Token, after_closing, tokens_of},
};

#[test]
fn admission_plugins_are_called_in_the_steps_that_they_have() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in files_below("crates", ".rs") {
        let tokens = tokens_of(&file);
        for (at, _) in tokens.windows(2).enumerate().filter(|(_, pair)| is_plugin(pair)) {
            let Some(open) = (at..tokens.len()).find(|&at| tokens[at].is("{")) else { continue };
            let body = &tokens[open..after_closing(&tokens, open)];
            let has = |name: &str| body.windows(2).any(|pair| pair[0].is("fn") && pair[1].is(name));
            // A plugin that has none admits everything.
            let expected = match (has("admit"), has("validate")) {
                (true, false) => "Admit",
                (false, true) => "Validate",
                _ => "Both",
            };
            let names: Vec<&Token> = body.iter().filter(|token| token.is_name()).collect();
            let is_declared = names.windows(2).any(|pair| pair[0].is("Steps") && pair[1].is(expected));
            seen += 1;
            if !is_declared {
                wrong.push(format!("{file}:{}: Steps::{expected}", tokens[at].line));
            }
        }
    }
    assert!(wrong.is_empty(), "these are not called in their steps: {wrong:#?}");
    assert!(seen > 40, "the plugins are no longer found: {seen}");
}

fn is_plugin(pair: &[Token]) -> bool {
    pair[0].is("AdmissionPlugin") && pair[1].is("for")
}
