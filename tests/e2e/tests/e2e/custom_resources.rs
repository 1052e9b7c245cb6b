//! Tests custom resources with kubectl: definition, explain, columns, apply, watch.

use crate::Result;
use pintle_e2e::{Cli, PATIENCE, start};
use pintle_harness::wait_for;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names:
    plural: crontabs
    singular: crontab
    kind: CronTab
    shortNames: [ct]
    categories: [all]
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: CronTab runs something again and again.
        properties:
          spec:
            type: object
            description: What is wanted.
            required: [schedule]
            properties:
              schedule:
                type: string
                description: When it runs.
              replicas:
                type: integer
                minimum: 1
                default: 1
              labels:
                type: object
                additionalProperties: {type: string}
              hosts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    port: {x-kubernetes-int-or-string: true}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              conditions:
                type: array
                items:
                  type: object
                  properties:
                    type: {type: string}
                    status: {type: string}
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
    selectableFields:
    - jsonPath: .spec.schedule
    additionalPrinterColumns:
    - name: Schedule
      type: string
      jsonPath: .spec.schedule
    - name: Replicas
      type: integer
      jsonPath: .spec.replicas
    - name: Ready
      type: string
      jsonPath: .status.conditions[?(@.type=="Ready")].status
    - name: Hosts
      type: string
      jsonPath: .spec.hosts
      priority: 1
    - name: Age
      type: date
      jsonPath: .metadata.creationTimestamp
"#;

const NIGHTLY: &str = r#"
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: nightly
spec:
  schedule: 0 4 * * *
  hosts:
  - {name: one, port: 80}
"#;

/// kubectl for a server with the definition.
fn define<'a>(server: &'a pintle_harness::Server) -> Result<Cli<'a>> {
    let kubectl = Cli::kubectl(server)?;
    let made = kubectl.feed(&["apply", "-f", "-"], DEFINITION)?;
    assert_eq!(made, "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com created\n");
    kubectl.wait_established("crd/crontabs.stable.example.com")?;
    Ok(kubectl)
}

#[test]
fn custom_resources_are_explained() -> Result {
    let server = start()?;
    let kubectl = define(&server)?;
    assert_eq!(
        kubectl.run(&["explain", "crontabs"])?,
        "\
GROUP:      stable.example.com
KIND:       CronTab
VERSION:    v1

DESCRIPTION:
    CronTab runs something again and again.
    
FIELDS:
  apiVersion	<string>
    APIVersion defines the versioned schema of this representation of an object.
    Servers should convert recognized schemas to the latest internal value, and
    may reject unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources

  kind	<string>
    Kind is a string value representing the REST resource this object
    represents. Servers may infer this from the endpoint the client submits
    requests to. Cannot be updated. In CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds

  metadata	<ObjectMeta>
    Standard object's metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata

  spec	<Object>
    What is wanted.

  status	<Object>
    <no description>


"
    );
    let hosts = kubectl.run(&["explain", "ct.spec.hosts", "--recursive"])?;
    assert!(hosts.contains("name\t<string> -required-\n  port\t<Object>"), "{hosts}");
    // The older form reads OpenAPI 2 in protobuf.
    let old = kubectl.run(&["explain", "ct.spec.schedule", "--output=plaintext-openapiv2"])?;
    assert_eq!(
        old,
        "\
KIND:     CronTab
VERSION:  stable.example.com/v1

FIELD:    schedule <string>

DESCRIPTION:
     When it runs.
"
    );
    // A new field is explained as soon as the definition has it.
    let changed =
        DEFINITION.replace("description: When it runs.", "description: When it runs, as cron writes it.");
    kubectl.feed(&["apply", "-f", "-"], &changed)?;
    let explained = wait_for("the new description", PATIENCE, || {
        let explained = kubectl.run(&["explain", "ct.spec.schedule"]).ok()?;
        explained.contains("as cron writes it").then_some(explained)
    })?;
    assert!(explained.contains("FIELD: schedule <string>"), "{explained}");
    kubectl.run(&["delete", "crd", "crontabs.stable.example.com"])?;
    let gone = kubectl.fails(&["explain", "crontabs.stable.example.com"])?;
    assert!(gone.contains("crontabs"), "{gone}");
    Ok(())
}

