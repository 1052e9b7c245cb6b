//! The configuration of `ImagePolicyWebhook`, which has neither kind nor version.

use pintle_go_forms::format_duration;
use pintle_machinery::{
    Value, ValueExt,
    codec::{json, yaml},
    text::go_json_type,
};
use std::{path::PathBuf, time::Duration};

/// The configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    /// The file with the address and the credentials of the webhook.
    pub(super) kube_config_file: PathBuf,
    /// For how long an answer that allows is cached.
    pub(super) allow_ttl: Duration,
    /// For how long an answer that denies is cached.
    pub(super) deny_ttl: Duration,
    /// The first delay between attempts.
    pub(super) retry_backoff: Duration,
    /// Whether pods are admitted when the webhook fails.
    pub(super) default_allow: bool,
}

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;

/// Reads the configuration.
pub(super) fn read(text: Option<&[u8]>) -> Result<Configuration, String> {
    let Some(text) = text else { return Err("no config specified".to_owned()) };
    let converted = yaml::to_json(text).map_err(|error| error.to_string())?;
    let tree = json::decode_any(&converted.json).map_err(|error| error.to_string())?;
    let nothing = Value::Null;
    let fields = tree.at("imagePolicy").unwrap_or(&nothing);
    let backoff = duration(fields, "retryBackoff", MILLISECOND, [1, 5 * MINUTE], 500 * MILLISECOND)?;
    let allow = duration(fields, "allowTTL", SECOND, [SECOND, 30 * MINUTE], 5 * MINUTE)?;
    let deny = duration(fields, "denyTTL", SECOND, [SECOND, 30 * MINUTE], 30 * SECOND)?;
    let path = typed(fields, "kubeConfigFile", "string", Value::as_str)?.unwrap_or_default();
    if path.is_empty() {
        return Err("invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment \
                    variable"
            .to_owned());
    }
    Ok(Configuration {
        kube_config_file: PathBuf::from(path),
        allow_ttl: allow,
        deny_ttl: deny,
        retry_backoff: backoff,
        default_allow: typed(fields, "defaultAllow", "bool", Value::as_bool)?.unwrap_or_default(),
    })
}

/// A number of units: -1 is none, 0 the default.
fn duration(
    fields: &Value,
    name: &str,
    unit: i64,
    [min, max]: [i64; 2],
    default: i64,
) -> Result<Duration, String> {
    let nanoseconds = match typed(fields, name, "time.Duration", Value::as_i64)?.unwrap_or_default() {
        -1 => 0,
        0 => default,
        number => {
            let nanoseconds = number.saturating_mul(unit);
            if nanoseconds < min || nanoseconds > max {
                let [min, max, found] = [min, max, nanoseconds].map(format_duration);
                return Err(format!("valid value is between {min} and {max}, got {found}"));
            }
            nanoseconds
        }
    };
    Ok(Duration::from_nanos(nanoseconds.unsigned_abs()))
}

fn typed<'a, T>(
    fields: &'a Value,
    name: &str,
    type_name: &str,
    read: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match fields.field(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| {
            format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go struct field \
                 imagePolicyWebhookConfig.imagePolicy.{name} of type {type_name}",
                go_json_type(value)
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &str) -> Result<Configuration, String> {
        read(Some(format!("imagePolicy: {{kubeConfigFile: f, {fields}}}").as_bytes()))
    }

    #[test]
    fn times_have_units_defaults_and_limits() {
        let found = of("allowTTL: 2, retryBackoff: -1, defaultAllow: true").unwrap();
        let expected = Configuration {
            kube_config_file: PathBuf::from("f"),
            allow_ttl: Duration::from_secs(2),
            deny_ttl: Duration::from_secs(30),
            retry_backoff: Duration::ZERO,
            default_allow: true,
        };
        assert_eq!(found, expected);
        let check = |fields: &str, expected: &str| assert_eq!(of(fields).unwrap_err(), expected);
        check("allowTTL: -5", "valid value is between 1s and 30m0s, got -5s");
        check("denyTTL: 1801", "valid value is between 1s and 30m0s, got 30m1s");
        check("retryBackoff: 300001", "valid value is between 1ns and 5m0s, got 5m0.001s");
        check(
            "denyTTL: x",
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go struct field \
             imagePolicyWebhookConfig.imagePolicy.denyTTL of type time.Duration",
        );
        assert_eq!(read(None).unwrap_err(), "no config specified");
        assert!(
            read(Some(b"{}"))
                .unwrap_err()
                .starts_with("invalid configuration: no configuration has been provided")
        );
    }
}
