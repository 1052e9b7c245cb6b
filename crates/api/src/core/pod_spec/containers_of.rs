//! Iterates over the three container lists of a spec.

use pintle_machinery::{FieldPath, Map, Value, ValueExt};

/// The list that a container is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerKind {
    /// `initContainers`.
    Init,
    /// `containers`.
    Regular,
    /// `ephemeralContainers`.
    Ephemeral,
}

impl ContainerKind {
    /// All lists, in the order of most rules.
    pub(crate) const ALL: [ContainerKind; 3] =
        [ContainerKind::Init, ContainerKind::Regular, ContainerKind::Ephemeral];

    /// The name of the list in a spec.
    pub(crate) fn field(self) -> &'static str {
        match self {
            ContainerKind::Init => "initContainers",
            ContainerKind::Regular => "containers",
            ContainerKind::Ephemeral => "ephemeralContainers",
        }
    }
}

/// All containers of a spec.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = (ContainerKind, &Value)> {
    ContainerKind::ALL
        .into_iter()
        .flat_map(move |kind| spec.items_at(kind.field()).iter().map(move |container| (kind, container)))
}

/// All containers of a spec and their field paths.
pub(crate) fn containers_with_path<'a>(
    spec: &'a Value,
    path: &'a FieldPath,
) -> impl Iterator<Item = (ContainerKind, FieldPath, &'a Value)> {
    ContainerKind::ALL.into_iter().flat_map(move |kind| {
        let list = path.child(kind.field());
        let items = spec.items_at(kind.field()).iter().enumerate();
        items.map(move |(index, container)| (kind, list.index(index), container))
    })
}

/// Calls `change` for every container of a spec.
pub(crate) fn for_each_mut(spec: &mut Value, mut change: impl FnMut(ContainerKind, &mut Value)) {
    for kind in ContainerKind::ALL {
        for container in spec.items_at_mut(kind.field()) {
            change(kind, container);
        }
    }
}

/// Whether some annotations are for containers, whose names follow a prefix in the key.
pub(super) fn has_annotations(annotations: &Map, prefix: &str) -> bool {
    annotations.keys().any(|key| key.starts_with(prefix))
}

/// Whether an init container is a sidecar: it runs beside the regular containers
/// (<https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/>).
pub(crate) fn is_restartable_init(container: &Value) -> bool {
    container.str_at("restartPolicy") == "Always"
}
