//! Converts between the first beta of the group and its stable version. In the beta the fields of a request for exactly
//! one class are in the request itself, and those of a device in a member `basic`.

use crate::declare::with_api_version;
use pintle_machinery::{Map, Value, ValueExt};
use pintle_registry::Conversion;

const V1: &str = "resource.k8s.io/v1";
const V1BETA1: &str = "resource.k8s.io/v1beta1";

/// The conversion of claims.
pub(super) const CLAIM: Conversion = Conversion {
    to_storage: |claim| requests_of(claim, "spec.devices.requests", V1, request_to_v1),
    from_storage: |claim| requests_of(claim, "spec.devices.requests", V1BETA1, request_from_v1),
};

/// The conversion of templates of claims.
pub(super) const TEMPLATE: Conversion = Conversion {
    to_storage: |template| requests_of(template, "spec.spec.devices.requests", V1, request_to_v1),
    from_storage: |template| requests_of(template, "spec.spec.devices.requests", V1BETA1, request_from_v1),
};

/// The conversion of slices.
pub(super) const SLICE: Conversion = Conversion { to_storage: slice_to_v1, from_storage: slice_from_v1 };

/// The members of a request for exactly one class.
const EXACT: [&str; 7] =
    ["deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity"];

fn requests_of(object: Value, path: &str, api_version: &str, convert: fn(&mut Map)) -> Value {
    let mut object = with_api_version(object, api_version);
    object.items_at_mut(path).iter_mut().filter_map(Value::as_object_mut).for_each(convert);
    object
}

fn request_to_v1(request: &mut Map) {
    // Only access is a pointer, whose zero value says something.
    let exact: Map = EXACT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), request.remove(name)?)))
        .filter(|(name, value)| name == "adminAccess" && value.is_boolean() || !is_zero(value))
        .collect();
    if exact.is_empty() {
        return;
    }
    let mut exact = exact;
    // This version has no defaults for a request that names no class: those of the stable version must not be applied.
    if !exact.contains_key("deviceClassName") && !exact.contains_key("allocationMode") {
        exact.insert("allocationMode", Value::from(""));
    }
    request.insert("exactly", Value::Object(exact));
}

fn request_from_v1(request: &mut Map) {
    if let Some(Value::Object(exact)) = request.remove("exactly") {
        request.extend(exact);
    }
}

fn slice_to_v1(slice: Value) -> Value {
    let mut slice = with_api_version(slice, V1);
    if let Some(spec) = slice.at_mut("spec").and_then(Value::as_object_mut) {
        // Neither field was a pointer: zero is the same as absent.
        for name in ["nodeName", "allNodes"] {
            if spec.get(name).is_some_and(is_zero) {
                spec.remove(name);
            }
        }
    }
    for device in slice.items_at_mut("spec.devices").iter_mut().filter_map(Value::as_object_mut) {
        if let Some(Value::Object(basic)) = device.remove("basic") {
            device.extend(basic);
        }
    }
    slice
}

fn slice_from_v1(slice: Value) -> Value {
    let mut slice = with_api_version(slice, V1BETA1);
    for device in slice.items_at_mut("spec.devices").iter_mut().filter_map(Value::as_object_mut) {
        let name = device.remove("name");
        let basic = std::mem::take(device);
        device.extend(name.map(|name| ("name".to_owned(), name)));
        device.insert("basic", Value::Object(basic));
    }
    slice
}

/// Whether a value is the zero value of its Go type.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn requests_go_there_and_back() {
        let check = |beta: Value, stable: Value| {
            let claim = |version: &str, request: &Value| json!({"apiVersion": version, "spec": {"devices": {"requests": [request]}}});
            let (beta, stable) = (claim(V1BETA1, &beta), claim(V1, &stable));
            assert_eq!((CLAIM.to_storage)(beta.clone()), stable);
            assert_eq!((CLAIM.from_storage)(stable), beta);
        };
        check(
            json!({"name": "r", "deviceClassName": "c", "count": 2, "adminAccess": true}),
            json!({"name": "r", "exactly": {"deviceClassName": "c", "count": 2, "adminAccess": true}}),
        );
        check(
            json!({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "c"}]}),
            json!({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "c"}]}),
        );
        check(
            json!({"name": "r", "deviceClassName": "c", "adminAccess": false}),
            json!({"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": false}}),
        );
        check(json!({"name": "r"}), json!({"name": "r"}));
    }

    #[test]
    fn requests_without_a_class_get_no_defaults() {
        let mut request = json!({"adminAccess": false, "allocationMode": "ExactCount"});
        request_to_v1(request.as_object_mut().unwrap());
        assert_eq!(request, json!({"exactly": {"adminAccess": false, "allocationMode": "ExactCount"}}));
        let mut devices = json!({"requests": [{"capacity": {}}]});
        request_to_v1(devices["requests"][0].as_object_mut().unwrap());
        super::super::claim_spec::set_defaults(Some(&mut devices));
        assert_eq!(devices, json!({"requests": [{"exactly": {"capacity": {}, "allocationMode": ""}}]}));
    }

    #[test]
    fn both_ways_to_ask_stay_both() {
        let mut request = json!({"deviceClassName": "c", "count": 0, "firstAvailable": [{}]});
        request_to_v1(request.as_object_mut().unwrap());
        assert_eq!(request, json!({"exactly": {"deviceClassName": "c"}, "firstAvailable": [{}]}));
    }

    #[test]
    fn devices_go_there_and_back() {
        let beta = json!({
            "apiVersion": V1BETA1,
            "spec": {"devices": [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}, {"name": "e", "basic": {}}]},
        });
        let stable = json!({
            "apiVersion": V1, "spec": {"devices": [{"name": "d", "attributes": {"a": {"int": 1}}}, {"name": "e"}]},
        });
        assert_eq!((SLICE.to_storage)(beta.clone()), stable);
        assert_eq!((SLICE.from_storage)(stable), beta);
        let empty = json!({"apiVersion": V1BETA1, "spec": {"nodeName": "", "allNodes": false}});
        assert_eq!((SLICE.to_storage)(empty), json!({"apiVersion": V1, "spec": {}}));
    }
}
