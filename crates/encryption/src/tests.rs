//! Tests of values with whole configurations.

pub(crate) mod known_answers;
mod properties;
mod reference;
mod reload;
mod rules;

use crate::{Encryption, EncryptionConfigError, EncryptionMetrics, EncryptionOptions};
use bytes::Bytes;
use pintle_machinery::GroupResource;
use pintle_storage::{Key, TransformError, Transformed};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;

/// A configuration in its own file.
pub(crate) struct Fixture {
    pub(crate) encryption: Arc<Encryption>,
    pub(crate) metrics: Arc<EncryptionMetrics>,
    dir: TempDir,
}

impl Fixture {
    pub(crate) async fn load(rules: &str) -> Fixture {
        Fixture::try_load(rules, false).await.unwrap()
    }

    pub(crate) async fn try_load(rules: &str, reload: bool) -> Result<Fixture, EncryptionConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("encryption.yaml");
        std::fs::write(&path, config(rules)).unwrap();
        let metrics = Arc::new(EncryptionMetrics::new("apiserver-test").unwrap());
        let options =
            EncryptionOptions { path, automatic_reload: reload, poll_interval: Duration::from_millis(20) };
        let encryption = Encryption::load(options, metrics.clone()).await?;
        Ok(Fixture { encryption, metrics, dir })
    }

    /// Replaces the rules in the file.
    pub(crate) fn rewrite(&self, text: &str) {
        let path = self.dir.path().join("encryption.yaml");
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    pub(crate) async fn seal(
        &self,
        resource: &str,
        key: &str,
        value: &[u8],
    ) -> Result<Bytes, TransformError> {
        let transformer = self.encryption.transformer(&group_resource(resource));
        transformer.to_storage(&Key::new(key), Bytes::copy_from_slice(value)).await
    }

    pub(crate) async fn open(
        &self,
        resource: &str,
        key: &str,
        stored: &[u8],
    ) -> Result<Transformed, TransformError> {
        let transformer = self.encryption.transformer(&group_resource(resource));
        transformer.from_storage(&Key::new(key), Bytes::copy_from_slice(stored)).await
    }

    /// The sum of a counter's or gauge's series with these label values.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        metric(&self.metrics, name, labels)
    }

    /// The number of series of a metric.
    pub(crate) fn series(&self, name: &str) -> usize {
        let families = self.metrics.collectors().into_iter().flat_map(|collector| collector.collect());
        families.filter(|family| family.name() == name).map(|family| family.get_metric().len()).sum()
    }
}

pub(crate) fn metric(metrics: &EncryptionMetrics, name: &str, labels: &[&str]) -> f64 {
    let families: Vec<_> = metrics.collectors().iter().flat_map(|collector| collector.collect()).collect();
    let family = families.iter().find(|family| family.name() == name).unwrap();
    let series = family.get_metric().iter().filter(|metric| {
        labels.iter().all(|label| metric.get_label().iter().any(|pair| pair.value() == *label))
    });
    series.map(|metric| metric.get_counter().get_value() + metric.get_gauge().get_value()).sum()
}

pub(crate) fn group_resource(name: &str) -> GroupResource {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource::new(group, resource)
}

pub(crate) fn config(rules: &str) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n{rules}")
}

/// A rule with one provider with one key, all bytes of which are `byte`.
pub(crate) fn rule(resources: &str, provider: &str, key: &str, byte: u8) -> String {
    format!("- resources: [{resources}]\n  providers:\n{}", keyed(provider, &[(key, byte)]))
}

/// A provider with keys of 32 equal bytes.
pub(crate) fn keyed(provider: &str, keys: &[(&str, u8)]) -> String {
    let mut text = format!("  - {provider}:\n      keys:\n");
    for (name, byte) in keys {
        let secret = secret(*byte);
        text.push_str(&format!("      - name: {name}\n        secret: {secret}\n"));
    }
    text
}

pub(crate) fn secret(byte: u8) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode([byte; 32])
}
