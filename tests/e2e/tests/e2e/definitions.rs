//! Tests definitions of real projects, and large generated ones.

use crate::Result;
use pintle_e2e::{Cli, PATIENCE, definitions, start};
use pintle_harness::{definition, wait_for};
use serde_json::{Map, Value, json};
use std::fs;

#[test]
fn definitions_of_real_projects_are_served() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let mut files: Vec<_> =
        fs::read_dir(definitions()?)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() > 20, "there are only {}", files.len());
    let mut failures = Vec::new();
    for file in &files {
        if let Err(error) = try_out(&kubectl, &fs::read_to_string(file)?) {
            failures.push(format!("{}: {error}", file.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[test]
fn wide_and_deep_definitions_are_served() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    // Several thousand lines, and as deep as hand-written definitions.
    for (name, spec) in [("wide", wide(1_000)), ("deep", deep(40))] {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{name}s.size.example.com")},
            "spec": {
                "group": "size.example.com",
                "scope": "Namespaced",
                "names": {"plural": format!("{name}s"), "kind": format!("{}{}", name[..1].to_uppercase(), &name[1..])},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }],
            },
        });
        try_out(&kubectl, &definition.to_string()).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// An unoptimized build takes the same memory and ten times the CPU; its growth is the same.
#[test]
fn every_definition_costs_as_much_as_the_first() -> Result {
    const BATCH: usize = 40;
    let server = start()?;
    let mut connection = server.client()?.connect()?;
    let mut define = |index| -> Result {
        let body = definition::definition(index).to_string();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made =
            connection.request("POST", path, &[("content-type", "application/json")], body.as_bytes())?;
        assert_eq!(made.status, 201, "{}", made.text());
        let path = definition::path_of(index);
        wait_for(&path, PATIENCE, || {
            (connection.request("GET", &path, &[], b"").ok()?.status == 200).then_some(())
        })
    };
    // The first definition also pays for the state that all share.
    define(0)?;
    // The code is not counted: the pages that only the start used are unmapped at some time.
    let (memory, mut cpu, mut batches) = (server.memory_kb("RssAnon")?, server.cpu_time()?, Vec::new());
    for batch in 0..4 {
        (1..=BATCH).try_for_each(|index| define(batch * BATCH + index))?;
        let now = server.cpu_time()?;
        batches.push((now - cpu).as_secs_f64());
        cpu = now;
    }
    let each = server.memory_kb("RssAnon")?.saturating_sub(memory) / (4 * BATCH) as u64;
    assert!(each < 300, "{each} KB a definition");
    assert!(batches[3] < 2.0 * batches[0], "seconds of CPU for {BATCH} definitions each: {batches:?}");
    Ok(())
}

/// Creates the definition and an object of each version, and runs `kubectl explain`.
fn try_out(kubectl: &Cli<'_>, definition: &str) -> Result {
    // Client-side apply would store the definition in an annotation, for which some are too large.
    let name = kubectl.feed(&["create", "-o", "name", "-f", "-"], definition)?;
    let name = name.trim();
    kubectl.wait_established(name)?;
    let definition = kubectl.json(&["get", name])?;
    let spec = &definition["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    for version in
        spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true)
    {
        let schema = &version["schema"]["openAPIV3Schema"];
        let mut object = sample(schema);
        object["apiVersion"] = json!(format!("{group}/{}", text(&version["name"])));
        object["kind"] = spec["names"]["kind"].clone();
        object["metadata"] = json!({"name": "default"});
        // A value that only a rule requires.
        if object["kind"] == "HostEndpoint" {
            object["spec"] = json!({"node": "one", "interfaceName": "eth0"});
        }
        let made = kubectl.feed(&["create", "-o", "name", "-f", "-"], &object.to_string());
        let made = made.map_err(|error| format!("{object}: {error}"))?;
        let (made, resource) = (made.trim(), format!("{plural}.{group}"));
        kubectl.run(&["get", made])?;
        kubectl.run(&["get", made, "-o", "yaml"])?;
        let explained = kubectl.run(&["explain", &resource, "--recursive"])?;
        for field in schema["properties"].as_object().into_iter().flatten().map(|(field, _)| field) {
            if !explained.contains(&format!("\n  {field}\t<")) {
                return Err(format!("{field} is not explained in:\n{explained}").into());
            }
        }
        kubectl.run(&["delete", made])?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A small value that a schema allows, judged by its structure alone.
fn sample(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match text(&schema["type"]) {
        "object" => object(schema),
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(0);
            (0..count).map(|_| sample(&schema["items"])).collect()
        }
        "integer" => json!(schema["minimum"].as_f64().unwrap_or(1.0) as i64),
        "number" => json!(schema["minimum"].as_f64().unwrap_or(1.5)),
        "boolean" => json!(true),
        _ => match text(&schema["format"]) {
            "date-time" => json!("2026-01-01T00:00:00Z"),
            "cidr" => json!("10.0.0.0/8"),
            "ipv4" => json!("10.0.0.1"),
            _ => json!("a".repeat(schema["minLength"].as_u64().unwrap_or(1).max(1) as usize)),
        },
    }
}

fn object(schema: &Value) -> Value {
    // The first of alternatives with required fields.
    let alternative = ["oneOf", "anyOf"].iter().find_map(|junctor| schema[*junctor].get(0));
    let required = [Some(schema), alternative].into_iter().flatten();
    let required = required.flat_map(|schema| schema["required"].as_array().into_iter().flatten());
    let mut members: Map<String, Value> =
        required.map(|name| (text(name).to_owned(), sample(&schema["properties"][text(name)]))).collect();
    let least = schema["minProperties"].as_u64().unwrap_or(0) as usize;
    if members.is_empty() && least > 0 {
        let properties = schema["properties"].as_object().into_iter().flatten();
        members.extend(properties.take(least).map(|(name, property)| (name.clone(), sample(property))));
    }
    // Not required, but an object without it tests little.
    if members.is_empty()
        && let Some(spec) = schema["properties"].get("spec")
    {
        members.insert("spec".to_owned(), sample(spec));
    }
    members.into()
}

/// A schema of an object with many members of every type.
fn wide(members: usize) -> Value {
    let properties: Map<String, Value> = (0..members)
        .map(|index| {
            let schema = match index % 5 {
                0 => json!({"type": "string", "maxLength": 63, "pattern": "^[a-z]*$", "default": "abc"}),
                1 => json!({"type": "integer", "format": "int32", "minimum": 0}),
                2 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
                3 => json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}}),
                _ => json!({
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "value": {"type": "number", "nullable": true}},
                    "x-kubernetes-validations": [{"rule": "self.name.size() < 100", "message": "is too long"}],
                }),
            };
            let described = json!(format!("Member {index}, of which there is something to be said in one sentence."));
            (format!("member{index}"), with(schema, "description", described))
        })
        .collect();
    json!({"type": "object", "required": ["member0", "member4"], "properties": properties})
}

/// A schema of nested objects.
fn deep(depth: usize) -> Value {
    let mut schema = json!({"type": "string"});
    for level in 0..depth {
        schema = match level % 3 {
            0 => json!({"type": "object", "required": ["inner"], "properties": {"inner": schema}}),
            1 => json!({"type": "array", "minItems": 1, "items": schema}),
            _ => {
                json!({"type": "object", "properties": {"a": schema, "b": {"type": "integer"}}, "required": ["a"]})
            }
        };
    }
    schema
}

fn with(mut schema: Value, name: &str, value: Value) -> Value {
    schema[name] = value;
    schema
}
