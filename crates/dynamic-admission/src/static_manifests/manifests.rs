//! Defines [`Manifests`].

use super::{
    directory::Directory,
    objects::{DefaultAndValidate, ManifestKinds, Objects, read_objects},
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_config_metrics::ConfigMetrics;
use prometheus::core::Collector;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A directory of manifests that is in force.
pub trait ManifestDirectory: Send + Sync {
    /// The directory.
    fn path(&self) -> &Path;

    /// Reads the directory, and puts it in force if it has changed. When it cannot be used, what was in force stays. Reads
    /// files, so that it may block.
    fn reload(&self);

    /// The metrics of the reloads, for registration.
    fn collectors(&self) -> Vec<Box<dyn Collector>>;
}

/// The compiled form of the manifests of a plugin.
pub(crate) struct Manifests<T> {
    plugin: &'static str,
    path: PathBuf,
    read: Box<Read<T>>,
    in_force: ArcSwap<T>,
    /// The hash of the files that were read last.
    hash: Mutex<String>,
    metrics: ConfigMetrics,
}

/// Reads a directory, and compiles its objects unless its hash is the given one: the form and the hash.
type Read<T> = dyn Fn(&Path, &str) -> Result<Option<(T, String)>, String> + Send + Sync;

impl<T> Manifests<T> {
    /// Reads the directory of a plugin.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(super) fn load<const N: usize>(
        plugin: &'static str,
        path: &Path,
        kinds: &'static ManifestKinds<N>,
        default_and_validate: DefaultAndValidate,
        compile: impl Fn(Objects<N>) -> T + Send + Sync + 'static,
        metrics: ConfigMetrics,
    ) -> Result<Manifests<T>, String> {
        let read = move |path: &Path| {
            let directory = Directory::read(path)?;
            let objects = read_objects(&directory, kinds, default_and_validate)?;
            Ok::<_, String>((objects, directory.hash))
        };
        let (objects, hash) = read(path)?;
        let in_force = ArcSwap::from_pointee(compile(objects));
        metrics.reloaded(Some(&hash));
        Ok(Manifests {
            plugin,
            path: path.to_owned(),
            read: Box::new(move |path, last| {
                let (objects, hash) = read(path)?;
                Ok((hash != last).then(|| (compile(objects), hash)))
            }),
            in_force,
            hash: Mutex::new(hash),
            metrics,
        })
    }

    /// The form in force.
    pub(crate) fn in_force(&self) -> Arc<T> {
        self.in_force.load_full()
    }
}

impl<T: Send + Sync> ManifestDirectory for Manifests<T> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn reload(&self) {
        let mut last = self.hash.lock();
        match (self.read)(&self.path, &last) {
            Ok(None) => {}
            Ok(Some((compiled, hash))) => {
                self.in_force.store(Arc::new(compiled));
                self.metrics.reloaded(Some(&hash));
                tracing::info!(plugin = self.plugin, hash, "changed admission manifests are in force");
                *last = hash;
            }
            Err(error) => {
                self.metrics.reloaded(None);
                tracing::error!(
                    plugin = self.plugin,
                    error,
                    "admission manifests cannot be used, what was in force stays"
                );
            }
        }
    }

    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        self.metrics.collectors()
    }
}
