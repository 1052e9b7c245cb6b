//! Generates the built-in schema table from the recorded facts about the API types.
//!
//! Input: `reference/types.json` beside the project (`PINTLE_SHARED` names another place). Output: one
//! line per fact, described at the head of `crates/schema/src/builtin.rs`, so that the diff of an API
//! version shows its changes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::shared;

const TABLE: &str = "crates/schema/src/builtin/v1_36.table";
const TYPE_META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.TypeMeta";

/// Types with a wire form of their own, and their words in the table.
const SCALARS: [(&str, &str); 9] = [
    ("k8s.io/apimachinery/pkg/api/resource.Quantity", "quantity"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1.Duration", "duration"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1", "fieldsv1"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime", "microtime"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1.Time", "time"),
    ("k8s.io/apimachinery/pkg/runtime.RawExtension", "raw"),
    ("k8s.io/apimachinery/pkg/util/intstr.IntOrString", "intorstring"),
    ("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON", "json"),
    ("interface{}", "any"),
];

/// Go types of the machinery that no object contains.
const NOT_OBJECTS: [&str; 3] = ["InternalEvent", "Patch", "Timestamp"];

/// Constants that defaults refer to by name.
const CONSTANTS: [(&str, &str); 2] =
    [("AzureDataDiskCachingReadWrite", "ReadWrite"), ("AzureSharedBlobDisk", "Shared")];

/// The values of enums whose constants in Go are conversions, so that the facts do not list them.
const CONVERTED_ENUMS: [(&str, &[&str]); 3] = [
    ("AddressType", &["FQDN", "IPv4", "IPv6"]),
    ("DeviceAllocationMode", &["All", "ExactCount"]),
    ("PathType", &["Exact", "ImplementationSpecific", "Prefix"]),
];

/// Writes the table, or only checks that it is up to date.
pub(crate) fn run(root: &Path, check: bool) -> Result<(), String> {
    let facts = shared::read(root, "reference/types.json")?;
    let facts: BTreeMap<String, Value> =
        serde_json::from_str(&facts).map_err(|error| format!("types.json: {error}"))?;
    let table = table(&facts)?;
    let path = root.join(TABLE);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    if old == table {
        return Ok(());
    }
    if check {
        return Err(format!("{TABLE} is stale: run `cargo xtask codegen`"));
    }
    std::fs::write(&path, table).map_err(|error| format!("{TABLE}: {error}"))
}

fn table(facts: &BTreeMap<String, Value>) -> Result<String, String> {
    let mut packages: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
    for (name, fact) in facts {
        let (package, name) = name.rsplit_once('.').ok_or("a type without a package")?;
        let exported = name.starts_with(|first: char| first.is_ascii_uppercase());
        let machinery = package.ends_with("pkg/runtime") || package.ends_with("pkg/api/resource");
        let scalar = SCALARS.iter().any(|(scalar, _)| scalar.rsplit_once('.') == Some((package, name)));
        if exported
            && !machinery
            && !package.ends_with("util/intstr")
            && !scalar
            && !NOT_OBJECTS.contains(&name)
        {
            packages.entry(package).or_default().push((name, fact));
        }
    }

    let mut out = String::from("# Made by `cargo xtask codegen`; see builtin.rs for the format.\n");
    for (package, types) in packages {
        let (group, version) = group_version(package);
        line(&mut out, &["p", package, group, version]);
        for (name, fact) in types {
            type_lines(&mut out, package, name, fact)
                .map_err(|error| format!("{package}.{name}: {error}"))?;
        }
    }
    Ok(out)
}

/// API group and version of a package; `-` for packages of shared types, and for the core group's name.
fn group_version(package: &str) -> (&str, &str) {
    let mut parts = package.rsplit('/');
    let (Some(version), Some(directory)) = (parts.next(), parts.next()) else { return ("-", "-") };
    let group = match directory {
        "meta" | "pkg" | "api" => return ("-", "-"),
        "core" => "-",
        "apps" | "autoscaling" | "batch" | "extensions" | "policy" => directory,
        "admission" => "admission.k8s.io",
        "admissionregistration" => "admissionregistration.k8s.io",
        "apidiscovery" => "apidiscovery.k8s.io",
        "apiextensions" => "apiextensions.k8s.io",
        "apiregistration" => "apiregistration.k8s.io",
        "apiserverinternal" => "internal.apiserver.k8s.io",
        "authentication" => "authentication.k8s.io",
        "authorization" => "authorization.k8s.io",
        "certificates" => "certificates.k8s.io",
        "coordination" => "coordination.k8s.io",
        "discovery" => "discovery.k8s.io",
        "events" => "events.k8s.io",
        "flowcontrol" => "flowcontrol.apiserver.k8s.io",
        "imagepolicy" => "imagepolicy.k8s.io",
        "networking" => "networking.k8s.io",
        "node" => "node.k8s.io",
        "rbac" => "rbac.authorization.k8s.io",
        "resource" => "resource.k8s.io",
        "scheduling" => "scheduling.k8s.io",
        "storage" => "storage.k8s.io",
        "storagemigration" => "storagemigration.k8s.io",
        _ => return ("-", "-"),
    };
    (group, version)
}

