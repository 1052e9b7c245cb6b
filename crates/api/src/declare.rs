//! Builds the declarations of the built-in kinds: a [`Group`] makes a resource, [`Declare`] adds to it.

use crate::printing::{Printer, age, integer, integers, name};
use jiff::Timestamp;
use pintle_feature_gates::Gate;
use pintle_machinery::{GroupVersionKind, Value, ValueExt};
use pintle_registry::{
    Backing, Cell, Column, ComputedObjects, ConnectOptions, Connecter, Conversion, Resource, ScalePaths,
    ScaleValues, Scope, SelectableField, Strategy, Subresource, SubresourceKind, Verb,
};
use std::sync::Arc;

/// The verbs of a proxy: one for each HTTP method that has one.
const PROXY_VERBS: [Verb; 5] = [Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update];

/// The verbs of a stream to a container.
const STREAM_VERBS: [Verb; 2] = [Verb::Create, Verb::Get];

/// The verbs of a subresource that reads and writes the object.
const PART_VERBS: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

/// One version of an API group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    name: &'static str,
    version: &'static str,
    /// The Go package of the version's types in the schema.
    package: &'static str,
}

impl Group {
    pub(crate) const fn new(name: &'static str, version: &'static str, package: &'static str) -> Group {
        Group { name, version, package }
    }

    /// The name of the group.
    pub(crate) const fn name(self) -> &'static str {
        self.name
    }

    /// A namespaced, stored resource.
    pub(crate) fn namespaced(self, kind: &str, plural: &str) -> Resource {
        self.declare(kind, plural, Scope::Namespaced)
    }

    /// A cluster-scoped, stored resource.
    pub(crate) fn cluster(self, kind: &str, plural: &str) -> Resource {
        self.declare(kind, plural, Scope::Cluster)
    }

    fn declare(self, kind: &str, plural: &str, scope: Scope) -> Resource {
        let type_name = format!("{}.{kind}", self.package);
        let singular = kind.to_lowercase();
        Resource::new(self.name, self.version, plural, &singular, kind, scope, &type_name)
    }
}

/// The conversion between two versions whose objects differ only in `apiVersion`.
macro_rules! same_shape {
    ($version:literal, $hub:literal) => {
        pintle_registry::Conversion {
            to_storage: |object| $crate::declare::with_api_version(object, $hub),
            from_storage: |object| $crate::declare::with_api_version(object, $version),
        }
    };
}
pub(crate) use same_shape;

pub(crate) fn with_api_version(mut object: Value, api_version: &str) -> Value {
    object.set("apiVersion", api_version);
    object
}

