//! Versions of Kubernetes without their patch.

use pintle_go_forms::quote;
use std::fmt;

/// A version such as 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinorVersion {
    major: u64,
    minor: u64,
}

impl MinorVersion {
    /// The version of the API that this server serves.
    pub const BINARY: MinorVersion = MinorVersion::new(1, 36);

    /// The version.
    pub const fn new(major: u64, minor: u64) -> MinorVersion {
        MinorVersion { major, minor }
    }

    /// The first number.
    pub fn major(self) -> u64 {
        self.major
    }

    /// The second number.
    pub fn minor(self) -> u64 {
        self.minor
    }

    /// The version before this one: 1.35 for 1.36.
    pub fn previous(self) -> MinorVersion {
        MinorVersion::new(self.major, self.minor.saturating_sub(1))
    }

    /// Parses the value of a flag of `component` as `k8s.io/apimachinery/pkg/util/version` does. A patch version must be
    /// zero.
    ///
    /// # Errors
    /// When the text is no version, or has a patch, in kube-apiserver's words.
    pub(crate) fn parse(component: &str, text: &str) -> Result<MinorVersion, String> {
        let no_version = || format!("could not parse {} as version", quote(text));
        let trimmed = text.trim_start();
        let trimmed = trimmed.strip_prefix('v').unwrap_or(trimmed);
        let numbers = numbers(trimmed);
        if numbers.is_empty() {
            return Err(no_version());
        }
        let components: Vec<&str> = numbers.split('.').collect();
        let [major, minor, rest @ ..] = components.as_slice() else {
            return Err(format!("illegal version string {}", quote(text)));
        };
        if major.starts_with('0') && *major != "0" {
            return Err(format!(
                "illegal zero-prefixed version component {} in {}",
                quote(major),
                quote(text)
            ));
        }
        let number = |component: &str| {
            component.parse::<u64>().map_err(|_| {
                format!(
                    "illegal non-numeric version component {} in {}: strconv.ParseUint: parsing {}: value out of range",
                    quote(component),
                    quote(text),
                    quote(component)
                )
            })
        };
        let version = MinorVersion::new(number(major)?, number(minor)?);
        let rest = rest.iter().map(|component| number(component)).collect::<Result<Vec<u64>, String>>()?;
        match rest.first() {
            None | Some(0) => Ok(version),
            Some(_) => {
                let rest: String = rest.iter().map(|number| format!(".{number}")).collect();
                Err(format!("patch version not allowed, got: {component}={version}{rest}"))
            }
        }
    }
}

impl fmt::Display for MinorVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The numbers, separated by single dots, at the start of a text.
fn numbers(text: &str) -> &str {
    let is_part = |character: char| character.is_ascii_digit() || character == '.';
    let length = text.find(|character| !is_part(character)).unwrap_or(text.len());
    let (mut numbers, _) = text.split_at_checked(length).unwrap_or((text, ""));
    if let Some((before, _)) = numbers.split_once("..") {
        numbers = before;
    }
    match numbers.starts_with('.') {
        true => "",
        false => numbers.trim_end_matches('.'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_reference_reads_them() {
        let check = |text: &str, expected: Result<(u64, u64), &str>| {
            let expected = expected.map(|(major, minor)| MinorVersion::new(major, minor));
            assert_eq!(MinorVersion::parse("kube", text), expected.map_err(str::to_owned), "{text}");
        };
        check("1.36", Ok((1, 36)));
        check(" v1.36", Ok((1, 36)));
        check("1.36.0", Ok((1, 36)));
        check("1.36-alpha", Ok((1, 36)));
        check("1.36..4", Ok((1, 36)));
        check("1.036", Ok((1, 36)));
        check("1.36.2", Err("patch version not allowed, got: kube=1.36.2"));
        check("1", Err("illegal version string \"1\""));
        check("", Err("could not parse \"\" as version"));
        check("x", Err("could not parse \"x\" as version"));
        check(".1", Err("could not parse \".1\" as version"));
        check("01.2", Err("illegal zero-prefixed version component \"01\" in \"01.2\""));
        check(
            "1.99999999999999999999",
            Err(
                "illegal non-numeric version component \"99999999999999999999\" in \"1.99999999999999999999\": \
                 strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        );
    }
}
