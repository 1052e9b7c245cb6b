//! The cluster roles of the controllers of kube-controller-manager, each of which runs as a service account of its own
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#controller-roles>).

use super::role::{Role, on};
use pintle_feature_gates::Gate;

/// Sorted by name.
pub(super) const CONTROLLER_ROLES: &[Role] = &[
    Role::new("system:controller:attachdetach-controller", &[
        on("list watch", "core", "persistentvolumeclaims persistentvolumes"),
        on("get list watch", "core", "nodes"),
        on("patch update", "core", "nodes/status"),
        on("list watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
        on("create delete get list watch", "storage.k8s.io", "volumeattachments"),
        on("get list watch", "storage.k8s.io", "csidrivers"),
        on("get list watch", "storage.k8s.io", "csinodes"),
    ]),
    Role::new("system:controller:certificate-controller", &[
        on("delete get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        on("update", "certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status"),
        on("approve", "certificates.k8s.io", "signers").named("kubernetes.io/kube-apiserver-client-kubelet"),
        on("sign", "certificates.k8s.io", "signers").named("kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown"),
        on("create", "authorization.k8s.io", "subjectaccessreviews"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:clusterrole-aggregation-controller", &[
        on("escalate get list patch update watch", "rbac.authorization.k8s.io", "clusterroles"),
    ]),
    Role::new("system:controller:cronjob-controller", &[
        on("get list update watch", "batch", "cronjobs"),
        on("create delete get list patch update watch", "batch", "jobs"),
        on("update", "batch", "cronjobs/status"),
        on("update", "batch", "cronjobs/finalizers"),
        on("delete list watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:daemon-set-controller", &[
        on("get list watch", "apps extensions", "daemonsets"),
        on("update", "apps extensions", "daemonsets/status"),
        on("update", "apps extensions", "daemonsets/finalizers"),
        on("list watch", "core", "nodes"),
        on("create delete list patch watch", "core", "pods"),
        on("create", "core", "pods/binding"),
        on("create delete get list patch update watch", "apps", "controllerrevisions"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:deployment-controller", &[
        on("get list update watch", "apps extensions", "deployments"),
        on("update", "apps extensions", "deployments/status"),
        on("update", "apps extensions", "deployments/finalizers"),
        on("create delete get list patch update watch", "apps extensions", "replicasets"),
        on("get list update watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:device-taint-eviction-controller", &[
        on("delete get list watch", "core", "pods"),
        on("patch update", "core", "pods/status"),
        on("get list watch", "resource.k8s.io", "resourceclaims"),
        on("get list watch", "resource.k8s.io", "resourceslices"),
        on("get list watch", "resource.k8s.io", "deviceclasses"),
        on("create patch update", "core events.k8s.io", "events"),
        on("patch update", "resource.k8s.io", "devicetaintrules/status").behind(Gate::DRADeviceTaintRules),
        on("get list watch", "resource.k8s.io", "devicetaintrules").behind(Gate::DRADeviceTaintRules),
    ])
    .behind(Gate::DRADeviceTaints),
    Role::new("system:controller:disruption-controller", &[
        on("get list watch", "apps extensions", "deployments"),
        on("get list watch", "apps extensions", "replicasets"),
        on("get list watch", "core", "replicationcontrollers"),
        on("get list watch", "policy", "poddisruptionbudgets"),
        on("get list watch", "apps", "statefulsets"),
        on("update", "policy", "poddisruptionbudgets/status"),
        on("patch update", "core", "pods/status"),
        on("get", "*", "*/scale"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:endpoint-controller", &[
        on("get list watch", "core", "pods services"),
        on("create delete get list update watch", "core", "endpoints"),
        on("create", "core", "endpoints/restricted"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:endpointslice-controller", &[
        on("get list watch", "core", "nodes pods services"),
        on("update", "core", "services/finalizers"),
        on("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
        on("create", "discovery.k8s.io", "endpointslices/restricted"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:endpointslicemirroring-controller", &[
        on("get list watch", "core", "endpoints services"),
        on("update", "core", "services/finalizers"),
        on("update", "core", "endpoints/finalizers"),
        on("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
        on("create", "discovery.k8s.io", "endpointslices/restricted"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:ephemeral-volume-controller", &[
        on("get list watch", "core", "pods"),
        on("update", "core", "pods/finalizers"),
        on("create get list watch", "core", "persistentvolumeclaims"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:expand-controller", &[
        on("get list patch update watch", "core", "persistentvolumes"),
        on("patch update", "core", "persistentvolumeclaims/status"),
        on("get list watch", "core", "persistentvolumeclaims"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:generic-garbage-collector", &[
        on("delete get list patch update watch", "*", "*"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:horizontal-pod-autoscaler", &[
        on("get list watch", "autoscaling", "horizontalpodautoscalers"),
        on("update", "autoscaling", "horizontalpodautoscalers/status"),
        on("get update", "*", "*/scale"),
        on("list watch", "core", "pods"),
        on("list watch", "metrics.k8s.io", "pods"),
        on("get list watch", "custom.metrics.k8s.io", "*"),
        on("get list watch", "external.metrics.k8s.io", "*"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:job-controller", &[
        on("get list patch update watch", "batch", "jobs"),
        on("update", "batch", "jobs/status"),
        on("update", "batch", "jobs/finalizers"),
        on("create delete list patch watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
        on("create get list watch", "scheduling.k8s.io", "podgroups workloads").behind(Gate::WorkloadWithJob),
    ]),
    Role::new("system:controller:kube-apiserver-serving-clustertrustbundle-publisher", &[
        on("attest", "certificates.k8s.io", "signers").named("kubernetes.io/kube-apiserver-serving"),
        on("create delete list update watch", "certificates.k8s.io", "clustertrustbundles"),
        on("create patch update", "core events.k8s.io", "events"),
    ])
    .behind(Gate::ClusterTrustBundle),
    Role::new("system:controller:legacy-service-account-token-cleaner", &[
        on("get", "core", "configmaps").named("kube-apiserver-legacy-service-account-token-tracking"),
        on("delete patch", "core", "secrets"),
    ]),
    Role::new("system:controller:namespace-controller", &[
        on("delete get list watch", "core", "namespaces"),
        on("update", "core", "namespaces/finalize namespaces/status"),
        on("delete deletecollection get list watch", "*", "*"),
    ]),
    Role::new("system:controller:node-controller", &[
        on("delete get list patch update watch", "core", "nodes"),
        on("patch update", "core", "nodes/status"),
        on("patch update", "core", "pods/status"),
        on("delete get list watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:persistent-volume-binder", &[
        on("create delete get list update watch", "core", "persistentvolumes"),
        on("update", "core", "persistentvolumes/status"),
        on("get list update watch", "core", "persistentvolumeclaims"),
        on("update", "core", "persistentvolumeclaims/status"),
        on("create delete get list watch", "core", "pods"),
        on("get list watch", "storage.k8s.io", "storageclasses"),
        on("list watch", "core", "nodes"),
        on("create patch update", "core events.k8s.io", "events"),
        on("watch", "core", "events"),
    ]),
    Role::new("system:controller:pod-garbage-collector", &[
        on("delete list watch", "core", "pods"),
        on("get list watch", "core", "nodes"),
        on("patch", "core", "pods/status"),
    ]),
    Role::new("system:controller:podcertificaterequestcleaner", &[
        on("delete get list watch", "certificates.k8s.io", "podcertificaterequests"),
    ])
    .behind(Gate::PodCertificateRequest),
    Role::new("system:controller:podgroup-protection-controller", &[
        on("get list update watch", "scheduling.k8s.io", "podgroups"),
        on("get list watch", "core", "pods"),
    ])
    .behind(Gate::GenericWorkload),
    Role::new("system:controller:pv-protection-controller", &[
        on("get list update watch", "core", "persistentvolumes"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:pvc-protection-controller", &[
        on("get list update watch", "core", "persistentvolumeclaims"),
        on("update", "core", "persistentvolumeclaims/status"),
        on("get list watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:replicaset-controller", &[
        on("get list update watch", "apps extensions", "replicasets"),
        on("update", "apps extensions", "replicasets/status"),
        on("update", "apps extensions", "replicasets/finalizers"),
        on("create delete list patch watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:replication-controller", &[
        on("get list update watch", "core", "replicationcontrollers"),
        on("update", "core", "replicationcontrollers/status"),
        on("update", "core", "replicationcontrollers/finalizers"),
        on("create delete list patch watch", "core", "pods"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:resource-claim-controller", &[
        on("get list watch", "core", "pods"),
        on("update", "core", "pods/finalizers"),
        on("create delete get list watch", "resource.k8s.io", "resourceclaims"),
        on("patch update", "resource.k8s.io", "resourceclaims resourceclaims/status"),
        on("patch update", "core", "pods/status"),
        on("create patch update", "core events.k8s.io", "events"),
        on("get list watch", "scheduling.k8s.io", "podgroups").behind(Gate::DRAWorkloadResourceClaims),
        on("patch update", "scheduling.k8s.io", "podgroups/status").behind(Gate::DRAWorkloadResourceClaims),
        on("patch update", "resource.k8s.io", "resourceclaims/binding")
            .behind(Gate::DRAResourceClaimGranularStatusAuthorization),
    ])
    .behind(Gate::DynamicResourceAllocation),
    Role::new("system:controller:resourcepoolstatusrequest-controller", &[
        on("delete get list watch", "resource.k8s.io", "resourcepoolstatusrequests"),
        on("patch update", "resource.k8s.io", "resourcepoolstatusrequests/status"),
        on("get list watch", "resource.k8s.io", "resourceslices"),
        on("get list watch", "resource.k8s.io", "resourceclaims"),
        on("create patch update", "core events.k8s.io", "events"),
    ])
    .behind(Gate::DRAResourcePoolStatus),
    Role::new("system:controller:resourcequota-controller", &[
        on("list watch", "*", "*"),
        on("update", "core", "resourcequotas/status"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:root-ca-cert-publisher", &[
        on("create update", "core", "configmaps"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:route-controller", &[
        on("list watch", "core", "nodes"),
        on("patch", "core", "nodes/status"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:selinux-warning-controller", &[
        on("create patch update", "core events.k8s.io", "events"),
        on("get list watch", "core", "persistentvolumes"),
        on("get list watch", "core", "persistentvolumeclaims"),
        on("get list watch", "core", "pods"),
        on("get list watch", "storage.k8s.io", "csidrivers"),
    ])
    .behind(Gate::SELinuxChangePolicy),
    Role::new("system:controller:service-account-controller", &[
        on("create", "core", "serviceaccounts"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:service-cidrs-controller", &[
        on("get list patch update watch", "networking.k8s.io", "servicecidrs"),
        on("patch update", "networking.k8s.io", "servicecidrs/finalizers"),
        on("patch update", "networking.k8s.io", "servicecidrs/status"),
        on("get list watch", "networking.k8s.io", "ipaddresses"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:service-controller", &[
        on("get list watch", "core", "services"),
        on("patch update", "core", "services/status"),
        on("list watch", "core", "nodes"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:statefulset-controller", &[
        on("list watch", "core", "pods"),
        on("get list watch", "apps", "statefulsets"),
        on("update", "apps", "statefulsets/status"),
        on("update", "apps", "statefulsets/finalizers"),
        on("create delete get patch update", "core", "pods"),
        on("create delete get list patch update watch", "apps", "controllerrevisions"),
        on("create get list watch", "core", "persistentvolumeclaims"),
        on("delete update", "core", "persistentvolumeclaims"),
        on("update", "core", "pods/finalizers"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:storage-version-garbage-collector", &[
        on("get list watch", "coordination.k8s.io", "leases"),
        on("delete get list patch update watch", "internal.apiserver.k8s.io", "storageversions"),
        on("get patch update", "internal.apiserver.k8s.io", "storageversions/status"),
    ])
    .behind(Gate::StorageVersionAPI),
    Role::new("system:controller:storage-version-migrator-controller", &[
        on("create list patch", "*", "*"),
        on("get", "apiextensions.k8s.io", "customresourcedefinitions"),
        on("patch", "apiextensions.k8s.io", "customresourcedefinitions/status"),
        on("update", "storagemigration.k8s.io", "storageversionmigrations/status"),
    ])
    .behind(Gate::StorageVersionMigrator),
    Role::new("system:controller:ttl-after-finished-controller", &[
        on("delete get list watch", "batch", "jobs"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:ttl-controller", &[
        on("list patch update watch", "core", "nodes"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:validatingadmissionpolicy-status-controller", &[
        on("get list watch", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        on("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:controller:volumeattributesclass-protection-controller", &[
        on("get list watch", "core", "persistentvolumeclaims"),
        on("get list watch", "core", "persistentvolumes"),
        on("get list update watch", "storage.k8s.io", "volumeattributesclasses"),
        on("create patch update", "core events.k8s.io", "events"),
    ])
    .behind(Gate::VolumeAttributesClass),
];
