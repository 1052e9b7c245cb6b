//! The configuration of `EventRateLimit`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-eventratelimit.v1alpha1/>).

use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    config_file::{ConfigFile, ConfigKind},
    status::aggregate,
};
use std::{num::NonZeroUsize, sync::LazyLock};

const KIND: ConfigKind =
    ConfigKind { kind: "Configuration", group: "eventratelimit.admission.k8s.io", versions: &["v1alpha1"] };

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let (text, number) = (types.text(), types.integer());
        let fields = [("type", text), ("qps", number), ("burst", number), ("cacheSize", number)];
        let limit = types.structure(&fields, &[]);
        let limits = types.list(limit);
        types.root(&[("limits", limits)], &[])
    });
    file.of_scheme("pkg/admission/eventratelimit/config.go:31")
});

/// The number of keys whose events a limit counts, unless it is configured.
const DEFAULT_CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// A limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) limit_type: LimitType,
    pub(super) queries_per_second: i64,
    pub(super) burst: i64,
    /// The number of keys whose events are counted.
    pub(super) cache_size: NonZeroUsize,
}

/// The events that share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitType {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

impl LimitType {
    const ALL: [LimitType; 4] =
        [LimitType::Namespace, LimitType::Server, LimitType::SourceAndObject, LimitType::User];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            LimitType::Server => "Server",
            LimitType::Namespace => "Namespace",
            LimitType::User => "User",
            LimitType::SourceAndObject => "SourceAndObject",
        }
    }
}

/// Reads the limits.
pub(super) fn read(text: Option<&[u8]>) -> Result<Vec<Limit>, String> {
    let tree = match text {
        Some(text) => FILE.decode(text).map_err(|error| error.to_string())?.value,
        None => Value::Null,
    };
    let path = FieldPath::new("limits");
    let mut errors = ErrorList::new();
    let items = tree.items_at("limits");
    if items.is_empty() {
        let value = tree.at("limits").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&path, value, "must not be empty"));
    }
    let mut limits = Vec::new();
    for (index, item) in items.iter().enumerate() {
        limits.extend(limit(item, &path.index(index), &mut errors));
    }
    match errors.is_empty() {
        true => Ok(limits),
        false => Err(aggregate(errors.iter().map(ToString::to_string))),
    }
}

fn limit(item: &Value, path: &FieldPath, errors: &mut ErrorList) -> Option<Limit> {
    let number = |name: &str| item.i64_at(name).unwrap_or_default();
    let limit_type = LimitType::ALL.into_iter().find(|own| own.as_str() == item.str_at("type"));
    if limit_type.is_none() {
        let supported = LimitType::ALL.map(LimitType::as_str);
        errors.push(FieldError::not_supported(&path.child("type"), item.str_at("type"), &supported));
    }
    for name in ["burst", "qps"] {
        if number(name) <= 0 {
            errors.push(FieldError::invalid(&path.child(name), number(name), "must be positive"));
        }
    }
    let cache_size = number("cacheSize");
    if cache_size < 0 && limit_type != Some(LimitType::Server) {
        errors.push(FieldError::invalid(&path.child("cacheSize"), cache_size, "must not be negative"));
    }
    let cache_size = usize::try_from(cache_size).ok().and_then(NonZeroUsize::new);
    Some(Limit {
        limit_type: limit_type?,
        queries_per_second: number("qps"),
        burst: number("burst"),
        cache_size: cache_size.unwrap_or(DEFAULT_CACHE_SIZE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_limits_are_refused() {
        let check = |limits: &str, expected: &str| {
            let text = format!("apiVersion: {}/v1alpha1\nkind: Configuration\nlimits: {limits}", KIND.group);
            assert_eq!(read(Some(text.as_bytes())).unwrap_err(), expected);
        };
        assert_eq!(read(None).unwrap_err(), "limits: Invalid value: null: must not be empty");
        check("[]", "limits: Invalid value: []: must not be empty");
        check(
            "[{type: Pod, qps: 1, burst: 1}]",
            "limits[0].type: Unsupported value: \"Pod\": supported values: \"Namespace\", \"Server\", \"SourceAndObject\", \
             \"User\"",
        );
        check(
            "[{type: User, qps: 0, burst: -1, cacheSize: -2}]",
            "[limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: must be positive, \
             limits[0].cacheSize: Invalid value: -2: must not be negative]",
        );
        assert_eq!(
            read(Some(b"kind: Configuration\napiVersion: x/v1")).unwrap_err(),
            "no kind \"Configuration\" is registered for version \"x/v1\" in scheme \"pkg/admission/eventratelimit/config.go:31\""
        );
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let text = b"kind: Configuration\napiVersion: eventratelimit.admission.k8s.io/v1alpha1\nx: 1\nlimits: [{type: Server, qps: 5, burst: 6}]";
        let limits = read(Some(text)).unwrap();
        let expected = Limit {
            limit_type: LimitType::Server,
            queries_per_second: 5,
            burst: 6,
            cache_size: DEFAULT_CACHE_SIZE,
        };
        assert_eq!(limits, [expected]);
    }
}
