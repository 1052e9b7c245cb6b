//! The file of `--admission-control-config-file`: an `AdmissionConfiguration`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/#apiserver-config-k8s-io-v1-AdmissionConfiguration>).

use crate::AdmissionError;
use pintle_go_forms::{quote, read_file};
use pintle_machinery::{
    Value, ValueExt,
    codec::{json, yaml},
    config_file::{ConfigFile, ConfigKind},
};
use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The kind, in its old group and in the present one, whose errors are reported.
const KINDS: [ConfigKind; 2] = [
    ConfigKind { kind: "AdmissionConfiguration", group: "apiserver.k8s.io", versions: &["v1alpha1"] },
    ConfigKind { kind: "AdmissionConfiguration", group: "apiserver.config.k8s.io", versions: &["v1"] },
];

static FILES: LazyLock<[ConfigFile; 2]> = LazyLock::new(|| {
    KINDS.map(|kind| {
        let file = ConfigFile::new(kind, |types| {
            let (text, anything) = (types.text(), types.anything());
            let plugin = types.structure(&[("name", text), ("path", text)], &[("configuration", anything)]);
            let plugins = types.list(plugin);
            types.root(&[("plugins", plugins)], &[])
        });
        file.of_scheme("pkg/server/options/admission.go:51")
    })
});

/// The plugins whose configuration may be the whole file, as before there was an `AdmissionConfiguration`, and the field
/// by which such a file is known.
const LEGACY: [(&str, &str); 2] =
    [("ImagePolicyWebhook", "imagePolicy"), ("PodNodeSelector", "podNodeSelectorPluginConfig")];

/// The configurations of plugins.
#[derive(Debug, Default)]
pub struct AdmissionConfiguration {
    plugins: Vec<PluginConfiguration>,
}

#[derive(Debug)]
struct PluginConfiguration {
    name: String,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Inline(Vec<u8>),
    File(PathBuf),
    Absent,
}

impl AdmissionConfiguration {
    /// Reads the file. Files that it names are read when a plugin needs them; a relative path is relative to this file.
    ///
    /// # Errors
    /// When the file cannot be read or is no `AdmissionConfiguration`.
    pub fn read(path: &Path) -> Result<AdmissionConfiguration, AdmissionError> {
        let text = read_file(path).map_err(|error| {
            AdmissionError::ConfigurationFile(format!(
                "unable to read admission control configuration from {} [{error}]",
                quote(&path.display().to_string()),
            ))
        })?;
        let [old, present] = &*FILES;
        match old.decode_strict_or(present, &text) {
            Ok(tree) => Ok(AdmissionConfiguration::of(&tree, path)),
            Err(error) if error.is_other_kind() && is_legacy(&text) => Ok(AdmissionConfiguration {
                plugins: LEGACY
                    .iter()
                    .map(|(name, _)| PluginConfiguration {
                        name: (*name).to_owned(),
                        source: Source::File(path.to_owned()),
                    })
                    .collect(),
            }),
            Err(error) => Err(AdmissionError::ConfigurationFile(error.to_string())),
        }
    }

    fn of(tree: &Value, path: &Path) -> AdmissionConfiguration {
        let directory = path.parent().unwrap_or(Path::new(""));
        let plugin = |plugin: &Value| PluginConfiguration {
            name: plugin.str_at("name").to_owned(),
            source: match (plugin.get("configuration"), plugin.str_at("path")) {
                (Some(configuration), _) if !configuration.is_null() => {
                    Source::Inline(configuration.to_string().into_bytes())
                }
                (_, "") => Source::Absent,
                (_, path) => Source::File(directory.join(path)),
            },
        };
        AdmissionConfiguration { plugins: tree.items_at("plugins").iter().map(plugin).collect() }
    }