fn type_lines(out: &mut String, package: &str, name: &str, fact: &Value) -> Result<(), String> {
    let markers = || fact["markers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(underlying) = fact["underlying"].as_str() {
        let ty = type_word(package, underlying)?;
        let mut words = vec!["a", name, &ty];
        if markers().any(|marker| marker == "+protobuf.nullable=true") && underlying.starts_with("[]") {
            words.push("wrapped");
        }
        let listed = || fact["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let converted = CONVERTED_ENUMS.iter().filter(|(enumeration, _)| *enumeration == name);
        let values: Vec<&str> = match markers().any(|marker| marker == "+enum") {
            true => listed().chain(converted.flat_map(|(_, values)| *values).copied()).collect(),
            false => Vec::new(),
        };
        let values = format!("enum={}", values.join("|"));
        if values != "enum=" {
            words.push(&values);
        }
        line(out, &words);
        return Ok(());
    }
    let no_fields = Vec::new();
    let fields = fact["fields"].as_array().unwrap_or(&no_fields);
    if name.starts_with("JSONSchemaPropsOr") {
        let (union, other) = match name {
            "JSONSchemaPropsOrArray" => ("array", "[].JSONSchemaProps"),
            "JSONSchemaPropsOrBool" => ("bool", "bool"),
            "JSONSchemaPropsOrStringArray" => ("strings", "[]string"),
            _ => return Err("unknown union".to_owned()),
        };
        line(out, &["u", name, union, ".JSONSchemaProps", other]);
        return Ok(());
    }

    let mut words = vec!["s", name];
    if fields.iter().any(|field| field["type"] == TYPE_META) {
        words.push("object");
    }
    match fact["mapType"].as_str() {
        Some("atomic") => words.push("atomic"),
        None | Some("granular") => {}
        Some(other) => return Err(format!("map type {other}")),
    }
    line(out, &words);
    for (position, field) in fields.iter().enumerate() {
        if field["type"] == TYPE_META {
            if position != 0 || field["number"].is_number() {
                return Err("TypeMeta is not the first field".to_owned());
            }
            continue;
        }
        field_line(out, package, field)?;
    }
    Ok(())
}

fn field_line(out: &mut String, package: &str, field: &Value) -> Result<(), String> {
    let ty = type_word(package, field["type"].as_str().ok_or("a field without a type")?)?;
    let number = field["number"].as_u64().unwrap_or(0).to_string();
    if field["inline"] == true {
        if field["pointer"] == true {
            return Err("an embedded pointer".to_owned());
        }
        line(out, &["i", &number, &ty]);
        return Ok(());
    }
    let name = field["name"].as_str().ok_or("a field without a name")?;
    let mut words: Vec<String> = ["f", name, &number, &ty].map(str::to_owned).into();
    let mut flag = |set: bool, word: &str| {
        if set {
            words.push(word.to_owned());
        }
    };
    flag(field["pointer"] == true, "*");
    match field["omit"].as_str() {
        None => {}
        Some("empty") => flag(true, "omit"),
        Some("empty+zero") => flag(true, "omitzero"),
        Some(other) => return Err(format!("{name}: omit {other}")),
    }
    flag(field["required"] == true, "required");
    flag(field["optional"] == true, "optional");
    for (key, word) in
        [("listType", "list"), ("mapType", "map"), ("patchStrategy", "patch"), ("patchMergeKey", "key")]
    {
        if let Some(value) = field[key].as_str() {
            flag(true, &format!("{word}={value}"));
        }
    }
    if let Some(keys) = field["listMapKeys"].as_array() {
        let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
        flag(true, &format!("keys={}", keys.join(",")));
    }
    if let Some(default) = field["default"].as_str() {
        let default = match default.strip_prefix("ref(").and_then(|rest| rest.strip_suffix(')')) {
            Some(constant) => CONSTANTS
                .iter()
                .find(|(name, _)| *name == constant)
                .map(|(_, value)| Value::from(*value).to_string())
                .ok_or_else(|| format!("{name}: default refers to {constant}"))?,
            None => default.to_owned(),
        };
        flag(true, &format!("default={default}"));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    line(out, &words);
    Ok(())
}

/// The word for a type in the table.
fn type_word(package: &str, ty: &str) -> Result<String, String> {
    if ty == "[]byte" {
        return Ok("bytes".to_owned());
    }
    if let Some(item) = ty.strip_prefix("[]") {
        return Ok(format!("[]{}", type_word(package, item)?));
    }
    if let Some((key, value)) = ty.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return Ok(format!("[{}]{}", type_word(package, key)?, type_word(package, value)?));
    }
    if let Some((_, word)) = SCALARS.iter().find(|(scalar, _)| *scalar == ty) {
        return Ok((*word).to_owned());
    }
    if ["string", "bool", "int32", "int64", "float64"].contains(&ty) {
        return Ok(ty.to_owned());
    }
    let (owner, name) = ty.rsplit_once('.').ok_or_else(|| format!("unknown type {ty}"))?;
    if owner == package {
        return Ok(format!(".{name}"));
    }
    if !owner.starts_with("k8s.io/") {
        return Err(format!("unknown type {ty}"));
    }
    Ok(format!("{}.{name}", short(owner)))
}

/// The last two parts of a package path, which are unique.
fn short(package: &str) -> &str {
    let version = package.rfind('/').unwrap_or(0);
    let start = package.get(..version).and_then(|head| head.rfind('/')).map_or(0, |slash| slash + 1);
    package.get(start..).unwrap_or(package)
}

fn line(out: &mut String, words: &[&str]) {
    let _ = writeln!(out, "{}", words.join(" "));
}
