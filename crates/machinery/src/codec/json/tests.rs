use pintle_schema::{FieldSpec, Schema, SchemaBuilder, SchemaRef, StructSpec, Type};
use pintle_tree::json;

use super::*;
use crate::codec::{Decoded, StrictProblem};

fn kind(group: &str, version: &str, kind: &str) -> SchemaRef<'static> {
    Schema::builtin().by_kind(group, version, kind).unwrap()
}

fn read(schema: SchemaRef<'_>, text: &str) -> Result<Decoded, String> {
    decode(text.as_bytes(), schema).map_err(|error| error.to_string())
}

fn problems(schema: SchemaRef<'_>, text: &str) -> Vec<String> {
    read(schema, text).unwrap().problems.iter().map(ToString::to_string).collect()
}

/// Decodes a body and encodes it again.
fn rewrite(schema: SchemaRef<'_>, text: &str) -> String {
    String::from_utf8(encode(&read(schema, text).unwrap().value, schema)).unwrap()
}

#[test]
fn a_tree_has_no_zero_values_but_those_of_pointers() {
    let deployment = kind("apps", "v1", "Deployment");
    let text = r#"{"kind":"Deployment","apiVersion":"apps/v1",
        "metadata":{"name":"","labels":{},"generation":0,"creationTimestamp":null},
        "spec":{"replicas":0,"paused":false,"selector":{},"strategy":{},
          "template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"","resources":{}}],
          "securityContext":{},"volumes":[],"terminationGracePeriodSeconds":0}}},
        "status":{}}"#;
    assert_eq!(
        read(deployment, text).unwrap().value,
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 0, "selector": {},
            "template": {"spec": {"containers": [{}], "securityContext": {}, "terminationGracePeriodSeconds": 0}}}})
    );
}