    /// The configuration of a plugin: the first one in the file.
    ///
    /// # Errors
    /// When the file of the plugin's configuration cannot be read.
    pub(crate) fn of_plugin(&self, name: &str) -> Result<Option<Vec<u8>>, AdmissionError> {
        let Some(plugin) = self.plugins.iter().find(|plugin| plugin.name == name) else { return Ok(None) };
        match &plugin.source {
            Source::Inline(text) => Ok(Some(text.clone())),
            Source::Absent => Ok(None),
            Source::File(path) => match read_file(path) {
                Ok(text) => Ok(Some(text)),
                Err(error) => {
                    Err(AdmissionError::PluginFile { path: path.display().to_string(), errno: error.errno() })
                }
            },
        }
    }
}

/// Whether the text, which is of another kind, has one of the fields of a legacy file.
fn is_legacy(text: &[u8]) -> bool {
    let Ok(converted) = yaml::to_json(text) else { return false };
    let Ok(tree) = json::decode_any(&converted.json) else { return false };
    LEGACY.iter().any(|(_, field)| tree.field(field).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        directory
    }

    #[test]
    fn plugins_have_the_first_configuration_of_their_name() {
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
        let text = format!(
            "{head}- {{name: A, configuration: {{b: 1}}, path: x}}\n- {{name: A, path: gone}}\n- {{name: B, path: b.yaml}}\n- \
             {{name: C, path: gone}}\n- {{name: D}}\n"
        );
        let directory = write(&[("main.yaml", &text), ("b.yaml", "of b")]);
        let found = AdmissionConfiguration::read(&directory.path().join("main.yaml")).unwrap();
        assert_eq!(found.of_plugin("A").unwrap().unwrap(), br#"{"b":1}"#);
        assert_eq!(found.of_plugin("B").unwrap().unwrap(), b"of b");
        assert_eq!(found.of_plugin("D").unwrap(), None);
        assert_eq!(found.of_plugin("E").unwrap(), None);
        let path = directory.path().join("gone").display().to_string();
        assert_eq!(found.of_plugin("C").unwrap_err(), AdmissionError::PluginFile { path, errno: 2 });
        let old = "apiVersion: apiserver.k8s.io/v1alpha1\nkind: AdmissionConfiguration\nplugins: [{name: B, path: b.yaml}]\n";
        std::fs::write(directory.path().join("old.yaml"), old).unwrap();
        let found = AdmissionConfiguration::read(&directory.path().join("old.yaml")).unwrap();
        assert_eq!(found.of_plugin("B").unwrap().unwrap(), b"of b");
    }

    #[test]
    fn unusable_files_are_refused_as_kubernetes_refuses_them() {
        let check = |text: &str, expected: &str| {
            let directory = write(&[("f", text)]);
            let found = AdmissionConfiguration::read(&directory.path().join("f")).unwrap_err();
            let expected = format!("failed to apply admission: failed to read plugin config: {expected}");
            assert_eq!(found.to_string(), expected, "{text}");
        };
        check("a: b", "Object 'Kind' is missing in 'a: b'");
        check(
            "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1alpha1",
            "no kind \"AdmissionConfiguration\" is registered for version \"apiserver.config.k8s.io/v1alpha1\" in scheme \
             \"pkg/server/options/admission.go:51\"",
        );
        check(
            "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugin: []",
            "strict decoding error: unknown field \"plugin\"",
        );
        let missing = AdmissionConfiguration::read(Path::new("/nowhere/f")).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "failed to apply admission: failed to read plugin config: unable to read admission control configuration from \
             \"/nowhere/f\" [open /nowhere/f: no such file or directory]"
        );
    }

    #[test]
    fn a_file_may_be_the_configuration_of_one_old_plugin() {
        let text = "podNodeSelectorPluginConfig: {a: b}";
        let directory = write(&[("f", text)]);
        let found = AdmissionConfiguration::read(&directory.path().join("f")).unwrap();
        assert_eq!(found.of_plugin("PodNodeSelector").unwrap().unwrap(), text.as_bytes());
        assert_eq!(found.of_plugin("PodSecurity").unwrap(), None);
    }
}
