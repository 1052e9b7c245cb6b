//! Formats a status for messages: with the field names of the internal type, and every member.

use crate::{declarative::shown, rules};
use pintle_machinery::{Value, ValueExt, json};

const TEXTS: [(&str, &str); 2] = [("Driver", "driver"), ("PoolName", "poolName")];
const POINTERS: [(&str, &str); 7] = [
    ("ResourceSliceCount", "resourceSliceCount"),
    ("TotalDevices", "totalDevices"),
    ("AllocatedDevices", "allocatedDevices"),
    ("AvailableDevices", "availableDevices"),
    ("UnavailableDevices", "unavailableDevices"),
    ("NodeName", "nodeName"),
    ("ValidationError", "validationError"),
];

/// The form of a status.
pub(super) fn of(status: &Value) -> String {
    if status.is_null() {
        return "null".to_owned();
    }
    let list = |field: &str, form: fn(&Value) -> String| match status.at(field) {
        None => "null".to_owned(),
        Some(_) => {
            let items: Vec<String> = status.items_at(field).iter().map(form).collect();
            format!("[{}]", items.join(","))
        }
    };
    let condition = |condition: &Value| shown(condition, "k8s.io/apimachinery/pkg/apis/meta/v1.Condition");
    format!(
        "{{\"PoolCount\":{},\"Pools\":{},\"Conditions\":{}}}",
        rules::value_at(status, "poolCount"),
        list("pools", pool),
        list("conditions", condition)
    )
}

fn pool(pool: &Value) -> String {
    let texts = TEXTS.map(|(name, field)| (name, json!(pool.str_at(field))));
    let generation = ("Generation", json!(pool.i64_at("generation").unwrap_or_default()));
    let pointers = POINTERS.map(|(name, field)| (name, rules::value_at(pool, field).clone()));
    let members = texts.into_iter().chain([generation]).chain(pointers);
    let members: Vec<String> = members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_shown() {
        assert_eq!(of(&Value::Null), "null");
        assert_eq!(of(&json!({})), r#"{"PoolCount":null,"Pools":null,"Conditions":null}"#);
        let pool = r#"{"Driver":"d","PoolName":"","Generation":0,"ResourceSliceCount":null,"TotalDevices":2,"AllocatedDevices":null,"AvailableDevices":null,"UnavailableDevices":null,"NodeName":null,"ValidationError":null}"#;
        assert_eq!(
            of(&json!({"poolCount": 1, "pools": [{"driver": "d", "totalDevices": 2}]})),
            format!(r#"{{"PoolCount":1,"Pools":[{pool}],"Conditions":null}}"#)
        );
    }
}
