//! The version of the server.

use pintle_feature_gates::EffectiveVersion;
use serde_json::{Value, json};

/// The version of the API that is served.
pub(crate) const API_VERSION: &str = "1.36.2";

/// The response of `/version`: the served API version, the emulated one, and the build.
pub(crate) fn version(effective: EffectiveVersion) -> Value {
    let EffectiveVersion { emulation, min_compatibility } = effective;
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": emulation.major().to_string(),
        "emulationMinor": emulation.minor().to_string(),
        "minCompatibilityMajor": min_compatibility.major().to_string(),
        "minCompatibilityMinor": min_compatibility.minor().to_string(),
        "gitVersion": format!("v{API_VERSION}+pintle-{}", env!("CARGO_PKG_VERSION")),
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