/// Adds the other parts of a declaration, as a builder.
pub(crate) trait Declare: Sized {
    fn short_names<const N: usize>(self, names: [&str; N]) -> Resource;
    fn categories<const N: usize>(self, names: [&str; N]) -> Resource;
    fn verbs<const N: usize>(self, verbs: [Verb; N]) -> Resource;
    /// Sets the integers that are pointers in this version only.
    fn plain_integers(self, paths: &'static [&'static str]) -> Resource;
    /// Sets the annotations in which this version keeps integers of the internal version.
    fn integer_annotations(self, names: &'static [&'static str]) -> Resource;
    fn selectable(self, fields: impl IntoIterator<Item = SelectableField>) -> Resource;
    /// Sets the message for unsupported field selectors, where the kind has its own.
    fn refuses_fields(self, refusal: fn(&Resource, &str) -> String) -> Resource;
    /// Refuses `metadata.namespace` in field selectors.
    fn without_namespace_field(self) -> Resource;
    /// Sets the table columns and cells.
    fn prints(self, columns: fn() -> Vec<Column>, cells: fn(&Value, Timestamp) -> Vec<Cell>) -> Resource;
    /// As [`Declare::prints`], with the [rank](pintle_registry::TableConvertor::rank) that sorts the rows of lists.
    fn prints_ranked(
        self,
        columns: fn() -> Vec<Column>,
        cells: fn(&Value, Timestamp) -> Vec<Cell>,
        rank: fn(&Value) -> i64,
    ) -> Resource;
    /// Sets a storage path that differs from the plural name.
    fn stored_at(self, path: &str) -> Resource;
    /// Sets a storage version that differs from the served one.
    fn stored_as(self, version: &str) -> Resource;
    /// Declares another version of the same resource, with the conversion to the storage kind.
    fn in_version(self, group: Group, conversion: Conversion) -> Resource;
    /// Sets the deprecation warning: the minor versions of deprecation and removal, and the replacement.
    fn deprecated(self, since: u32, until: u32, replacement: Option<&str>) -> Resource;
    /// Declares that the objects are computed for each read.
    fn computed(self, objects: Arc<dyn ComputedObjects>) -> Resource;
    fn subresource(self, name: &str, kind: SubresourceKind) -> Resource;
    /// Sets the feature gate without which the resource is not served.
    fn behind(self, gate: Gate) -> Resource;

    /// Declares that the server decides requests by these objects ([`Resource::in_force_when_answered`]).
    fn in_force_when_answered(self) -> Resource;
    /// Sets the strategy.
    fn ruled(self, strategy: impl Strategy + 'static) -> Resource;

    /// Adds a subresource that writes a part of the object. Its answers have no form of a table.
    fn part(self, name: &str, strategy: impl Strategy + 'static) -> Resource {
        self.part_with_verbs(name, strategy, PART_VERBS)
    }

    fn part_with_verbs<const N: usize>(
        self,
        name: &str,
        strategy: impl Strategy + 'static,
        verbs: [Verb; N],
    ) -> Resource {
        let (strategy, verbs) = (Arc::new(strategy), verbs.into());
        self.subresource(name, SubresourceKind::Object { strategy, verbs, has_table: false })
    }

    fn status(self, strategy: impl Strategy + 'static) -> Resource {
        let (strategy, verbs) = (Arc::new(strategy), PART_VERBS.into());
        self.subresource("status", SubresourceKind::Object { strategy, verbs, has_table: true })
    }

    /// As [`Declare::status`], for the kinds whose status has no form of a table.
    fn status_without_table(self, strategy: impl Strategy + 'static) -> Resource {
        self.part("status", strategy)
    }

    /// Adds `scale` with the fields that the built-in workloads share.
    fn scale(self) -> Resource {
        self.subresource(
            "scale",
            SubresourceKind::Scale(ScalePaths {
                spec_replicas: "spec.replicas".to_owned(),
                status_replicas: "status.replicas".to_owned(),
                selector: Some("spec.selector".to_owned()),
                values: ScaleValues::Typed,
                table: Arc::new(Printer { columns: scale_columns, cells: scale_cells, rank: None }),
            }),
        )
    }

    /// Adds a stream whose options are a kind of the core group.
    fn stream(self, name: &str, options: &str, connecter: impl Connecter + 'static) -> Resource {
        self.subresource(name, connect(options, &STREAM_VERBS, false, connecter))
    }

    /// Adds the subresource `proxy`, whose options are a kind of the core group.
    fn proxied(self, options: &str, connecter: impl Connecter + 'static) -> Resource {
        self.subresource("proxy", connect(options, &PROXY_VERBS, true, connecter))
    }
}

fn scale_columns() -> Vec<Column> {
    vec![
        Column { format: String::new(), ..Column::name() },
        integers("Desired", "The number of replicas that the workload shall have."),
        integers("Available", "The number of replicas that were observed."),
        Column::age(),
    ]
}

fn scale_cells(scale: &Value, now: Timestamp) -> Vec<Cell> {
    let count = |path| integer(scale, path);
    vec![name(scale), count("spec.replicas"), count("status.replicas"), age(scale, now)]
}

fn connect(
    options: &str,
    verbs: &[Verb],
    is_proxy: bool,
    connecter: impl Connecter + 'static,
) -> SubresourceKind {
    let kind = GroupVersionKind::new("", "v1", options);
    let options = ConnectOptions { kind: kind.clone(), validate: |_| Vec::new() };
    let connecter = Arc::new(connecter);
    SubresourceKind::Connect { kind, options, verbs: verbs.into(), is_proxy, connecter }
}

