//! Warns about files of one volume with overlapping paths: equal, or one below the other.

use pintle_go_forms::quote;
use pintle_machinery::{Value, ValueExt};

/// The maximum number of pairs of files compared per pod, which bounds the time to a few milliseconds.
const MAX_PAIRS: usize = 1_000_000;
/// The number of pairs that each warning counts as.
const PAIRS_A_WARNING: usize = 1000;

/// A file's path and, in a volume of several sources, the description of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> File {
        File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
    }

    fn overlaps(&self, other: &File) -> bool {
        let is_below = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (is_below(&self.path, &other.path) || is_below(&other.path, &self.path))
    }

    fn show(&self) -> String {
        match self.source.as_str() {
            "" => quote(&self.path),
            source => format!("{} ({source})", quote(&self.path)),
        }
    }
}

/// The warnings for the volumes of a spec.
pub(super) fn warnings(volumes: &[Value]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut pairs = MAX_PAIRS;
    for volume in volumes {
        let name = quote(volume.str_at("name"));
        for (field, kind, name_field) in
            [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "", "")]
        {
            let Some(source) = volume.at(field) else { continue };
            let description = match kind {
                "" => "DownwardAPI".to_owned(),
                kind => format!("{kind} {}", quote(source.str_at(name_field))),
            };
            for overlap in overlaps_from(&files(source, ""), 0, &mut pairs) {
                warnings.push(format!("volume {name} ({description}): overlapping paths: {overlap}"));
            }
        }
        let Some(projected) = volume.at("projected") else { continue };
        let mut all = Vec::new();
        for source in projected.items_at("sources") {
            if source.as_object().is_none_or(|members| members.values().all(Value::is_null)) {
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
                continue;
            }
            let (kept, mut new) = (all.len(), projected_files(source));
            all.append(&mut new);
            for overlap in overlaps_from(&all, kept, &mut pairs) {
                warnings.push(format!("volume {name} (Projected): overlapping paths: {overlap}"));
            }
        }
    }
    warnings
}

fn files(source: &Value, description: &str) -> Vec<File> {
    source.items_at("items").iter().map(|item| File::new(item.str_at("path"), description)).collect()
}

fn projected_files(source: &Value) -> Vec<File> {
    for (field, kind) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        if let Some(object) = source.at(field).filter(|object| object.at("items").is_some()) {
            return files(object, &format!("{kind} {}", quote(object.str_at("name"))));
        }
    }
    if let Some(downward) = source.at("downwardAPI").filter(|downward| downward.at("items").is_some()) {
        return files(downward, "DownwardAPI");
    }
    if let Some(token) = source.at("serviceAccountToken") {
        return vec![File::new(token.str_at("path"), "ServiceAccountToken")];
    }
    if let Some(bundle) = source.at("clusterTrustBundle") {
        let name = bundle.at("name").or(bundle.at("signerName")).and_then(Value::as_str).unwrap_or_default();
        return vec![File::new(bundle.str_at("path"), &format!("ClusterTrustBundle {}", quote(name)))];
    }
    let Some(certificate) = source.at("podCertificate") else { return Vec::new() };
    [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ]
    .iter()
    .filter(|(field, _)| !certificate.str_at(field).is_empty())
    .map(|(field, description)| File::new(certificate.str_at(field), description))
    .collect()
}

/// Describes the overlaps of each file from `start` on with the files before it, while `pairs` remain.
fn overlaps_from(files: &[File], start: usize, pairs: &mut usize) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, file) in files.iter().enumerate().skip(start) {
        let others = files.iter().take(index.min(*pairs));
        *pairs -= others.len();
        for other in others.filter(|other| file.overlaps(other)) {
            texts.push(format!("{} with {}", file.show(), other.show()));
            *pairs = pairs.saturating_sub(PAIRS_A_WARNING);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::warnings;
    use pintle_machinery::json;

    #[test]
    fn overlapping_files_are_told() {
        let volumes = json!([
            {"name": "a", "configMap": {"name": "c", "items": [{"path": "x"}, {"path": "x/y"}, {"path": "xy"}]}},
            {"name": "b", "projected": {"sources": [
                {"secret": {"name": "s", "items": [{"path": "t/"}]}}, {"serviceAccountToken": {"path": "t"}}, {},
            ]}},
        ]);
        assert_eq!(
            warnings(volumes.as_array().unwrap()),
            [
                r#"volume "a" (ConfigMap "c"): overlapping paths: "x/y" with "x""#,
                r#"volume "b" (Projected): overlapping paths: "t" (ServiceAccountToken) with "t" (Secret "s")"#,
                r#"volume "b" (Projected) has no sources provided"#,
            ]
        );
    }
}
