//! Tests invalid input, accidental or hostile: the response is an exact 4xx, nothing is stored, the server stays alive.

use crate::Result;
use pintle_e2e::start;
use pintle_harness::Client;
use std::iter::repeat_n;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A request that must be refused.
struct Row<'a> {
    request: &'a str,
    content_type: &'a str,
    body: &'a [u8],
    code: u16,
    reason: &'a str,
    message: &'a str,
}

fn row<'a>(
    request: &'a str,
    content_type: &'a str,
    body: &'a (impl AsRef<[u8]> + ?Sized),
    code: u16,
    reason: &'a str,
    message: &'a str,
) -> Row<'a> {
    Row { request, content_type, body: body.as_ref(), code, reason, message }
}

/// Sends each request and checks its response; reports all failures at once.
fn check(client: &Client, rows: &[Row<'_>]) -> Result {
    let mut failures = Vec::new();
    for row in rows {
        let (method, path) = row.request.split_once(' ').ok_or("a row is METHOD PATH")?;
        let shown = String::from_utf8_lossy(row.body.get(..80).unwrap_or(row.body)).into_owned();
        let what = format!("{} {} {shown:?}", row.request, row.content_type);
        let response = match client.request(method, path, &[("content-type", row.content_type)], row.body) {
            Ok(response) => response,
            Err(error) => {
                failures.push(format!("{what}: {error}"));
                continue;
            }
        };
        let status = response.json().unwrap_or_default();
        let message = status["message"].as_str().unwrap_or_default();
        let right = response.status == row.code
            && status["kind"] == "Status"
            && status["status"] == "Failure"
            && status["code"] == row.code
            && status["reason"] == row.reason
            && message.contains(row.message);
        if !right {
            failures.push(format!(
                "{what}:\n  want {} {} {:?}\n  got {} {}",
                row.code,
                row.reason,
                row.message,
                response.status,
                response.text()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Checks that the server still serves, and has only the objects of a fresh one.
fn nothing_left(client: &Client) -> Result {
    assert_eq!(client.get("/livez")?.status, 200);
    for (path, expected) in [
        (CONFIG_MAPS, &[][..]),
        (SERVICES, &["kubernetes"][..]),
        ("/api/v1/namespaces/default/pods", &[][..]),
    ] {
        let list = client.get(path)?.json()?;
        let items = list["items"].as_array().ok_or("no items")?;
        let names: Vec<_> = items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
        assert_eq!(names, expected, "{path}");
    }
    Ok(())
}

#[test]
fn malformed_bodies_are_refused() -> Result {
    let server = start()?;
    let client = server.client()?;
    let post = format!("POST {CONFIG_MAPS}");
    let truncated: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Conf";
    let bad_length: &[u8] = b"k8s\0\x0a\xff\xff\xff\xff\x7f";
    let deep_json =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","data":{}"#, r#"{"a":"#.repeat(100_000));
    let deep_list: String = repeat_n('[', 200_000).collect();
    let deep_yaml = format!("a: {}", repeat_n('[', 50_000).collect::<String>());
    let bomb = format!(
        "apiVersion: v1\nkind: ConfigMap\na: &a [x,x,x,x,x,x,x,x,x]\n{}",
        ('b'..='j').map(|c| {
            let before = char::from(c as u8 - 1);
            format!("{c}: &{c} [*{before},*{before},*{before},*{before},*{before},*{before},*{before},*{before},*{before}]\n")
        }).collect::<String>()
    );
    check(
        &client,
        &[
            row(&post, JSON, "", 400, "BadRequest", ""),
            row(&post, JSON, "{", 400, "BadRequest", ""),
            row(&post, JSON, "null", 422, "Invalid", "name or generateName is required"),
            row(&post, JSON, "[]", 400, "BadRequest", ""),
            row(&post, JSON, r#""text""#, 400, "BadRequest", ""),
            row(
                &post,
                JSON,
                r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x",}}"#,
                400,
                "BadRequest",
                "",
            ),
            row(
                &post,
                JSON,
                b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"\xff\xfe\"}}",
                422,
                "Invalid",
                "",
            ),
            row(&post, JSON, &deep_json, 400, "BadRequest", ""),
            row(&post, JSON, &deep_list, 400, "BadRequest", ""),
            row(&post, YAML, "a: [", 400, "BadRequest", ""),
            row(&post, YAML, "\t- nothing: {", 400, "BadRequest", ""),
            row(&post, YAML, &deep_yaml, 400, "BadRequest", ""),
            row(&post, YAML, &bomb, 400, "BadRequest", ""),
            row(&post, PROTOBUF, "", 400, "BadRequest", ""),
            row(&post, PROTOBUF, "k8s", 400, "BadRequest", ""),
            row(&post, PROTOBUF, truncated, 400, "BadRequest", ""),
            row(&post, PROTOBUF, bad_length, 400, "BadRequest", ""),
            row(
                &post,
                "text/plain",
                "{}",
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format",
            ),
        ],
    )?;
    nothing_left(&client)
}

#[test]
fn wrong_kinds_types_and_names_are_refused() -> Result {
    let server = start()?;
    let client = server.client()?;
    let post = format!("POST {CONFIG_MAPS}");
    let long =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}}}}"#, "x".repeat(254));
    let services = format!("POST {SERVICES}");
    check(
        &client,
        &[
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}"#,
                400,
                "BadRequest",
                "Secret in version \"v1\" cannot be handled as a ConfigMap",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v7","kind":"ConfigMap","metadata":{"name":"x"}}"#,
                400,
                "BadRequest",
                "",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":7}"#,
                400,
                "BadRequest",
                "cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}"#,
                400,
                "BadRequest",
                "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Upper"}}"#,
                422,
                "Invalid",
                "a lowercase RFC 1123 subdomain must consist of",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a/b"}}"#,
                422,
                "Invalid",
                "",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":".."}}"#,
                422,
                "Invalid",
                "",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#,
                422,
                "Invalid",
                "name or generateName is required",
            ),
            row(&post, JSON, &long, 422, "Invalid", "must be no more than 253 "),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other"}}"#,
                400,
                "BadRequest",
                "does not match the namespace",
            ),
            row(
                &post,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"a b":"c"}}}"#,
                422,
                "Invalid",
                "metadata.labels: Invalid value",
            ),
            row(
                "POST /api/v1/namespaces/nowhere/configmaps",
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#,
                404,
                "NotFound",
                "namespaces \"nowhere\" not found",
            ),
            row(
                &services,
                JSON,
                r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":70000}]}}"#,
                422,
                "Invalid",
                "must be between 1 and 65535, inclusive",
            ),
            row(
                &services,
                JSON,
                r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"clusterIP":"10.99.0.1","ports":[{"port":80}]}}"#,
                422,
                "Invalid",
                "spec.clusterIPs",
            ),
        ],
    )?;
    let strict = format!("{post}?fieldValidation=Strict");
    check(
        &client,
        &[
            row(
                &strict,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"nope":1}"#,
                400,
                "BadRequest",
                "strict decoding error: unknown field \"nope\"",
            ),
            row(
                &strict,
                JSON,
                r#"{"apiVersion":"v1","kind":"ConfigMap","kind":"ConfigMap","metadata":{"name":"x"}}"#,
                400,
                "BadRequest",
                "strict decoding error: duplicate field \"kind\"",
            ),
        ],
    )?;
    nothing_left(&client)
}

