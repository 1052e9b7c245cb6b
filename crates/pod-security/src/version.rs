//! The versions of the Pod Security Standards.

use std::{error::Error, fmt, str::FromStr};

/// A version of the standards: that of a Kubernetes minor version, or the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// `v1.MINOR`; one that is newer than all revisions of checks has the newest ones.
    Minor(u64),
    /// `latest`
    Latest,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Minor(minor) => write!(f, "v1.{minor}"),
            Version::Latest => f.write_str("latest"),
        }
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Version, InvalidVersion> {
        if text == "latest" {
            return Ok(Version::Latest);
        }
        let minor = text.strip_prefix("v1.").ok_or(InvalidVersion)?;
        let is_number = minor.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (minor.starts_with('0') && minor != "0") {
            return Err(InvalidVersion);
        }
        // Go's numbers have 63 bits.
        match minor.parse::<i64>() {
            Ok(minor) => Ok(Version::Minor(minor.unsigned_abs())),
            Err(_) => Err(InvalidVersion),
        }
    }
}

/// The text is not a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidVersion;

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be \"latest\" or \"v1.x\"")
    }
}

impl Error for InvalidVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_minor_versions_or_the_latest() {
        for (text, version) in [
            ("latest", Version::Latest),
            ("v1.0", Version::Minor(0)),
            ("v1.36", Version::Minor(36)),
            ("v1.9223372036854775807", Version::Minor(i64::MAX.unsigned_abs())),
        ] {
            assert_eq!(text.parse(), Ok(version));
            assert_eq!(version.to_string(), text);
        }
        for invalid in
            ["", "Latest", "1.36", "v1", "v1.", "v1.01", "v1.-1", "v1.+1", "v2.0", "v1.9223372036854775808"]
        {
            assert_eq!(invalid.parse::<Version>(), Err(InvalidVersion), "{invalid}");
        }
        assert!(Version::Minor(40) < Version::Latest);
    }
}