impl Declare for Resource {
    fn short_names<const N: usize>(mut self, names: [&str; N]) -> Resource {
        self.short_names = names.map(str::to_owned).into();
        self
    }

    fn categories<const N: usize>(mut self, names: [&str; N]) -> Resource {
        self.categories = names.map(str::to_owned).into();
        self
    }

    fn plain_integers(mut self, paths: &'static [&'static str]) -> Resource {
        self.plain_integers = paths;
        self
    }

    fn integer_annotations(mut self, names: &'static [&'static str]) -> Resource {
        self.integer_annotations = names;
        self
    }

    fn verbs<const N: usize>(mut self, verbs: [Verb; N]) -> Resource {
        self.verbs = verbs.into();
        self
    }

    fn selectable(mut self, fields: impl IntoIterator<Item = SelectableField>) -> Resource {
        self.selectable_fields = fields.into_iter().collect();
        self
    }

    fn refuses_fields(mut self, refusal: fn(&Resource, &str) -> String) -> Resource {
        self.unsupported_field = Some(refusal);
        self
    }

    fn without_namespace_field(mut self) -> Resource {
        self.lacks_namespace_field = true;
        self
    }

    fn prints(mut self, columns: fn() -> Vec<Column>, cells: fn(&Value, Timestamp) -> Vec<Cell>) -> Resource {
        self.table = Arc::new(Printer { columns, cells, rank: None });
        self
    }

    fn prints_ranked(
        mut self,
        columns: fn() -> Vec<Column>,
        cells: fn(&Value, Timestamp) -> Vec<Cell>,
        rank: fn(&Value) -> i64,
    ) -> Resource {
        self.table = Arc::new(Printer { columns, cells, rank: Some(rank) });
        self
    }

    fn stored_at(mut self, path: &str) -> Resource {
        path.clone_into(&mut self.storage.path);
        self
    }

    fn stored_as(mut self, version: &str) -> Resource {
        version.clone_into(&mut self.storage.kind.version);
        self
    }

    fn behind(mut self, gate: Gate) -> Resource {
        self.gate = Some(gate);
        self
    }

    fn in_force_when_answered(mut self) -> Resource {
        self.in_force_when_answered = true;
        self
    }

    fn ruled(mut self, strategy: impl Strategy + 'static) -> Resource {
        self.strategy = Arc::new(strategy);
        self
    }

    fn in_version(mut self, group: Group, conversion: Conversion) -> Resource {
        group.version.clone_into(&mut self.resource.version);
        self.type_name = format!("{}.{}", group.package, self.kind);
        self.conversion = Some(conversion);
        self
    }

    fn deprecated(mut self, since: u32, until: u32, replacement: Option<&str>) -> Resource {
        let (version, kind) = (self.resource.group_version(), &self.kind);
        let replacement = replacement.map(|replacement| format!("; use {replacement}")).unwrap_or_default();
        let text =
            format!("{version} {kind} is deprecated in v1.{since}+, unavailable in v1.{until}+{replacement}");
        self.deprecation = Some(text);
        self
    }

    fn computed(mut self, objects: Arc<dyn ComputedObjects>) -> Resource {
        self.backing = Backing::Computed(objects);
        self
    }

    fn subresource(mut self, name: &str, kind: SubresourceKind) -> Resource {
        // Discovery lists the subresources of built-in kinds by name.
        let at = self.subresources.partition_point(|own| *own.name < *name);
        self.subresources.insert(at, Subresource { name: name.to_owned(), kind });
        self
    }
}

/// A selectable boolean, "false" when absent.
pub(crate) fn boolean_field(path: &str) -> SelectableField {
    SelectableField { value: |object, path| object.bool_at(path).to_string(), ..SelectableField::new(path) }
}

/// A selectable integer, "0" when absent.
pub(crate) fn integer_field(path: &str) -> SelectableField {
    SelectableField {
        value: |object, path| object.i64_at(path).unwrap_or_default().to_string(),
        ..SelectableField::new(path)
    }
}
