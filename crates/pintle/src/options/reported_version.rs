//! The flag `--version`: prints the version, or sets the reported one.

use super::arguments::boolean;
use crate::version::API_VERSION;
use pintle_go_forms::quote;
use regex::Regex;
use std::{str::FromStr, sync::LazyLock};

/// A value of `--version`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum VersionFlag {
    /// The server runs.
    #[default]
    Run,
    /// The version is printed.
    Print,
    /// The version is printed with all details.
    PrintRaw,
    /// The server runs, and reports this version, such as `v1.36.2-mine`.
    Report(String),
}

/// A semantic version: its numbers, and pre-release and build.
static SEMANTIC: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = "[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*";
    Regex::new(&format!("^v((?:0|[1-9][0-9]*)(?:\\.(?:0|[1-9][0-9]*)){{2}})(?:-{name})?(?:\\+{name})?$")).ok()
});

impl VersionFlag {
    /// The version to report; `None` for that of the build.
    pub(crate) fn reported(&self) -> Option<&str> {
        match self {
            VersionFlag::Report(version) => Some(version),
            VersionFlag::Run | VersionFlag::Print | VersionFlag::PrintRaw => None,
        }
    }
}

impl FromStr for VersionFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<VersionFlag, String> {
        if text == "raw" {
            return Ok(VersionFlag::PrintRaw);
        }
        if !text.starts_with('v') {
            return boolean(text).map(|print| if print { VersionFlag::Print } else { VersionFlag::Run });
        }
        let numbers =
            SEMANTIC.as_ref().and_then(|semantic| semantic.captures(text)).and_then(|found| found.get(1));
        match numbers.map(|numbers| numbers.as_str()) {
            Some(API_VERSION) => Ok(VersionFlag::Report(text.to_owned())),
            Some(_) => Err(format!(
                "version {} must match major/minor/patch of default version {}",
                quote(text),
                quote(&format!("v{API_VERSION}"))
            )),
            None => Err(format!("could not parse {} as version", quote(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_served_api() {
        let check = |text: &str, expected: Result<VersionFlag, &str>| {
            assert_eq!(text.parse(), expected.map_err(str::to_owned), "{text}");
        };
        check("true", Ok(VersionFlag::Print));
        check("0", Ok(VersionFlag::Run));
        check("raw", Ok(VersionFlag::PrintRaw));
        check("v1.36.2", Ok(VersionFlag::Report("v1.36.2".to_owned())));
        check("v1.36.2-a.1+b", Ok(VersionFlag::Report("v1.36.2-a.1+b".to_owned())));
        check(
            "v1.36.1",
            Err("version \"v1.36.1\" must match major/minor/patch of default version \"v1.36.2\""),
        );
        check("v1.36.2 ", Err("could not parse \"v1.36.2 \" as version"));
        check("x", Err("strconv.ParseBool: parsing \"x\": invalid syntax"));
    }
}
