//! The flag of traces, and its configuration file
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-traces/>).

use super::arguments::flag;
use clap::{Arg, ArgMatches, value_parser};
use pintle_go_forms::Url;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    config_file::{ConfigFile, ConfigKind},
    status::aggregate,
};
use pintle_telemetry::Sampler;
use std::{path::PathBuf, sync::LazyLock};

/// The options of traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracingOptions {
    /// The configuration file; `None` for no traces.
    pub config_file: Option<PathBuf>,
}

/// The collector of spans, and the sampling of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracingConfiguration {
    /// The collector's address, in gRPC's notation.
    pub endpoint: String,
    /// Which traces without parent are sampled.
    pub sampler: Sampler,
}

/// The default port of collectors.
const DEFAULT_ENDPOINT: &str = "localhost:4317";

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let kind = ConfigKind {
        kind: "TracingConfiguration",
        group: "apiserver.config.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha1"],
    };
    let file = ConfigFile::new(kind, |types| {
        let (text, integer) = (types.text(), types.integer());
        types.root(&[], &[("endpoint", text), ("samplingRatePerMillion", integer)])
    });
    file.of_scheme("k8s.io/apiserver/pkg/server/options/tracing.go:49").of_known_version()
});

impl TracingOptions {
    /// The flag.
    pub fn args() -> Vec<Arg> {
        vec![
            flag(
                "tracing-config-file",
                "FILE",
                "File with the tracing configuration: the collector and the sampling rate",
            )
            .value_parser(value_parser!(PathBuf)),
        ]
    }

    /// Reads the flag.
    pub fn read(matches: &ArgMatches) -> TracingOptions {
        let file = matches.get_one::<PathBuf>("tracing-config-file");
        TracingOptions { config_file: file.filter(|file| !file.as_os_str().is_empty()).cloned() }
    }

    /// Reads and validates the file.
    ///
    /// # Errors
    /// In kube-apiserver's words, when the file is missing, is no configuration, or has invalid values.
    pub fn load(&self) -> Result<Option<TracingConfiguration>, String> {
        let Some(path) = &self.config_file else { return Ok(None) };
        let text = pintle_go_forms::read_file(path).map_err(|error| {
            let path = pintle_go_forms::quote(&path.display().to_string());
            format!(
                "failed to read tracing config: unable to read tracing configuration from {path}: {error}"
            )
        })?;
        configuration(&text).map(Some)
    }
}

fn configuration(text: &[u8]) -> Result<TracingConfiguration, String> {
    let tree = FILE.decode_strict(text).map_err(|error| {
        format!("failed to read tracing config: unable to decode tracing configuration data: {error}")
    })?;
    let mut errors = ErrorList::new();
    let rate = tree.i64_at("samplingRatePerMillion").unwrap_or_default();
    let path = FieldPath::new("samplingRatePerMillion");
    if rate < 0 {
        errors.push(FieldError::invalid(&path, rate, "sampling rate must be positive"));
    }
    if rate > 1_000_000 {
        let why = "sampling rate per million must be less than or equal to one million";
        errors.push(FieldError::invalid(&path, rate, why));
    }
    let endpoint = tree.at("endpoint").and_then(Value::as_str);
    if let Some(endpoint) = endpoint {
        validate_endpoint(endpoint, &mut errors);
    }
    if !errors.is_empty() {
        let errors = aggregate(errors.iter().map(ToString::to_string));
        return Err(format!("failed to validate tracing configuration: {errors}"));
    }
    Ok(TracingConfiguration {
        endpoint: endpoint.filter(|endpoint| !endpoint.is_empty()).unwrap_or(DEFAULT_ENDPOINT).to_owned(),
        sampler: Sampler::per_million(u32::try_from(rate).unwrap_or_default()),
    })
}

fn validate_endpoint(endpoint: &str, errors: &mut ErrorList) {
    let path = FieldPath::new("endpoint");
    let endpoint = match endpoint.contains("//") {
        true => endpoint.to_owned(),
        false => format!("dns://{endpoint}"),
    };
    match Url::parse(&endpoint) {
        Err(why) => errors.push(FieldError::invalid(&path, endpoint, why)),
        Ok(url) if matches!(url.scheme(), "dns" | "unix" | "unix-abstract") => {}
        Ok(url) => {
            let why = format!(
                "unsupported scheme: {}.  Options are none, dns, unix, or unix-abstract.  See \
                 https://github.com/grpc/grpc/blob/master/doc/naming.md",
                url.scheme()
            );
            errors.push(FieldError::invalid(&path, endpoint, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &str) -> Result<TracingConfiguration, String> {
        let head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n";
        configuration(format!("{head}{fields}").as_bytes())
    }

    #[test]
    fn events_of_spans_are_not_logged() {
        assert_eq!(pintle_logs::SPANS, pintle_telemetry::TARGET);
    }

    #[test]
    fn files_are_read() {
        let default = read("").unwrap();
        assert_eq!((default.endpoint.as_str(), default.sampler), ("localhost:4317", Sampler::per_million(0)));
        let set = read("endpoint: dns://collector:4317\nsamplingRatePerMillion: 100\n").unwrap();
        assert_eq!((set.endpoint.as_str(), set.sampler), ("dns://collector:4317", Sampler::per_million(100)));
        assert!(read("endpoint: unix:///run/x.sock\n").is_ok());
        assert_eq!(configuration(b"").unwrap(), default);
        assert_eq!(configuration(b"endpoint: a:1").unwrap().endpoint, "a:1");
    }

    #[test]
    fn mistakes_are_told_in_the_reference_s_words() {
        let check = |fields: &str, expected: &str| {
            let found = read(fields).unwrap_err();
            assert_eq!(found, format!("failed to validate tracing configuration: {expected}"), "{fields}");
        };
        check(
            "samplingRatePerMillion: -1",
            "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        );
        check(
            "samplingRatePerMillion: 1000001",
            "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one \
             million",
        );
        check(
            "endpoint: http://localhost:4317",
            "endpoint: Invalid value: \"http://localhost:4317\": unsupported scheme: http.  Options are none, dns, unix, or \
             unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md",
        );
        for (twice, problem) in [
            ("unknown: 1", "unknown field \"unknown\""),
            ("endpoint: a\nendpoint: b", "key \"endpoint\" already set in map"),
        ] {
            let found = read(twice).unwrap_err();
            assert!(
                found.contains("unable to decode tracing configuration data: strict decoding error: "),
                "{found}"
            );
            assert!(found.contains(problem), "{found}");
        }
        let other = configuration(b"kind: Other\napiVersion: v1\n").unwrap_err();
        assert!(
            other.starts_with(
                "failed to read tracing config: unable to decode tracing configuration data: no kind \"Other\" is registered"
            ),
            "{other}"
        );
        let missing = TracingOptions { config_file: Some("/none".into()) }.load().unwrap_err();
        assert_eq!(
            missing,
            "failed to read tracing config: unable to read tracing configuration from \"/none\": open /none: no such file or \
             directory"
        );
    }
}
