//! Makes the scale of an object.

use pintle_machinery::{
    GroupVersionKind, Status, Value, ValueExt, json,
    nested::{nested_int64, nested_string},
    selectors::format_label_selector,
};
use pintle_registry::{ScalePaths, ScaleValues};
use pintle_schema::{Schema, SchemaRef};

/// The scale of an object, and whether the object has desired replicas.
///
/// # Errors
/// When a value at the paths has the wrong type, where they may have any.
pub(super) fn scale_of(object: &Value, paths: &ScalePaths) -> Result<(Value, bool), String> {
    if paths.values == ScaleValues::Any {
        return scale_of_any_values(object, paths);
    }
    let mut scale = plain_scale_of(object);
    let replicas = |path: &str| object.i64_at(path).unwrap_or_default();
    set_replicas(&mut scale, replicas(&paths.spec_replicas), replicas(&paths.status_replicas));
    if let Some(selector) = paths.selector.as_deref().and_then(|path| object.at(path)) {
        let text = match selector {
            Value::String(text) => text.to_string(),
            selector
                if selector.field("matchLabels").is_some()
                    || selector.field("matchExpressions").is_some() =>
            {
                format_label_selector(Some(selector))
            }
            selector => {
                let pairs = selector.as_object().into_iter().flatten();
                let pairs: Vec<String> = pairs
                    .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                    .collect();
                pairs.join(",")
            }
        };
        if !text.is_empty() {
            scale.set("status.selector", text);
        }
    }
    Ok((scale, true))
}

/// The scale of an object with any values at the paths; the selector is a text.
fn scale_of_any_values(object: &Value, paths: &ScalePaths) -> Result<(Value, bool), String> {
    let wanted = nested_int64(object, &paths.spec_replicas)?;
    let actual = nested_int64(object, &paths.status_replicas)?;
    let selector = paths.selector.as_deref().map(|path| nested_string(object, path));
    let mut scale = plain_scale_of(object);
    // Go truncates to 32 bits.
    let cut = |number: Option<i64>| i64::from(number.unwrap_or_default() as i32);
    set_replicas(&mut scale, cut(wanted), cut(actual));
    if let Some(selector) = selector.transpose()?.flatten().filter(|text| !text.is_empty()) {
        scale.set("status.selector", selector);
    }
    Ok((scale, wanted.is_some()))
}

/// Sets the replicas of a scale. Zero desired replicas are omitted, so that no manager owns the field.
fn set_replicas(scale: &mut Value, wanted: i64, actual: i64) {
    if wanted != 0 {
        scale.set("spec.replicas", wanted);
    }
    scale.set("status.replicas", actual);
}

/// A scale with the object's metadata alone.
fn plain_scale_of(object: &Value) -> Value {
    let mut scale =
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {}, "status": {}});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&format!("metadata.{name}")) {
            scale.set(&format!("metadata.{name}"), value.clone());
        }
    }
    scale
}

/// The kind of scales.
pub(super) fn scale_kind() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v1", "Scale")
}

/// The schema of scales.
///
/// # Errors
/// 404 when the built-in schema does not have the kind.
pub(super) fn scale_schema() -> Result<SchemaRef<'static>, Status> {
    Schema::builtin().by_type_name("k8s.io/api/autoscaling/v1.Scale").ok_or_else(Status::no_such_resource)
}