#[test]
fn the_encoder_writes_what_go_always_writes() {
    assert_eq!(
        rewrite(kind("apps", "v1", "Deployment"), r#"{"apiVersion":"apps/v1","kind":"Deployment"}"#),
        r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{},"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}"#
    );
    assert_eq!(
        rewrite(
            kind("", "v1", "Pod"),
            r#"{"status":{"conditions":[{"type":"Ready"}]},"metadata":{"name":"a<b&\u2028"}}"#
        ),
        r#"{"metadata":{"name":"a\u003cb\u0026\u2028"},"spec":{"containers":null},"status":{"conditions":[{"type":"Ready","status":"","lastProbeTime":null,"lastTransitionTime":null}]}}"#
    );
    assert_eq!(
        rewrite(kind("", "v1", "Service"), r#"{"spec":{"ports":[{"port":1}]}}"#),
        r#"{"metadata":{},"spec":{"ports":[{"port":1,"targetPort":0}]},"status":{"loadBalancer":{}}}"#
    );
    let role = kind("rbac.authorization.k8s.io", "v1", "Role");
    assert_eq!(rewrite(role, r#"{"rules":[]}"#), r#"{"metadata":{},"rules":[]}"#);
    assert_eq!(rewrite(role, r#"{"rules":null}"#), r#"{"metadata":{},"rules":null}"#);
}

#[test]
fn values_are_written_as_go_has_them() {
    let pod = kind("", "v1", "Pod");
    let container = |resources: &str| {
        let text = format!(r#"{{"spec":{{"containers":[{{"name":"c","resources":{resources}}}]}}}}"#);
        let out = rewrite(pod, &text);
        let start = out.find("\"resources\":").unwrap() + 12;
        out[start..out.len() - "}]},\"status\":{}}".len()].to_owned()
    };
    assert_eq!(
        container(r#"{"limits":{"cpu":0.5,"memory":"1024Mi","x":1e3,"y":null,"z":" 1 "}}"#),
        r#"{"limits":{"cpu":"500m","memory":"1Gi","x":"1e3","y":"0","z":"1"}}"#
    );
    let lease = kind("coordination.k8s.io", "v1", "Lease");
    assert_eq!(
        rewrite(
            lease,
            r#"{"metadata":{"creationTimestamp":"2024-01-01T02:00:00.5+02:00"},"spec":{"renewTime":"2024-01-01T00:00:00.000001Z"}}"#
        ),
        r#"{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"renewTime":"2024-01-01T00:00:00.000001Z"}}"#
    );
    assert_eq!(
        rewrite(kind("", "v1", "Secret"), r#"{"data":{"a":"Ax==","b":null,"c":"","d":[1,2]}}"#),
        r#"{"metadata":{},"data":{"a":"Aw==","b":"","c":"","d":"AQI="}}"#
    );
    assert_eq!(
        rewrite(
            kind("apps", "v1", "ControllerRevision"),
            r#"{"data": {"b": 1.0, "a": [null, "<", 18446744073709551616]}}"#
        ),
        r#"{"metadata":{},"data":{"a":[null,"\u003c",18446744073709552000],"b":1},"revision":0}"#
    );
}

#[test]
fn unknown_fields_of_a_merged_tree_are_sorted_and_have_no_keys_of_maps() {
    let schema = kind("resource.k8s.io", "v1", "ResourceSlice");
    let text = br#"{"zoo":1,"spec":{"devices":[{"capacity":{"a":{"x":1},"b":{"x":1}}}],"bar":1}}"#;
    let decoded = decode_merged(text, schema).unwrap();
    let paths = ["spec.bar", "spec.devices[0].capacity.x", "spec.devices[0].capacity.x", "zoo"];
    let expected = paths.map(|path| StrictProblem::UnknownField(path.to_owned()));
    assert_eq!(decoded.problems, expected);
}

#[test]
fn unknown_and_duplicate_fields_are_reported_as_met() {
    let pod = kind("", "v1", "Pod");
    assert_eq!(
        problems(pod, r#"{"nope":{"a":[}"#.replace("[}", "[]}}").as_str()),
        [r#"unknown field "nope""#]
    );
    assert_eq!(
        problems(
            pod,
            r#"{"metadata":{"labels":{"a":"1","a":"2"},"Name":"x"},
                "spec":{"containers":[{},{"imagePolicy":1,"env":[{"name":"a","name":"b"}]}],"replicas":1,"replicas":2}}"#
        ),
        [
            r#"duplicate field "metadata.labels.a""#,
            r#"unknown field "metadata.Name""#,
            r#"unknown field "spec.containers[1].imagePolicy""#,
            r#"duplicate field "spec.containers[1].env[0].name""#,
            r#"unknown field "spec.replicas""#,
        ]
    );
    let many: String = (0..300).map(|i| format!("\"f{i}\":1,")).collect();
    assert_eq!(problems(pod, &format!("{{{many}\"kind\":\"Pod\"}}")).len(), 100);
}

#[test]
fn empty_lists_and_maps_are_reported() {
    let empty_fields = |schema: SchemaRef<'_>, text: &str| {
        let fields = read(schema, text).unwrap().empty_fields.into_iter();
        fields.map(|field| format!("{}: {}", field.path, field.value)).collect::<Vec<_>>()
    };
    assert_eq!(
        empty_fields(
            kind("", "v1", "Pod"),
            r#"{"metadata":{"labels":{},"finalizers":null,"name":""},
                "spec":{"volumes":[],"securityContext":{},"containers":[{"args":[],"resources":{"limits":{}}}]}}"#
        ),
        [
            "metadata.labels: {}",
            "spec.volumes: []",
            "spec.containers[0].args: []",
            "spec.containers[0].resources.limits: {}"
        ]
    );
    // Where JSON itself tells empty from absent, the tree has the list, too.
    assert_eq!(
        empty_fields(kind("rbac.authorization.k8s.io", "v1", "Role"), r#"{"rules":[]}"#),
        ["rules: []"]
    );
    let many = r#"{"args":[]},"#.repeat(300);
    let fields = empty_fields(kind("", "v1", "Pod"), &format!(r#"{{"spec":{{"containers":[{many}{{}}]}}}}"#));
    assert_eq!(fields.len(), 100);
}

#[test]
fn duplicate_objects_are_merged_and_other_values_replaced() {
    let map = kind("", "v1", "ConfigMap");
    let decoded = read(map, r#"{"data":{"a":"1","b":"1"},"metadata":{"name":"x","labels":{"l":"1"}},"data":{"b":"2"},"metadata":{"name":null,"namespace":"n"}}"#).unwrap();
    assert_eq!(
        decoded.value,
        json!({"data": {"a": "1", "b": "2"}, "metadata": {"name": "x", "namespace": "n", "labels": {"l": "1"}}})
    );
    let pod = kind("", "v1", "Pod");
    let decoded = read(
        pod,
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"i"}],"hostname":"h","hostname":null}}"#,
    );
    assert_eq!(
        decoded.unwrap().value,
        json!({"spec": {"containers": [{"name": "a", "image": "i"}], "hostname": "h"}})
    );
    // Null clears a pointer.
    let decoded =
        read(pod, r#"{"spec":{"hostUsers":false,"os":{"name":"linux"},"hostUsers":null,"os":null}}"#);
    assert_eq!(decoded.unwrap().value, json!({}));
}

#[test]
fn scalars_of_any_json_are_not_empty() {
    let revision = kind("apps", "v1", "ControllerRevision");
    for data in [json!(false), json!(0), json!("")] {
        let decoded = read(revision, &json!({"data": data}).to_string()).unwrap();
        assert_eq!(decoded.value, json!({"data": data}));
    }
}

#[test]
fn wrong_types_are_told_in_gos_words() {
    for (group, version, name, text, expected) in [
        (
            "apps",
            "v1",
            "Deployment",
            r#"{"spec":{"replicas":"3"}}"#,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps",
            "v1",
            "Deployment",
            r#"{"spec":{"replicas":1.5,"paused":1}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps",
            "v1",
            "Deployment",
            r#"{"spec":{"replicas":2147483648}}"#,
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"containers":{}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"containers":[{"image":5}]}}"#,
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":[]}"#,
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"metadata":{"labels":{"a":true}}}"#,
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"restartPolicy":1}}"#,
            "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"volumes":[{"name":"v","emptyDir":"x"}]}}"#,
            "json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"kind":1}"#,
            "json: cannot unmarshal number into Go struct field Pod.TypeMeta.kind of type string",
        ),
        ("", "v1", "Pod", "[]", "json: cannot unmarshal array into Go value of type v1.Pod"),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"metadata":{"creationTimestamp":"x"}}"#,
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"metadata":{"creationTimestamp":5}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "coordination.k8s.io",
            "v1",
            "Lease",
            r#"{"spec":{"renewTime":{}}}"#,
            "json: cannot unmarshal object into Go struct field LeaseSpec.spec.renewTime of type string",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":2147483648}}}]}}"#,
            "json: cannot unmarshal number 2147483648 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        ("", "v1", "Secret", r#"{"data":{"a":"not base64!"}}"#, "illegal base64 data at input byte 3"),
        (
            "",
            "v1",
            "Service",
            r#"{"spec":{"ports":[{"targetPort":1.5}]}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            "",
            "v1",
            "Service",
            r#"{"spec":{"ports":[{"targetPort":true}]}}"#,
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        ),
        (
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"type":1}}}}]}}"#,
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type of type string",
        ),
        // The struct is the one that holds the outermost type with a decoder of its own.
        (
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"not":{"items":[{"externalDocs":{"url":1}}]}}}}}]}}"#,
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.not.items.externalDocs.url of type string",
        ),
        (
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":1}}}]}}"#,
            "boolean or JSON schema expected",
        ),
        // An error in a type's own decoder ends the decoding, a wrong type elsewhere does not; syntax errors take
        // precedence.
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"hostname":1},"metadata":{"creationTimestamp":"x"}}"#,
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"metadata":{"creationTimestamp":"x"},}"#,
            "invalid character '}' looking for beginning of object key string",
        ),
    ] {
        assert_eq!(read(kind(group, version, name), text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn syntax_errors_are_gos() {
    for (text, expected) in [
        ("", "unexpected end of JSON input"),
        ("  ", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        (r#"{"a"#, "unexpected end of JSON input"),
        (r#"{"a":"#, "unexpected end of JSON input"),
        (r#"{"a":1"#, "unexpected end of JSON input"),
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("xyz", "invalid character 'x' looking for beginning of value"),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        (r#"{"a" 1}"#, "invalid character '1' after object key"),
        (r#"{"a":1 "b"}"#, r#"invalid character '"' after object key:value pair"#),
        (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        (r#"{"a":"#, "unexpected end of JSON input"),
        (r#"{"a":nul"#, "invalid character ' ' in literal null (expecting 'l')"),
        (r#""\"#, "invalid character ' ' in string escape code"),
        (r#""\u1"#, "invalid character ' ' in \\u hexadecimal character escape"),
        (r#""a"#, "unexpected end of JSON input"),
        ("-a", "invalid character 'a' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("\"a\nb\"", r"invalid character '\n' in string literal"),
        (r#""\x""#, "invalid character 'x' in string escape code"),
        (r#""\u12g4""#, "invalid character 'g' in \\u hexadecimal character escape"),
        ("tru}", "invalid character '}' in literal true (expecting 'e')"),
        ("'a'", r"invalid character '\'' looking for beginning of value"),
        ("\u{e9}", "invalid character 'Ã' looking for beginning of value"),
    ] {
        assert_eq!(
            type_meta(text.as_bytes()).map_err(|error| error.to_string()),
            Err(expected.to_owned()),
            "{text}"
        );
        assert_eq!(read(kind("", "v1", "Pod"), text).map(|_| ()), Err(expected.to_owned()), "{text}");
        assert_eq!(
            decode_raw(text.as_bytes()).map_err(|error| error.to_string()),
            Err(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn deep_nesting_is_refused_or_passed_over() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let pod = kind("", "v1", "Pod");
    let revision = kind("apps", "v1", "ControllerRevision");
    assert!(read(pod, &format!(r#"{{"x":{}}}"#, nested(9_000))).is_ok());
    assert_eq!(
        read(pod, &format!(r#"{{"x":{}}}"#, nested(20_000))).unwrap_err(),
        "invalid character '[' exceeded max depth"
    );
    assert_eq!(
        read(revision, &format!(r#"{{"data":{}}}"#, nested(9_000))).unwrap_err(),
        "exceeded max depth"
    );
    assert!(read(revision, &format!(r#"{{"data":{}}}"#, nested(200))).is_ok());
    let schema = format!(
        r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{}{}}}}}]}}}}"#,
        r#"{"items":"#.repeat(5_000),
        "1".to_owned() + &"}".repeat(5_000)
    );
    let definition = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    assert_eq!(read(definition, &schema).unwrap_err(), "exceeded max depth");
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let member = |depth: usize| format!(r#"{{"x":{}1{}}}"#, open.repeat(depth), close.repeat(depth));
        assert!(type_meta(member(9_999).as_bytes()).is_ok());
        let character = &open[..1];
        let refused = format!("invalid character '{character}' exceeded max depth");
        assert_eq!(type_meta(member(10_000).as_bytes()).unwrap_err().to_string(), refused);
    }
}

#[test]
fn strings_are_read_as_go_reads_them() {
    let map = kind("", "v1", "ConfigMap");
    for (text, expected) in [
        (r#""a\u00e9\n\/\"""#.as_bytes(), "a\u{e9}\n/\""),
        (br#""\ud83d\ude00""#, "\u{1f600}"),
        (br#""\ud83d""#, "\u{fffd}"),
        (br#""\ud83dx""#, "\u{fffd}x"),
        (br#""\ud83d\u0041""#, "\u{fffd}A"),
        (br#""\ude00""#, "\u{fffd}"),
        (b"\"a\xffb\"", "a\u{fffd}b"),
        (b"\"\xe2\x82\"", "\u{fffd}\u{fffd}"),
    ] {
        let body = [br#"{"data":{"k":"#, text, b"}}"].concat();
        assert_eq!(decode(&body, map).unwrap().value["data"]["k"], expected);
    }
}

#[test]
fn the_type_of_a_body_is_found_whatever_the_case() {
    let meta = type_meta(br#" {"KIND":"Pod","spec":{"kind":"x"},"apiVersion":"v1"} "#).unwrap();
    assert_eq!((meta.kind.as_str(), meta.api_version.as_str()), ("Pod", "v1"));
    assert_eq!(type_meta(b"null").unwrap(), TypeMeta::default());
    let of_map = |text: &str| {
        let (_, of_map) = type_metas(text.as_bytes()).unwrap();
        (of_map.kind, of_map.api_version)
    };
    assert_eq!(of_map(r#"{"kind":"A","Kind":"B","APIVersion":"v1"}"#), ("A".to_owned(), Some(String::new())));
    assert_eq!(
        of_map(r#"{"kind":"A","kind":null,"apiVersion":"v1","apiVersion":null}"#),
        (String::new(), None)
    );
    for (text, expected) in [
        (r#"{"kind":1}"#, "json: cannot unmarshal number into Go struct field .kind of type string"),
        (
            "[]",
            r#"json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#,
        ),
    ] {
        assert_eq!(type_meta(text.as_bytes()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn custom_resources_are_pruned_but_not_checked() {
    let mut builder = SchemaBuilder::new();
    let text = builder.scalar(Type::String);
    let inner = builder.reserve();
    builder.set_struct(
        inner,
        StructSpec {
            fields: vec![(FieldSpec { name: "size", ..FieldSpec::default() }, text)],
            ..StructSpec::default()
        },
    );
    let meta = Schema::builtin().by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta").unwrap();
    let meta = builder.builtin(meta);
    let root = builder.reserve();
    builder.set_struct(
        root,
        StructSpec {
            fields: vec![
                (FieldSpec { name: "kind", ..FieldSpec::default() }, text),
                (FieldSpec { name: "metadata", ..FieldSpec::default() }, meta),
                (FieldSpec { name: "spec", ..FieldSpec::default() }, inner),
            ],
            ..StructSpec::default()
        },
    );
    let schema = builder.finish(root);
    let body = r#"{"spec":{"z":1,"size":5,"size":{"any":[1.50]},"b":2},"metadata":{"ownerReferences":[{"uid":"u","a":1}],"name":"n"},"kind":null}"#;
    assert_eq!(
        problems(schema.root(), body),
        [
            r#"duplicate field "spec.size""#,
            r#"unknown field "metadata.ownerReferences[0].a""#,
            r#"unknown field "spec.b""#,
            r#"unknown field "spec.size.any""#,
            r#"unknown field "spec.z""#
        ]
    );
    let twice = r#"{"metadata":{"z":1,"z":{"a":1,"a":2}}}"#;
    assert_eq!(
        problems(schema.root(), twice),
        [
            r#"duplicate field "metadata.z""#,
            r#"duplicate field "metadata.z.a""#,
            r#"unknown field "metadata.z""#
        ]
    );
    assert_eq!(
        rewrite(schema.root(), body),
        r#"{"kind":null,"metadata":{"name":"n","ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":"u"}]},"spec":{"size":{}}}"#
    );
    // Only the last value of a duplicate counts, in the metadata too, also when an earlier one has a wrong type.
    for (body, expected) in [
        (
            r#"{"metadata":{"name":"a","labels":{"a":"b"}},"metadata":{"name":"b"}}"#,
            r#"{"metadata":{"name":"b"}}"#,
        ),
        (r#"{"metadata":{"labels":{"a":"b"},"labels":{"c":"d"}}}"#, r#"{"metadata":{"labels":{"c":"d"}}}"#),
        (r#"{"metadata":{"name":1,"name":"n"}}"#, r#"{"metadata":{"name":"n"}}"#),
        (r#"{"metadata":{"name":"n","name":null}}"#, r#"{"metadata":{}}"#),
        (
            r#"{"metadata":{"managedFields":[{"time":1}],"managedFields":[],"name":"n"}}"#,
            r#"{"metadata":{"name":"n"}}"#,
        ),
        (
            r#"{"metadata":{"creationTimestamp":{"a":1},"creationTimestamp":null,"name":"n"}}"#,
            r#"{"metadata":{"name":"n"}}"#,
        ),
        (r#"{"metadata":[],"metadata":{"name":"n"}}"#, r#"{"metadata":{"name":"n"}}"#),
    ] {
        assert_eq!(rewrite(schema.root(), body), expected, "{body}");
    }
    for body in
        [r#"{"metadata":{"name":"n","name":1}}"#, r#"{"metadata":{"name":1,"labels":{},"labels":{}}}"#]
    {
        assert!(decode(body.as_bytes(), schema.root()).is_err(), "{body}");
    }
}

#[test]
fn values_have_what_is_always_written_and_trees_have_not() {
    let deployment = kind("apps", "v1", "Deployment");
    let tree = json!({"spec": {"selector": {}, "replicas": 0}});
    let value = to_value(&tree, deployment);
    assert_eq!(value["spec"]["template"], json!({"metadata": {}, "spec": {"containers": null}}));
    assert_eq!(from_value(&value, deployment).unwrap().value, tree);
    let decoded = from_value(&json!({"spec": {"nope": 1}, "b": 2, "a": 3}), deployment).unwrap();
    let problems: Vec<_> = decoded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, [r#"unknown field "a""#, r#"unknown field "b""#, r#"unknown field "spec.nope""#]);
}

#[test]
fn empty_lists_are_kept_where_an_encoder_tells_them_from_none() {
    let slice = kind("discovery.k8s.io", "v1", "EndpointSlice");
    let cases = [
        (json!({"endpoints": [], "ports": []}), json!({"endpoints": [], "ports": []})),
        (json!({"endpoints": null}), json!({})),
        (json!({"metadata": {"finalizers": [], "labels": {}}}), json!({})),
        (
            json!({"endpoints": [{"addresses": [], "hints": {"forZones": []}}]}),
            json!({"endpoints": [{"addresses": [], "hints": {}}]}),
        ),
    ];
    for (sent, tree) in cases {
        let decoded = from_value(&sent, slice).unwrap().value;
        assert_eq!(decoded, tree);
        assert_eq!(from_value(&to_value(&decoded, slice), slice).unwrap().value, tree);
    }
}
