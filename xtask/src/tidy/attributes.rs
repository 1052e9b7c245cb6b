//! Checks that each `#[allow(…)]` and `#[expect(…)]` has a reason.

use super::files_below;
use super::source::{after_closing, attribute, tokens_of};

#[test]
fn allowed_and_expected_lints_have_a_reason() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in ["crates", "tests", "xtask"].into_iter().flat_map(|folder| files_below(folder, ".rs")) {
        let tokens = tokens_of(&file);
        for at in 0..tokens.len() {
            let Some(attribute) = attribute(&tokens, at) else { continue };
            for (level, pair) in attribute.windows(2).enumerate() {
                if !(pair[0].is("allow") || pair[0].is("expect")) || !pair[1].is("(") {
                    continue;
                }
                seen += 1;
                let arguments = &attribute[level + 1..after_closing(attribute, level + 1)];
                if !arguments.windows(2).any(|pair| pair[0].is("reason") && pair[1].is("=")) {
                    wrong.push(format!("{file}:{}", pair[0].line));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these have no `reason`: {wrong:#?}");
    assert!(seen > 20, "the attributes are no longer found: {seen}");
}
