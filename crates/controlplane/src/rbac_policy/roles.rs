//! The default roles in system namespaces.

use super::role::{Role, on};

/// Sorted by namespace and name.
pub(super) const ROLES: &[Role] = &[
    Role::new(
        "system:controller:bootstrap-signer",
        &[
            on("get list watch", "core", "configmaps"),
            on("update", "core", "configmaps").named("cluster-info"),
            on("create patch update", "core events.k8s.io", "events"),
        ],
    )
    .within("kube-public"),
    Role::new(
        "extension-apiserver-authentication-reader",
        &[on("get list watch", "core", "configmaps").named("extension-apiserver-authentication")],
    )
    .within("kube-system"),
    Role::new(
        "system::leader-locking-kube-controller-manager",
        &[
            on("create get list update watch", "coordination.k8s.io", "leases"),
            on("create get list update watch", "coordination.k8s.io", "leasecandidates"),
        ],
    )
    .within("kube-system"),
    Role::new(
        "system::leader-locking-kube-scheduler",
        &[
            on("create get list update watch", "coordination.k8s.io", "leases"),
            on("create get list update watch", "coordination.k8s.io", "leasecandidates"),
        ],
    )
    .within("kube-system"),
    Role::new("system:controller:bootstrap-signer", &[on("get list watch", "core", "secrets")])
        .within("kube-system"),
    Role::new("system:controller:cloud-provider", &[on("create get list watch", "core", "configmaps")])
        .within("kube-system"),
    Role::new(
        "system:controller:token-cleaner",
        &[
            on("delete get list watch", "core", "secrets"),
            on("create patch update", "core events.k8s.io", "events"),
        ],
    )
    .within("kube-system"),
];
