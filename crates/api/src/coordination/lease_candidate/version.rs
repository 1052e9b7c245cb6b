//! Parses semantic versions (<https://semver.org>) for the comparison of candidates.

use std::cmp::Ordering;

/// A version. Build metadata is validated and dropped: versions that differ only in it are equal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// A pre-release identifier; numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    /// Parses `major.minor.patch[-prerelease][+build]`; `None` if the text is malformed.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = text.splitn(3, '.');
        let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        if build.is_some_and(|build| !build.split('.').all(is_identifier)) {
            return None;
        }
        let identifiers = prerelease.map(|prerelease| prerelease.split('.').map(Identifier::parse));
        Some(Version {
            numbers: [number(major)?, number(minor)?, number(patch)?],
            prerelease: identifiers.map_or(Some(Vec::new()), Iterator::collect)?,
        })
    }

    /// Whether it is 0.0.0.
    pub fn is_zero(&self) -> bool {
        *self == Version::default()
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        // A release comes after its pre-releases.
        let is_release = |version: &Version| version.prerelease.is_empty();
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| is_release(self).cmp(&is_release(other)))
            .then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Identifier {
    fn parse(text: &str) -> Option<Identifier> {
        match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => number(text).map(Identifier::Number),
            false => is_identifier(text).then(|| Identifier::Word(text.to_owned())),
        }
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A number without leading zeroes or signs.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_strictly() {
        for text in ["1.2.3", "0.0.0", "1.36.0-alpha.1+build.5", "1.0.0--x", "1.0.0+001"] {
            assert!(Version::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "1",
            "1.2",
            "v1.2.3",
            "01.2.3",
            "1.2.3.4",
            "1.2.3-",
            "1.2.3-a..b",
            "1.2.3-01",
            "1.2.3+",
            "1.2.x",
            "1.2.+3",
        ] {
            assert!(Version::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered() {
        let ascending = [
            "0.0.0",
            "1.0.0-1",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2.0.0",
        ];
        let versions: Vec<Version> = ascending.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(versions.is_sorted());
        assert_eq!(Version::parse("1.0.0+a").cmp(&Version::parse("1.0.0+b")), Ordering::Equal);
    }
}
