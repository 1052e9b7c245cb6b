//! The view that serving and the controllers have of a definition, parsed from its JSON without its schemas.

use pintle_cacher::CachedObject;
use pintle_machinery::{Value, to_value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc};

/// A definition at one revision. Its schemas stay in the cached JSON until they are needed.
pub(crate) struct Definition {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: DefinitionStatus,
    object: Arc<CachedObject>,
}

#[derive(Deserialize)]
struct Parsed {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: DefinitionStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) scope: String,
    pub(crate) versions: Vec<Version>,
    pub(crate) conversion: Option<Conversion>,
    pub(crate) preserve_unknown_fields: bool,
}

/// Names, requested or accepted.
#[derive(Debug, Deserialize, Default, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) categories: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) deprecation_warning: Option<String>,
    pub(crate) subresources: Option<Subresources>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<Present>,
    pub(crate) scale: Option<Scale>,
}

/// An object of which only the presence matters.
#[derive(Deserialize, Default)]
pub(crate) struct Present {}

#[derive(Deserialize, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
    pub(crate) status_replicas_path: String,
    pub(crate) label_selector_path: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Conversion {
    pub(crate) strategy: String,
    pub(crate) webhook: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DefinitionStatus {
    pub(crate) conditions: Option<Vec<Condition>>,
    pub(crate) accepted_names: Names,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) condition_type: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Definition {
    /// Parses a cached definition.
    ///
    /// # Errors
    /// When the JSON is not a definition.
    pub(crate) fn read(object: &Arc<CachedObject>) -> Result<Definition, String> {
        let parsed: Parsed = serde_json::from_slice(&object.json()).map_err(|error| error.to_string())?;
        let Parsed { metadata, spec, status } = parsed;
        Ok(Definition { metadata, spec, status, object: object.clone() })
    }

    /// The cached object that it was parsed from.
    pub(crate) fn object(&self) -> &Arc<CachedObject> {
        &self.object
    }

    /// Whether another definition, perhaps of another generation, has the same spec.
    pub(crate) fn has_spec_of(&self, other: &Definition) -> bool {
        #[derive(Deserialize)]
        struct Whole<'a> {
            #[serde(borrow)]
            spec: &'a RawValue,
        }
        fn spec(json: &[u8]) -> Option<&str> {
            Some(serde_json::from_slice::<Whole<'_>>(json).ok()?.spec.get())
        }
        self.metadata.generation == other.metadata.generation
            || spec(&self.object.json()).is_some_and(|own| spec(&other.object.json()) == Some(own))
    }

    /// The printer columns and selectable fields of each version.
    pub(crate) fn shown(&self) -> Vec<Value> {
        #[derive(Deserialize)]
        struct Whole {
            spec: Versions,
        }
        #[derive(Deserialize)]
        struct Versions {
            versions: Vec<Shown>,
        }
        #[derive(Deserialize, Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shown {
            #[serde(default)]
            additional_printer_columns: Value,
            #[serde(default)]
            selectable_fields: Value,
        }
        let read: Result<Whole, _> = serde_json::from_slice(&self.object.json());
        let versions = read.map(|whole| whole.spec.versions).unwrap_or_default();
        versions.into_iter().map(|shown| to_value(shown).unwrap_or_default()).collect()
    }

    /// A condition by its type.
    pub(crate) fn condition(&self, condition_type: &str) -> Option<&Condition> {
        let conditions = self.status.conditions.as_deref().unwrap_or_default();
        conditions.iter().find(|condition| condition.condition_type == condition_type)
    }

    /// Whether a condition has the status `True`.
    pub(crate) fn is_true(&self, condition_type: &str) -> bool {
        self.condition(condition_type).is_some_and(|condition| condition.status == "True")
    }

    /// Whether it is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
