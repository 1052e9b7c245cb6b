//! The strategy of secrets. `stringData` is write-only: clients set unencoded text in it, and defaulting moves it to
//! `data`.

use crate::core::data::{self, MAX_SIZE, Member};
use crate::{embedded_json, rules};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt, meta::ObjectMeta,
    validation::validate_immutable_field,
};
use pintle_registry::{RequestContext, Strategy};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";

pub(super) struct SecretStrategy;

impl Strategy for SecretStrategy {
    fn set_defaults(&self, object: &mut Value) {
        if let Some(Value::Object(texts)) = object.remove_at("stringData") {
            let data = object.object_at_mut("data");
            for (key, text) in texts {
                data.insert(key, data::encoded(text.as_str().unwrap_or_default()));
            }
        }
        if object.str_at("type").is_empty() {
            object.set("type", "Opaque");
        }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        if object.str_at("type").is_empty() {
            rules::keep(object, old, "type");
        }
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        let (new_type, old_type) = (rules::value_at(object, "type"), rules::value_at(old, "type"));
        errors.extend(validate_immutable_field(new_type, old_type, &FieldPath::new("type")));
        let members = [Member { name: "data", is_empty_by_default: false }];
        errors.extend(data::validate_immutable(object, old, &members, context.empty_fields));
        errors.extend(validate(object));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings(object)
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, true);
    let path = FieldPath::new("data");
    let data = object.map_at("data");
    let mut size = 0;
    for (key, value) in data {
        errors.extend(data::validate_key(key, &path));
        size += data::decoded_len(value);
    }
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(&path, MAX_SIZE));
    }
    errors.extend(validate_type(object, data, &path));
    errors
}

/// Validates the data and annotations that each type of secret requires.
fn validate_type(object: &Value, data: &Map, path: &FieldPath) -> ErrorList {
    let required = |key: &str| FieldError::required(&path.key(key), "");
    let missing = |keys: &[&str]| -> ErrorList {
        keys.iter().filter(|key| !data.contains_key(key)).map(|key| required(key)).collect()
    };
    match object.str_at("type") {
        "kubernetes.io/service-account-token" => {
            if object.annotation(SERVICE_ACCOUNT_NAME).unwrap_or_default().is_empty() {
                let path = FieldPath::new("metadata.annotations").key(SERVICE_ACCOUNT_NAME);
                return vec![FieldError::required(&path, "")];
            }
            ErrorList::new()
        }
        "kubernetes.io/dockercfg" => validate_json(data, ".dockercfg", path),
        "kubernetes.io/dockerconfigjson" => validate_json(data, ".dockerconfigjson", path),
        "kubernetes.io/basic-auth" => match missing(&["username", "password"]) {
            both if both.len() == 2 => both,
            _ => ErrorList::new(),
        },
        "kubernetes.io/ssh-auth" => match data.get("ssh-privatekey") {
            Some(key) if data::decoded_len(key) > 0 => ErrorList::new(),
            _ => vec![required("ssh-privatekey")],
        },
        "kubernetes.io/tls" => missing(&[CERTIFICATE, PRIVATE_KEY]),
        _ => ErrorList::new(),
    }
}

fn validate_json(data: &Map, key: &str, path: &FieldPath) -> ErrorList {
    let path = path.key(key);
    let Some(value) = data.get(key) else {
        return vec![FieldError::required(&path, "")];
    };
    let error = embedded_json::check_object(&data::decoded(value)).err();
    error.into_iter().map(|why| FieldError::invalid(&path, "<secret contents redacted>", why)).collect()
}

/// Warns about a certificate or key without PEM data, which is stored nevertheless.
fn warnings(object: &Value) -> Vec<String> {
    if object.str_at("type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let is_pem = |key: &str| {
        let value = object.map_at("data").get(key).map(data::decoded).unwrap_or_default();
        String::from_utf8_lossy(&value).contains("-----BEGIN ")
    };
    let what = match (is_pem(CERTIFICATE), is_pem(PRIVATE_KEY)) {
        (false, _) => "certificate",
        (true, false) => "key",
        (true, true) => return Vec::new(),
    };
    vec![format!("tls: failed to find any PEM data in {what} input")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn string_data_overrides_data() {
        let mut secret = json!({"data": {"k": "dg=="}, "stringData": {"k": "overrides", "empty": ""}});
        SecretStrategy.set_defaults(&mut secret);
        assert_eq!(secret, json!({"data": {"k": "b3ZlcnJpZGVz", "empty": ""}, "type": "Opaque"}));
    }

    #[test]
    fn malformed_docker_configurations_have_the_messages_of_go() {
        let secret = |text: &str| {
            let mut secret = json!({
                "metadata": {"name": "a", "namespace": "n"},
                "type": "kubernetes.io/dockercfg",
                "stringData": {".dockercfg": text},
            });
            SecretStrategy.set_defaults(&mut secret);
            validate(&secret).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let error = |why: &str| {
            vec![format!("data[.dockercfg]: Invalid value: \"<secret contents redacted>\": {why}")]
        };
        assert_eq!(secret("Bad"), error("invalid character 'B' looking for beginning of value"));
        assert_eq!(secret("{\"auths\":{}"), error("unexpected end of JSON input"));
        assert_eq!(secret("{}"), Vec::<String>::new());
    }

    #[test]
    fn types_require_their_keys() {
        let check = |secret_type: &str, data: Value, fields: &[&str]| {
            let secret =
                json!({"metadata": {"name": "a", "namespace": "n"}, "type": secret_type, "data": data});
            let errors: Vec<String> = validate(&secret).iter().map(|error| error.field.to_string()).collect();
            assert_eq!(errors, fields, "{secret_type}");
        };
        check("Opaque", json!({}), &[]);
        check("example.com/any", json!({}), &[]);
        check("kubernetes.io/basic-auth", json!({}), &["data[username]", "data[password]"]);
        check("kubernetes.io/basic-auth", json!({"password": ""}), &[]);
        check("kubernetes.io/ssh-auth", json!({"ssh-privatekey": ""}), &["data[ssh-privatekey]"]);
        check("kubernetes.io/tls", json!({"tls.crt": ""}), &["data[tls.key]"]);
        check("kubernetes.io/dockercfg", json!({".dockercfg": "e30="}), &[]);
        check("kubernetes.io/dockercfg", json!({".dockercfg": "eA=="}), &["data[.dockercfg]"]);
        check("kubernetes.io/dockerconfigjson", json!({}), &["data[.dockerconfigjson]"]);
        check(
            "kubernetes.io/service-account-token",
            json!({}),
            &["metadata.annotations[kubernetes.io/service-account.name]"],
        );
    }
}
