//! Tests the entries of requests in the log, in klog's formats, and the change of the verbosity at run time.

use crate::Result;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{Server, wait_for};
use serde_json::Value;

/// The entry of a request in the log.
fn entry(server: &Server, path: &str) -> Result<String> {
    let is_it = |line: &&str| line.contains("HTTP") && line.contains(path);
    let found = wait_for(&format!("the log entry of {path}"), PATIENCE, || {
        server.log().ok()?.lines().find(is_it).map(str::to_owned)
    })?;
    Ok(found)
}

#[test]
fn requests_are_logged_with_their_flow_at_verbosity_three() -> Result {
    let server = Server::start(config()?)?;
    let client = server.client()?;
    let verbosity = |number: &str| client.request("PUT", "/debug/flags/v", &[], number.as_bytes());
    assert_eq!(client.get("/api/v1/namespaces/default/pods/before")?.status, 404);
    assert_eq!(verbosity("3")?.text(), "successfully set klog.logging.verbosity to 3\n");
    assert_eq!(client.get("/api/v1/namespaces/default/pods/none")?.status, 404);
    let line = entry(&server, "/pods/none")?;
    // Levels, dates and places precede it.
    let (head, fields) = line.split_once("] ").ok_or("no header")?;
    assert!(head.starts_with('I') && head.contains(".rs:"), "{line}");
    assert!(
        fields.starts_with("\"HTTP\" verb=\"GET\" URI=\"/api/v1/namespaces/default/pods/none\" latency=\""),
        "{line}"
    );
    let mut at = 0;
    for field in [
        " userAgent=\"",
        " audit-ID=\"",
        " srcIP=\"127.0.0.1:",
        " apf_pl=\"exempt\"",
        " apf_fs=\"exempt\"",
        " apf_iseats=1",
        " apf_fseats=0",
        " apf_additionalLatency=\"0s\"",
        " apf_execution_time=\"",
        " resp=404",
    ] {
        let found = line.get(at..).and_then(|rest| rest.find(field));
        at += found.ok_or_else(|| format!("no {field} behind the others: {line}"))?;
    }
    assert!(line.ends_with(" resp=404"), "{line}");
    // Requests that are refused before have no flow.
    assert_eq!(client.with_token("wrong").get("/api/v1/nodes/refused")?.status, 401);
    let refused = entry(&server, "/nodes/refused")?;
    assert!(refused.ends_with(" resp=401") && !refused.contains("apf_"), "{refused}");
    for (number, answer) in [
        ("-1", "strconv.ParseUint: parsing \"-1\": invalid syntax\n"),
        (
            "2147483648",
            "failed set klog.logging.verbosity 2147483648: strconv.ParseInt: parsing \"2147483648\": value out of range\n",
        ),
    ] {
        let refused = verbosity(number)?;
        assert_eq!((refused.status, refused.text().as_str()), (400, answer));
    }
    assert_eq!(verbosity("0")?.status, 200);
    assert_eq!(client.get("/api/v1/namespaces/default/pods/after")?.status, 404);
    let log = server.log()?;
    assert!(!log.contains("/pods/before") && !log.contains("/pods/after"), "{log}");
    Ok(())
}

#[test]
fn json_entries_have_the_fields_of_the_text() -> Result {
    let server = Server::start(config()?.flag("--logging-format=json").flag("-v=3"))?;
    assert_eq!(server.client()?.get("/api/v1/namespaces/default/pods/none")?.status, 404);
    let entry: Value = serde_json::from_str(&entry(&server, "/pods/none")?)?;
    assert!(
        entry["ts"].is_number() && entry["caller"].as_str().is_some_and(|caller| caller.contains(".rs:")),
        "{entry}"
    );
    assert_eq!((&entry["msg"], &entry["v"], &entry["resp"]), (&"HTTP".into(), &3.into(), &404.into()));
    for (field, value) in [("verb", "GET"), ("apf_pl", "exempt"), ("apf_fs", "exempt")] {
        assert_eq!(entry[field], value, "{entry}");
    }
    assert_eq!(entry["apf_iseats"], 1, "{entry}");
    Ok(())
}
