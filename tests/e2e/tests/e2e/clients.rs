//! The manifests of the client tests.

/// One object of each kind that new users write first.
pub(crate) const MANIFESTS: &str = r#"apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: web
  namespace: shop
---
# The service account controller makes this one, but no controllers run here.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: default
  namespace: shop
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
  labels: {app: web}
data:
  greeting: hello
  motd: |
    first line
    second line
---
apiVersion: v1
kind: Secret
metadata:
  name: credentials
  namespace: shop
type: Opaque
stringData:
  password: swordfish
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  labels: {app: web}
spec:
  selector: {app: web}
  ports:
  - name: http
    port: 80
    targetPort: 8080
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: registry.example.com/web:1.0
        ports:
        - containerPort: 8080
        envFrom:
        - configMapRef: {name: settings}
---
apiVersion: v1
kind: Pod
metadata:
  name: shell
  namespace: shop
  labels: {app: shell}
spec:
  containers:
  - name: shell
    image: registry.example.com/shell:1.0
    command: ["sleep", "3600"]
---
apiVersion: batch/v1
kind: Job
metadata:
  name: once
  namespace: shop
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: once
        image: registry.example.com/once:1.0
"#;