#[test]
fn wrong_queries_are_refused() -> Result {
    let server = start()?;
    let client = server.client()?;
    let rows: Vec<(String, u16, &str, &str)> = [
        ("labelSelector=a%20b", 400, "BadRequest", "unable to parse requirement"),
        ("labelSelector=a%20in%20(", 400, "BadRequest", ""),
        (
            "fieldSelector=nothing",
            400,
            "BadRequest",
            "invalid selector: 'nothing'; can't understand 'nothing'",
        ),
        (
            "fieldSelector=spec.nothing%3Dx",
            400,
            "BadRequest",
            "\"spec.nothing\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("limit=many", 400, "BadRequest", ""),
        ("timeoutSeconds=soon", 400, "BadRequest", ""),
        ("continue=garbage", 400, "BadRequest", "continue key is not valid"),
        ("resourceVersion=abc", 400, "BadRequest", ""),
        (
            "resourceVersionMatch=Exact",
            422,
            "Invalid",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        ("resourceVersionMatch=Sometimes&resourceVersion=1", 422, "Invalid", "resourceVersionMatch"),
        ("sendInitialEvents=true", 422, "Invalid", "sendInitialEvents is forbidden for list"),
    ]
    .map(|(query, code, reason, message)| (format!("GET {CONFIG_MAPS}?{query}"), code, reason, message))
    .into();
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(request, code, reason, message)| row(request, JSON, "", *code, reason, message))
        .collect();
    check(&client, &rows)?;
    // Unknown parameters are ignored, as they are by every Kubernetes server.
    assert_eq!(client.get(&format!("{CONFIG_MAPS}?no-such-parameter=1"))?.status, 200);
    let post = format!("POST {CONFIG_MAPS}");
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#;
    check(
        &client,
        &[
            row(
                &format!("{post}?fieldValidation=Perhaps"),
                JSON,
                body,
                422,
                "Invalid",
                "fieldValidation: Unsupported value",
            ),
            row(&format!("{post}?dryRun=Some"), JSON, body, 422, "Invalid", "dryRun: Unsupported value"),
            row(
                &format!("DELETE {CONFIG_MAPS}/x?propagationPolicy=Away"),
                JSON,
                "",
                422,
                "Invalid",
                "propagationPolicy",
            ),
        ],
    )?;
    nothing_left(&client)
}

#[test]
fn wrong_patches_are_refused_and_change_nothing() -> Result {
    let server = start()?;
    let client = server.client()?;
    let made = client.post(
        CONFIG_MAPS,
        &serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}),
    )?;
    assert_eq!(made.status, 201);
    let path = format!("PATCH {CONFIG_MAPS}/x");
    let (json, merge, strategic) = (
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    );
    let many = format!("[{}]", vec![r#"{"op":"test","path":"/data/a","value":"b"}"#; 10_001].join(","));
    let deep = format!(r#"{{"data":{}"#, r#"{"a":"#.repeat(100_000));
    check(
        &client,
        &[
            row(&path, json, "{", 400, "BadRequest", ""),
            row(&path, json, r#"[{"op":"remove","path":"/data/missing"}]"#, 422, "Invalid", ""),
            row(&path, json, r#"[{"op":"test","path":"/data/a","value":"c"}]"#, 422, "Invalid", ""),
            row(&path, json, r#"[{"op":"fly","path":"/data"}]"#, 422, "Invalid", ""),
            row(
                &path,
                json,
                &many,
                413,
                "RequestEntityTooLarge",
                "The allowed maximum operations in a JSON patch is 10000",
            ),
            row(&path, merge, "[]", 400, "BadRequest", ""),
            row(&path, merge, r#"{"data":{"a":5}}"#, 422, "Invalid", ""),
            row(
                &path,
                merge,
                r#"{"metadata":{"name":"y"}}"#,
                400,
                "BadRequest",
                "the name of the object (y) does not match the name on the URL (x)",
            ),
            row(&path, merge, &deep, 400, "BadRequest", ""),
            row(&path, strategic, "{", 400, "BadRequest", ""),
            row(&path, strategic, r#"{"data":{"a":[]}}"#, 422, "Invalid", "patch: Invalid value"),
            row(&path, "application/x-patch", "{}", 415, "UnsupportedMediaType", ""),
        ],
    )?;
    assert_eq!(client.get(&format!("{CONFIG_MAPS}/x"))?.json()?, made.json()?);
    client.delete(&format!("{CONFIG_MAPS}/x"))?;
    nothing_left(&client)
}

#[test]
fn bodies_above_three_mebibytes_are_refused() -> Result {
    let server = start()?;
    let client = server.client()?;
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},"data":{{"a":"{}"}}}}"#,
        "x".repeat(3 * 1024 * 1024)
    );
    let post = format!("POST {CONFIG_MAPS}");
    let too_long = "limit is 3145728";
    check(&client, &[row(&post, JSON, &body, 413, "RequestEntityTooLarge", too_long)])?;
    // The same without a `Content-Length`.
    let mut connection = client.connect()?;
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let headers = [("content-type", JSON), ("transfer-encoding", "chunked"), ("content-length", "")];
    let headers = headers.get(..2).unwrap_or_default();
    let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    connection.write(
        format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n{head}\r\n",
            pintle_harness::MASTER_TOKEN
        )
        .as_bytes(),
    )?;
    let sent = connection.write(chunk.as_bytes());
    let (status, _) = connection.head().map_err(|error| format!("{error} after {sent:?}"))?;
    assert_eq!(status, 413);
    // A body within the limit of requests and beyond that of ConfigMaps.
    let body = body.replace(&"x".repeat(3 * 1024 * 1024), &"x".repeat(1024 * 1024 + 1));
    check(
        &client,
        &[row(&post, JSON, &body, 422, "Invalid", "Too long: may not be more than 1048576 bytes")],
    )?;
    nothing_left(&client)
}

#[test]
fn unknown_paths_and_methods_are_refused() -> Result {
    let server = start()?;
    let client = server.client()?;
    check(
        &client,
        &[
            row(
                "GET /api/v1/nothings",
                JSON,
                "",
                404,
                "NotFound",
                "the server could not find the requested resource",
            ),
            row(
                &format!("PUT {CONFIG_MAPS}"),
                JSON,
                "{}",
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            ),
            row(
                &format!("GET {CONFIG_MAPS}/missing"),
                JSON,
                "",
                404,
                "NotFound",
                "configmaps \"missing\" not found",
            ),
            row(
                &format!("DELETE {CONFIG_MAPS}/missing"),
                JSON,
                "",
                404,
                "NotFound",
                "configmaps \"missing\" not found",
            ),
        ],
    )?;
    let unknown_group = client.get("/apis/example.com/v1/things")?;
    assert_eq!((unknown_group.status, unknown_group.text().as_str()), (404, "404 page not found\n"));
    // Not HTTP at all: the connection ends, the server does not.
    let mut connection = client.connect()?;
    connection.write(b"\x00\x01\x02 nonsense\r\n\r\n")?;
    assert!(connection.head().map_or(true, |(status, _)| status == 400));
    nothing_left(&client)
}
