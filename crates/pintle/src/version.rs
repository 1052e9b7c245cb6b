//! The version of the server.

use pintle_feature_gates::EffectiveVersion;
use pintle_go_forms::quote;
use pintle_machinery::{Value, json};

/// The version of the API that is served.
pub(crate) const API_VERSION: &str = "1.36.2";

/// The response of `/version`: the served API version, the emulated one, and the build. `reported` replaces the version of the build.
pub(crate) fn version(effective: EffectiveVersion, reported: Option<&str>) -> Value {
    let EffectiveVersion { emulation, min_compatibility } = effective;
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": emulation.major().to_string(),
        "emulationMinor": emulation.minor().to_string(),
        "minCompatibilityMajor": min_compatibility.major().to_string(),
        "minCompatibilityMinor": min_compatibility.minor().to_string(),
        "gitVersion": git_version(reported),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_arch()),
    })
}

/// The architecture by Go's name, which clients compare.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn git_version(reported: Option<&str>) -> String {
    match reported {
        Some(version) => version.to_owned(),
        None => format!("v{API_VERSION}+pintle-{}", env!("CARGO_PKG_VERSION")),
    }
}

/// The text of `--version`.
pub fn version_line() -> String {
    format!("Kubernetes {}", git_version(None))
}

/// The text of `--version=raw`: Go's form of the version.
pub fn raw_version() -> String {
    let version = version(EffectiveVersion::default(), None);
    let names = [
        ("Major", "major"),
        ("Minor", "minor"),
        ("EmulationMajor", ""),
        ("EmulationMinor", ""),
        ("MinCompatibilityMajor", ""),
        ("MinCompatibilityMinor", ""),
        ("GitVersion", "gitVersion"),
        ("GitCommit", "gitCommit"),
        ("GitTreeState", "gitTreeState"),
        ("BuildDate", "buildDate"),
        ("GoVersion", "goVersion"),
        ("Compiler", "compiler"),
        ("Platform", "platform"),
    ];
    let value = |name: &str| version.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let members: Vec<String> =
        names.iter().map(|(name, member)| format!("{name}:{}", quote(&value(member)))).collect();
    format!("version.Info{{{}}}", members.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_printed_as_the_reference_prints_it() {
        assert!(version_line().starts_with("Kubernetes v1.36.2"));
        assert!(raw_version().starts_with("version.Info{Major:\"1\", Minor:\"36\", EmulationMajor:\"\", "));
        let version = version(EffectiveVersion::default(), Some("v1.36.2-mine"));
        assert_eq!(version["gitVersion"], "v1.36.2-mine");
    }
}