#[test]
fn custom_resources_are_listed_by_their_columns() -> Result {
    let server = start()?;
    let kubectl = define(&server)?;
    kubectl.feed(&["create", "-f", "-"], NIGHTLY)?;
    kubectl.run(&["patch", "ct", "nightly", "--subresource=status", "--type=merge", "-p",
        r#"{"status":{"replicas":1,"selector":"app=nightly","conditions":[{"type":"Ready","status":"True"}]}}"#])?;
    let table = |text: &str| -> Vec<Vec<String>> {
        // Columns are at least two spaces apart.
        text.lines()
            .map(|line| {
                line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
            })
            .collect()
    };
    let listed = table(&kubectl.run(&["get", "crontabs"])?);
    assert_eq!(listed[0], ["NAME", "SCHEDULE", "REPLICAS", "READY", "AGE"]);
    assert_eq!(listed[1][..4], ["nightly", "0 4 * * *", "1", "True"]);
    let wide = table(&kubectl.run(&["get", "ct", "nightly", "-o", "wide"])?);
    assert_eq!(wide[0], ["NAME", "SCHEDULE", "REPLICAS", "READY", "HOSTS", "AGE"]);
    assert_eq!(wide[1][4], r#"[{"name":"one","port":80}]"#);
    let all = kubectl.run(&["get", "all", "-o", "name"])?;
    assert!(all.contains("crontab.stable.example.com/nightly\n"), "{all}");
    let selected = |selector: &str| kubectl.run(&["get", "ct", "-o", "name", "--field-selector", selector]);
    assert_eq!(selected("spec.schedule=0 4 * * *")?, "crontab.stable.example.com/nightly\n");
    assert_eq!(selected("spec.schedule!=0 4 * * *")?, "");
    let refused = kubectl.fails(&["get", "ct", "--field-selector", "spec.replicas=1"])?;
    assert!(refused.contains("field label not supported: spec.replicas"), "{refused}");

    assert_eq!(
        kubectl.run(&["scale", "ct/nightly", "--replicas=3"])?,
        "crontab.stable.example.com/nightly scaled\n"
    );
    assert_eq!(kubectl.run(&["get", "ct", "nightly", "-o", "jsonpath={.spec.replicas}"])?, "3");
    Ok(())
}

#[test]
fn custom_resources_are_applied_by_the_server() -> Result {
    let server = start()?;
    let kubectl = define(&server)?;
    let apply = |manager: &str, extra: &[&str], manifest: &str| {
        let manager = format!("--field-manager={manager}");
        let args: Vec<&str> =
            ["apply", "--server-side", &manager, "-f", "-"].iter().chain(extra).copied().collect();
        kubectl.feed(&args, manifest)
    };
    apply("one", &[], NIGHTLY)?;
    // Items of a list with keys are owned by the manager that applied them.
    let other = "{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: nightly}, spec: {hosts: [{name: two, port: http}]}}";
    apply("two", &[], other)?;
    let hosts =
        |kubectl: &Cli<'_>| kubectl.run(&["get", "ct", "nightly", "-o", "jsonpath={.spec.hosts[*].name}"]);
    assert_eq!(hosts(&kubectl)?, "one two");
    let taking = other.replace("{name: two, port: http}", "{name: one, port: 443}");
    let refused = apply("two", &[], &taking).unwrap_err().to_string();
    assert!(refused.contains("conflict with \"one\": .spec.hosts[name=\"one\"].port"), "{refused}");
    apply("two", &["--force-conflicts"], &taking)?;
    assert_eq!(hosts(&kubectl)?, "one", "what two does not apply any more is gone");

    let wrong = NIGHTLY.replace("schedule: 0 4 * * *", "schedule: 4");
    let refused = apply("one", &["--force-conflicts"], &wrong).unwrap_err().to_string();
    assert!(refused.contains("spec.schedule"), "{refused}");
    let unknown = NIGHTLY.replace("schedule:", "shedule: 1\n  schedule:");
    let refused = kubectl.feed(&["apply", "-f", "-"], &unknown).unwrap_err().to_string();
    assert!(refused.contains("unknown field \"spec.shedule\""), "{refused}");
    Ok(())
}
