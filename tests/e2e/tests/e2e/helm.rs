//! Tests helm: the life cycle of a chart.

use crate::Result;
use pintle_e2e::{Cli, start};

const TEMPLATES: &[(&str, &str)] = &[
    ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"1.0\"\n"),
    ("values.yaml", "replicas: 2\ngreeting: hello\n"),
    (
        "templates/serviceaccount.yaml",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}\n",
    ),
    (
        "templates/configmap.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  greeting: {{ .Values.greeting }}\n",
    ),
    (
        "templates/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}\nstringData:\n  password: swordfish\n",
    ),
    (
        "templates/service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  selector: {app: {{ .Release.Name }}}\n  ports:\n  - {port: 80, targetPort: 8080}\n",
    ),
    (
        "templates/deployment.yaml",
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {app: {{ .Release.Name }}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
      - name: web
        image: registry.example.com/web:1.0
        envFrom:
        - secretRef: {name: {{ .Release.Name }}}
",
    ),
];

#[test]
fn a_chart_is_installed_upgraded_and_uninstalled_by_server_side_apply() -> Result {
    life_of_a_chart(&[])
}

#[test]
fn a_chart_is_installed_upgraded_and_uninstalled_by_patches() -> Result {
    life_of_a_chart(&["--server-side=false"])
}

/// Writes the chart into `./chart`.
pub(crate) fn write_chart(helm: &Cli<'_>) -> Result {
    for (name, text) in TEMPLATES {
        helm.file(&format!("chart/{name}"), text)?;
    }
    Ok(())
}

fn life_of_a_chart(how: &[&str]) -> Result {
    let server = start()?;
    let (helm, kubectl) = (Cli::helm(&server)?, Cli::kubectl(&server)?);
    write_chart(&helm)?;
    let install = ["install", "shop", "./chart", "--namespace", "shop", "--create-namespace"];
    let installed = helm.run(&[&install, how].concat())?;
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let objects = || kubectl.run(&["get", "-n", "shop", "sa,cm,secret,svc,deploy", "-o", "name"]);
    let made = objects()?;
    for object in
        ["serviceaccount/shop", "configmap/shop", "secret/shop", "service/shop", "deployment.apps/shop"]
    {
        assert!(made.lines().any(|line| line == object), "no {object} in:\n{made}");
    }
    let listed = helm.run(&["list", "--namespace", "shop"])?;
    assert!(listed.contains("deployed") && listed.contains("web-1.0.0"), "{listed}");

    helm.run(&[
        "upgrade",
        "shop",
        "./chart",
        "--namespace",
        "shop",
        "--set",
        "replicas=5",
        "--set",
        "greeting=bye",
    ])?;
    assert_eq!(kubectl.json(&["get", "-n", "shop", "deployment/shop"])?["spec"]["replicas"], 5);
    assert_eq!(kubectl.json(&["get", "-n", "shop", "configmap/shop"])?["data"]["greeting"], "bye");
    let history = helm.run(&["history", "shop", "--namespace", "shop"])?;
    assert!(history.contains("superseded") && history.contains("Upgrade complete"), "{history}");

    helm.run(&["rollback", "shop", "1", "--namespace", "shop"])?;
    assert_eq!(kubectl.json(&["get", "-n", "shop", "deployment/shop"])?["spec"]["replicas"], 2);

    helm.run(&["uninstall", "shop", "--namespace", "shop"])?;
    let left = objects()?;
    assert!(!left.lines().any(|line| line.ends_with("/shop")), "{left}");
    Ok(())
}
