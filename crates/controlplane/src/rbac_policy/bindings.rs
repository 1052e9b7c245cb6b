//! The default role bindings.

use super::binding::{Binding, Subject};
use pintle_feature_gates::Gate;

/// Cluster role bindings. The roles of controllers are bound to the service accounts of their names.
pub(super) const CLUSTER_ROLE_BINDINGS: &[Binding] = &[
    Binding::new("cluster-admin", "cluster-admin", &[Subject::Group("system:masters")]),
    Binding::new("system:basic-user", "system:basic-user", &[Subject::Group("system:authenticated")]),
    Binding::new(
        "system:cluster-trust-bundle-discovery",
        "system:cluster-trust-bundle-discovery",
        &[Subject::Group("system:serviceaccounts")],
    )
    .behind(Gate::ClusterTrustBundle),
    Binding::new("system:discovery", "system:discovery", &[Subject::Group("system:authenticated")]),
    Binding::new(
        "system:kube-controller-manager",
        "system:kube-controller-manager",
        &[Subject::User("system:kube-controller-manager")],
    ),
    Binding::new("system:kube-dns", "system:kube-dns", &[Subject::ServiceAccount("kube-system", "kube-dns")]),
    Binding::new("system:kube-scheduler", "system:kube-scheduler", &[Subject::User("system:kube-scheduler")]),
    Binding::new("system:monitoring", "system:monitoring", &[Subject::Group("system:monitoring")]),
    Binding::new("system:node", "system:node", &[]),
    Binding::new("system:node-proxier", "system:node-proxier", &[Subject::User("system:kube-proxy")]),
    Binding::new(
        "system:public-info-viewer",
        "system:public-info-viewer",
        &[Subject::Group("system:authenticated"), Subject::Group("system:unauthenticated")],
    ),
    Binding::new(
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        &[Subject::Group("system:serviceaccounts")],
    ),
    Binding::new(
        "system:volume-scheduler",
        "system:volume-scheduler",
        &[Subject::User("system:kube-scheduler")],
    ),
];

/// Role bindings in system namespaces.
pub(super) const ROLE_BINDINGS: &[Binding] = &[
    Binding::new(
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &[Subject::ServiceAccount("kube-system", "bootstrap-signer")],
    )
    .within("kube-public"),
    Binding::new(
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &[Subject::User("system:kube-controller-manager"), Subject::User("system:kube-scheduler")],
    )
    .within("kube-system"),
    Binding::new(
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        &[
            Subject::User("system:kube-controller-manager"),
            Subject::ServiceAccount("kube-system", "kube-controller-manager"),
            Subject::ServiceAccount("kube-system", "leader-election-controller"),
        ],
    )
    .within("kube-system"),
    Binding::new(
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &[Subject::User("system:kube-scheduler"), Subject::ServiceAccount("kube-system", "kube-scheduler")],
    )
    .within("kube-system"),
    Binding::new(
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &[Subject::ServiceAccount("kube-system", "bootstrap-signer")],
    )
    .within("kube-system"),
    Binding::new(
        "system:controller:cloud-provider",
        "system:controller:cloud-provider",
        &[Subject::ServiceAccount("kube-system", "cloud-provider")],
    )
    .within("kube-system"),
    Binding::new(
        "system:controller:token-cleaner",
        "system:controller:token-cleaner",
        &[Subject::ServiceAccount("kube-system", "token-cleaner")],
    )
    .within("kube-system"),
];
