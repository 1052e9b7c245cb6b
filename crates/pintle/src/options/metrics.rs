//! The flags of metrics
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/>).

use super::arguments::{flag, list, texts};
use clap::{Arg, ArgAction, ArgMatches};
use pintle_apiserver::metrics::MetricsConfiguration;
use pintle_feature_gates::MinorVersion;
use pintle_go_forms::{CsvReader, FileError, quote, read_file};
use pintle_machinery::codec::yaml;
use std::{collections::BTreeMap, path::PathBuf};

/// The options of metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsOptions {
    /// The version whose hidden metrics are exported: the one before this server's, or "".
    pub show_hidden_metrics_for_version: String,
    /// The names of metrics that are not exported.
    pub disabled_metrics: Vec<String>,
    /// The allowed values of labels, by `METRIC,LABEL`.
    pub allow_metric_labels: BTreeMap<String, String>,
    /// A file with the allowed values of labels.
    pub allow_metric_labels_manifest: Option<PathBuf>,
}

impl MetricsOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            flag(
                "show-hidden-metrics-for-version",
                "VERSION",
                "Previous version; metrics that were hidden after it are exported",
            ),
            list("disabled-metrics", "NAME,…", "Names of metrics that are not exported"),
            flag("allow-metric-labels", "METRIC,LABEL=VALUE,…", "Allowed values of a metric's label")
                .action(ArgAction::Append)
                .value_parser(pairs),
            flag("allow-metric-labels-manifest", "FILE", "File with the allowed values of metrics' labels")
                .value_parser(clap::value_parser!(PathBuf)),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> MetricsOptions {
        let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
        let allowed = matches.get_many::<Vec<(String, String)>>("allow-metric-labels").into_iter().flatten();
        let manifest = matches.get_one::<PathBuf>("allow-metric-labels-manifest");
        MetricsOptions {
            show_hidden_metrics_for_version: text("show-hidden-metrics-for-version"),
            disabled_metrics: texts(matches, "disabled-metrics").unwrap_or_default(),
            allow_metric_labels: allowed.flatten().cloned().collect(),
            allow_metric_labels_manifest: manifest
                .filter(|manifest| !manifest.as_os_str().is_empty())
                .cloned(),
        }
    }

    /// The configuration of metrics.
    ///
    /// # Errors
    /// All errors of the options and of the manifest, in kube-apiserver's words.
    pub(crate) fn configuration(&self) -> Result<MetricsConfiguration, Vec<String>> {
        let mut errors = Vec::new();
        let hidden = &self.show_hidden_metrics_for_version;
        let previous = MinorVersion::BINARY.previous().to_string();
        if !hidden.is_empty() && *hidden != previous {
            errors.push(format!(
                "metrics.showHiddenMetricsForVersion: Invalid value: {}: must be omitted or have the value '{previous}'; \
                 only the previous minor version is allowed",
                quote(hidden)
            ));
        }
        if let Some(name) = self.disabled_metrics.iter().find(|name| !is_metric(name)) {
            errors.push(format!(
                "metrics.disabledMetrics: Invalid value: {}: must be fully qualified metric names matching \
                 \"^[a-zA-Z_:][a-zA-Z0-9_:]*$\", got {}",
                pintle_machinery::json!(self.disabled_metrics),
                quote(name)
            ));
        }
        let mut configuration = MetricsConfiguration::default();
        configuration.show_hidden = !hidden.is_empty();
        configuration.disabled = self.disabled_metrics.iter().cloned().collect();
        let check = |field: &str, pairs: &BTreeMap<String, String>, errors: &mut Vec<String>| {
            if !pairs.keys().all(|key| is_key(key)) {
                errors.push(format!(
                    "metrics.{field}: Invalid value: {}: must have keys with format `metricName,labelName` where \
                     metricName matches \"[a-zA-Z_:][a-zA-Z0-9_:]*\" and labelName matches \"[a-zA-Z_][a-zA-Z0-9_]*\"",
                    serde_json::to_string(pairs).unwrap_or_default()
                ));
            }
        };
        check("allowListMapping", &self.allow_metric_labels, &mut errors);
        let mut pairs = self.allow_metric_labels.clone();
        if let Some(path) = &self.allow_metric_labels_manifest {
            match read_manifest(path) {
                Ok(read) => {
                    check("allowListMappingManifest", &read, &mut errors);
                    if pairs.is_empty() {
                        pairs = read;
                    }
                }
                Err(why) => errors.push(format!(
                    "metrics.allowListMappingManifest: Invalid value: {}: {why}",
                    quote(&path.display().to_string())
                )),
            }
            if !self.allow_metric_labels.is_empty() {
                let both = pintle_machinery::json!({
                    "allowListMapping": self.allow_metric_labels,
                    "allowListMappingManifest": path,
                });
                errors.push(format!(
                    "metrics: Invalid value: {both}: cannot specify both allowListMapping and allowListMappingManifest"
                ));
            }
        }
        if errors.is_empty() {
            let refused = pairs.iter().map(|(key, values)| configuration.allow(key, values));
            errors.extend(refused.filter_map(Result::err).map(|error| error.to_string()));
        }
        if errors.is_empty() { Ok(configuration) } else { Err(errors) }
    }
}

