//! Versions: <https://semver.org>, and shorter forms.

use crate::EvaluationError;
use pintle_go_forms::quote;
use std::cmp::Ordering;
use std::fmt;

/// A version: three numbers, pre-release identifiers, and build metadata without order.
#[derive(Clone, Debug)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Identifier>,
    build: Vec<String>,
}

/// A pre-release identifier. Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Semver {
    /// Parses a complete version.
    pub(super) fn parse(text: &str) -> Result<Semver, EvaluationError> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".into());
        };
        let major = number(major, "major", "Major")?;
        let minor = number(minor, "minor", "Minor")?;
        let (rest, build) = split(rest, '+');
        let (patch, pre) = split(rest, '-');
        let patch = number(patch, "patch", "Patch")?;
        let pre = pre.into_iter().flat_map(|pre| pre.split('.')).map(identifier).collect::<Result<_, _>>()?;
        let build = build
            .into_iter()
            .flat_map(|build| build.split('.'))
            .map(|part| match part {
                "" => Err("Build meta data is empty".into()),
                part if is_alphanumeric(part) => Ok(part.to_owned()),
                part => {
                    let part = quote(part);
                    Err(EvaluationError::failed(format!(
                        "Invalid character(s) found in build meta data {part}"
                    )))
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(Semver { major, minor, patch, pre, build })
    }

    /// Parses a version that may begin with `v`, have leading zeros, or lack its last parts.
    pub(super) fn parse_lenient(text: &str) -> Result<Semver, EvaluationError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| {
                if part.len() < 2 {
                    return part.to_owned();
                }
                let trimmed = part.trim_start_matches('0');
                let zero = if trimmed.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
                format!("{zero}{trimmed}")
            })
            .collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".into());
            }
            parts.resize(3, "0".to_owned());
        }
        Semver::parse(&parts.join("."))
    }

    /// The major number, as an integer of the language.
    pub(super) fn major(&self) -> i64 {
        self.major as i64
    }

    /// The minor number, as an integer of the language.
    pub(super) fn minor(&self) -> i64 {
        self.minor as i64
    }

    /// The patch number, as an integer of the language.
    pub(super) fn patch(&self) -> i64 {
        self.patch as i64
    }

    /// Compares two versions. A pre-release comes before its release.
    pub(crate) fn compare(&self, other: &Semver) -> Ordering {
        let numbers = (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch));
        numbers.then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.pre.cmp(&other.pre),
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (position, identifier) in self.pre.iter().enumerate() {
            f.write_str(if position == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Word(word) => f.write_str(word)?,
            }
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build.join("."))?;
        }
        Ok(())
    }
}

fn split(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn parse_u64(text: &str) -> Result<u64, EvaluationError> {
    text.parse().map_err(|_| {
        let problem = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        EvaluationError::failed(format!("strconv.ParseUint: parsing {}: {problem}", quote(text)))
    })
}

fn number(text: &str, name: &str, capitalized: &str) -> Result<u64, EvaluationError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = quote(text);
        return Err(EvaluationError::failed(format!("Invalid character(s) found in {name} number {text}")));
    }
    if has_leading_zeros(text) {
        let text = quote(text);
        return Err(EvaluationError::failed(format!(
            "{capitalized} number must not contain leading zeroes {text}"
        )));
    }
    parse_u64(text)
}

fn identifier(text: &str) -> Result<Identifier, EvaluationError> {
    let failed = |problem: &str| Err(EvaluationError::failed(format!("{problem} {}", quote(text))));
    if text.is_empty() {
        Err("Prerelease is empty".into())
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        match has_leading_zeros(text) {
            true => failed("Numeric PreRelease version must not contain leading zeroes"),
            false => parse_u64(text).map(Identifier::Number),
        }
    } else if is_alphanumeric(text) {
        Ok(Identifier::Word(text.to_owned()))
    } else {
        failed("Invalid character(s) found in prerelease")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_the_specification_says() {
        let ascending = [
            "0.9.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "2.0.0",
        ];
        for pair in ascending.windows(2) {
            let (one, other) = (Semver::parse(pair[0]).unwrap(), Semver::parse(pair[1]).unwrap());
            assert!(one.compare(&other).is_lt(), "{pair:?}");
        }
        let (one, other) = (Semver::parse("1.0.0+a").unwrap(), Semver::parse("1.0.0+b").unwrap());
        assert!(one.compare(&other).is_eq());
    }

    #[test]
    fn malformed_versions_are_told_apart() {
        let rows = [
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("a.2.3", "Invalid character(s) found in major number \"a\""),
            ("01.2.3", "Major number must not contain leading zeroes \"01\""),
            ("1.2.03", "Patch number must not contain leading zeroes \"03\""),
            ("1..3", "strconv.ParseUint: parsing \"\": invalid syntax"),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.2.3+", "Build meta data is empty"),
            ("1.2.3-a_b", "Invalid character(s) found in prerelease \"a_b\""),
            (
                "99999999999999999999.0.0",
                "strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ];
        for (text, error) in rows {
            assert_eq!(Semver::parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn short_versions_are_completed() {
        let rows = [("v1.0", "1.0.0"), ("1", "1.0.0"), ("01.02.003", "1.2.3"), ("v1.2.0-a", "1.2.0-a")];
        for (text, version) in rows {
            assert_eq!(Semver::parse_lenient(text).unwrap().to_string(), version, "{text}");
        }
        assert!(Semver::parse_lenient("1.2-a").is_err());
    }
}
