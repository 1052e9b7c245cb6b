//! Checks kind and apiVersion of configuration files.

use super::json;
use pintle_go_forms::quote;

/// The kind and versions that a configuration file must declare.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKind {
    /// The expected kind.
    pub kind: &'static str,
    /// The API group of the kind.
    pub group: &'static str,
    /// The accepted versions, the preferred one first.
    pub versions: &'static [&'static str],
}

impl ConfigKind {
    /// Checks a file that was converted to JSON.
    ///
    /// # Errors
    /// When the file is not JSON, or of another kind or version. The message contains kind and version and nothing else
    /// of the file, which may hold secrets.
    pub fn check(&self, json: &[u8]) -> Result<(), String> {
        let meta = json::type_meta(json);
        let meta = meta.map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
        if meta.kind.is_empty() {
            return Err("Object 'Kind' is missing".to_owned());
        }
        if meta.api_version.is_empty() {
            return Err("Object 'apiVersion' is missing".to_owned());
        }
        let (group, version) = meta.api_version.split_once('/').unwrap_or_default();
        if group == self.group && self.versions.contains(&version) && meta.kind == self.kind {
            return Ok(());
        }
        let (kind, version) = (quote(&meta.kind), quote(&meta.api_version));
        let wanted = format!("{} of {}/{}", self.kind, self.group, self.versions.first().unwrap_or(&"v1"));
        Err(format!("no kind {kind} is registered for version {version}; {wanted} is wanted"))
    }
}

#[cfg(test)]
mod tests {
    use super::ConfigKind;

    #[test]
    fn files_of_another_kind_are_told_from_those_of_this_one() {
        let kind = ConfigKind { kind: "Policy", group: "audit.k8s.io", versions: &["v1", "v1beta1"] };
        let check = |json: &str| kind.check(json.as_bytes());
        assert_eq!(check(r#"{"kind":"Policy","apiVersion":"audit.k8s.io/v1beta1"}"#), Ok(()));
        let other = "no kind \"Pod\" is registered for version \"v1\"; Policy of audit.k8s.io/v1 is wanted";
        assert_eq!(check(r#"{"kind":"Pod","apiVersion":"v1","data":"secret"}"#), Err(other.to_owned()));
        assert_eq!(check(r#"{"apiVersion":"v1"}"#), Err("Object 'Kind' is missing".to_owned()));
        assert_eq!(check(r#"{"kind":"Policy"}"#), Err("Object 'apiVersion' is missing".to_owned()));
        assert!(check("{").unwrap_err().starts_with("couldn't get version/kind; json parse error: "));
    }
}
