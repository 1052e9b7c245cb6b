//! Orders versions by stability and number: `v10`, `v2`, `v1`, `v11beta2`, `v3beta1`, `v12alpha1`, then others by name
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority>).

use std::cmp::{Ordering, Reverse};

/// Stability, major number and minor number.
type Rank = (u8, u64, u64);

/// Compares two versions by priority: the greater one is preferred.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (None, None) => Reverse(a).cmp(&Reverse(b)),
        (a, b) => a.cmp(&b),
    }
}

fn rank(version: &str) -> Option<Rank> {
    let rest = version.strip_prefix('v')?;
    let (major, rest) = number(rest)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, rest) = match rest.strip_prefix("beta") {
        Some(rest) => (1, rest),
        None => (0, rest.strip_prefix("alpha")?),
    };
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some((stability, major, minor))
}

/// Splits a number without leading zero off the start of a text.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    match digits.starts_with('0') {
        true => None,
        false => Some((digits.parse().ok()?, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_new_versions_come_first() {
        let mut versions = vec![
            "foo10",
            "v1",
            "v12alpha1",
            "foo1",
            "v3beta1",
            "v10",
            "v11beta2",
            "v11alpha2",
            "v2",
            "v10beta3",
            "v0",
            "v1gamma1",
        ];
        versions.sort_by(|a, b| compare_versions(b, a));
        let expected = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v0",
            "v1gamma1",
        ];
        assert_eq!(versions, expected);
    }
}
