//! The answers that differ, those that differ alike together.

use std::collections::BTreeMap;
use std::fmt;

use super::case::Case;

/// The examples of a class that are shown.
const EXAMPLES: usize = 2;
/// The differences of an example that are shown.
const DIFFERENCES: usize = 4;

#[derive(Default)]
pub(super) struct Report {
    classes: BTreeMap<Vec<String>, Vec<Example>>,
}

struct Example {
    about: String,
    request: String,
    statuses: (u16, u16),
    differences: Vec<String>,
}

impl Report {
    /// Adds the answers to a request, if they differ.
    pub(super) fn add(&mut self, case: &Case, want: u16, got: u16, differences: Vec<String>) {
        if differences.is_empty() {
            return;
        }
        let mut class: Vec<String> = differences.iter().map(|text| without_digits(text)).collect();
        class.sort();
        class.dedup();
        let request = format!("{} {}", case.method, case.path);
        let example = Example { about: case.about.clone(), request, statuses: (want, got), differences };
        self.classes.entry(class).or_default().push(example);
    }

    /// The number of answers that differ.
    pub(super) fn differing(&self) -> usize {
        self.classes.values().map(Vec::len).sum()
    }
}

/// The text without digits: indexes and numbers do not make a class.
fn without_digits(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit()).take(100).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut classes: Vec<&Vec<Example>> = self.classes.values().collect();
        classes.sort_by_key(|examples| std::cmp::Reverse(examples.len()));
        for examples in classes {
            writeln!(f, "--- {} alike", examples.len())?;
            for example in examples.iter().take(EXAMPLES) {
                let Example { about, request, statuses: (want, got), .. } = example;
                writeln!(f, "    {about}\n    {request} -> {want} / {got}")?;
            }
            let differences =
                examples.first().map(|example| example.differences.as_slice()).unwrap_or_default();
            for difference in differences.iter().take(DIFFERENCES) {
                writeln!(f, "        {difference}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_differ_alike_are_one_class() {
        let mut report = Report::default();
        let case = |about: &str| Case::new("GET", "/a", about);
        report.add(&case("first"), 200, 200, vec![".a[0]: want 1 got 2".to_owned()]);
        report.add(&case("second"), 200, 200, vec![".a[1]: want 3 got 4".to_owned()]);
        report.add(&case("third"), 200, 404, vec!["status: want 200 got 404".to_owned()]);
        report.add(&case("equal"), 200, 200, Vec::new());
        assert_eq!(report.differing(), 3);
        let text = report.to_string();
        assert!(text.starts_with("--- 2 alike\n    first\n    GET /a -> 200 / 200\n    second\n"), "{text}");
        assert!(
            text.contains(
                "--- 1 alike\n    third\n    GET /a -> 200 / 404\n        status: want 200 got 404\n"
            )
        );
    }
}
