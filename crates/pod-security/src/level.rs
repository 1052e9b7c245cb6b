//! The levels of the Pod Security Standards.

use std::{error::Error, fmt, str::FromStr};

/// A level; later ones are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Everything is allowed.
    Privileged,
    /// Known privilege escalations are forbidden.
    Baseline,
    /// Pods follow current hardening practices.
    Restricted,
}

impl Level {
    /// The level as in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Level {
    type Err = InvalidLevel;

    fn from_str(text: &str) -> Result<Level, InvalidLevel> {
        [Level::Privileged, Level::Baseline, Level::Restricted]
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or(InvalidLevel)
    }
}

/// The text is not a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidLevel;

impl fmt::Display for InvalidLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be one of privileged, baseline, restricted")
    }
}

impl Error for InvalidLevel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_their_names_and_their_order() {
        for level in [Level::Privileged, Level::Baseline, Level::Restricted] {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        for invalid in ["", "Baseline", "baseline ", "open"] {
            assert_eq!(invalid.parse::<Level>(), Err(InvalidLevel), "{invalid}");
        }
        assert!(Level::Privileged < Level::Baseline && Level::Baseline < Level::Restricted);
    }
}
