//! Defines [`AdmissionError`].

use pintle_go_forms::quote;

/// The reason why there is no chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The flags contradict each other, or name plugins that do not exist.
    #[error("{0}")]
    Flags(String),
    /// The configuration file cannot be used.
    #[error("failed to apply admission: failed to read plugin config: {0}")]
    ConfigurationFile(String),
    /// A file that the configuration file names cannot be opened. A kube-apiserver ends with code 255.
    #[error(
        "Couldn't open admission plugin configuration {path}: &fs.PathError{{Op:\"open\", Path:{}, Err:{errno:#x}}}",
        quote(.path)
    )]
    PluginFile {
        /// The file.
        path: String,
        /// The number of the system's error.
        errno: i32,
    },
    /// A plugin cannot read its configuration.
    #[error("failed to apply admission: couldn't init admission plugin {}: {reason}", quote(.plugin))]
    Configuration {
        /// The plugin.
        plugin: &'static str,
        /// The reason.
        reason: String,
    },
    /// A plugin cannot work with its configuration.
    #[error("failed to apply admission: failed to initialize admission plugin {}: {reason}", quote(.plugin))]
    Initialization {
        /// The plugin.
        plugin: &'static str,
        /// The reason.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_of_a_plugin_has_a_message_of_its_own() {
        let error = AdmissionError::PluginFile { path: "/x".to_owned(), errno: 2 };
        assert_eq!(
            error.to_string(),
            "Couldn't open admission plugin configuration /x: &fs.PathError{Op:\"open\", Path:\"/x\", Err:0x2}"
        );
    }
}