/// The size limit of the manifest, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;

fn read_manifest(path: &PathBuf) -> Result<BTreeMap<String, String>, String> {
    let failed = |error: FileError| format!("failed to read allow list manifest: {error}");
    let size = std::fs::metadata(path).map_err(|error| failed(FileError::new("open", path, error)))?.len();
    if size > MAX_MANIFEST {
        return Err(format!("the manifest is larger than {MAX_MANIFEST} bytes"));
    }
    let bytes = read_file(path).map_err(failed)?;
    let invalid = |why: String| format!("failed to parse allow list manifest: {why}");
    let converted = yaml::to_json(&bytes).map_err(|error| invalid(error.to_string()))?;
    // An empty file is `null`: no labels.
    let labels: Option<_> =
        serde_json::from_slice(&converted.json).map_err(|error| invalid(error.to_string()))?;
    Ok(labels.unwrap_or_default())
}

fn is_key(key: &str) -> bool {
    key.split_once(',').is_some_and(|(metric, label)| is_metric(metric) && is_name(label, false))
}

fn is_metric(name: &str) -> bool {
    is_name(name, true)
}

fn is_name(name: &str, has_colon: bool) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || (has_colon && byte == b':');
    name.bytes().next().is_some_and(is_start)
        && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

/// Parses one `KEY=VALUE`, or several in the fields of a CSV line.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let fields = match text.matches('=').count() {
        0 => return Err(format!("{text} must be formatted as key=value")),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => CsvReader::new(text).record().map_err(|error| error.to_string())?,
    };
    let pair = |field: String| match field.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("{field} must be formatted as key=value")),
    };
    fields.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_a_configuration() {
        let allowed = ["a,b=c,d", "\"e,f=g\",\"h,i=\""].map(|text| pairs(text).unwrap()).concat();
        let options = MetricsOptions {
            show_hidden_metrics_for_version: "1.35".to_owned(),
            disabled_metrics: vec!["x".to_owned()],
            allow_metric_labels: allowed.into_iter().collect(),
            allow_metric_labels_manifest: None,
        };
        let configuration = options.configuration().unwrap();
        assert!(configuration.show_hidden && configuration.disabled.contains("x"));
        let keys: Vec<_> = configuration.allowed_labels.keys().cloned().collect();
        assert_eq!(keys, ["a", "e", "h"]);
        assert_eq!(configuration.allowed_labels["a"]["b"].len(), 2);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifest");
        std::fs::write(&path, "\"m1,l1\": \"v1,v2\"\n").unwrap();
        let manifest = MetricsOptions { allow_metric_labels_manifest: Some(path), ..Default::default() };
        assert_eq!(manifest.configuration().unwrap().allowed_labels["m1"]["l1"].len(), 2);
    }

    #[test]
    fn mistakes_are_told_in_the_reference_s_words() {
        let check = |options: MetricsOptions, expected: &str| {
            assert_eq!(options.configuration().unwrap_err().join(", "), expected);
        };
        check(
            MetricsOptions { show_hidden_metrics_for_version: "1.36".to_owned(), ..Default::default() },
            "metrics.showHiddenMetricsForVersion: Invalid value: \"1.36\": must be omitted or have the value '1.35'; \
             only the previous minor version is allowed",
        );
        let pair = |key: &str| [(key.to_owned(), "b".to_owned())].into();
        check(
            MetricsOptions { allow_metric_labels: pair("a"), ..Default::default() },
            "metrics.allowListMapping: Invalid value: {\"a\":\"b\"}: must have keys with format `metricName,labelName` \
             where metricName matches \"[a-zA-Z_:][a-zA-Z0-9_:]*\" and labelName matches \"[a-zA-Z_][a-zA-Z0-9_]*\"",
        );
        let manifest = Some(PathBuf::from("/nope"));
        let missing = "metrics.allowListMappingManifest: Invalid value: \"/nope\": failed to read allow list manifest: \
                       open /nope: no such file or directory";
        check(
            MetricsOptions { allow_metric_labels_manifest: manifest.clone(), ..Default::default() },
            missing,
        );
        check(
            MetricsOptions {
                allow_metric_labels: pair("a,c"),
                allow_metric_labels_manifest: manifest,
                ..Default::default()
            },
            &format!(
                "{missing}, metrics: Invalid value: {{\"allowListMapping\":{{\"a,c\":\"b\"}},\
                 \"allowListMappingManifest\":\"/nope\"}}: cannot specify both allowListMapping and \
                 allowListMappingManifest"
            ),
        );
    }
}
