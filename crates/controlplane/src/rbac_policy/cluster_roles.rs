//! The cluster roles of users, nodes and control plane components
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings>).

use super::role::{Role, at, on};
use pintle_feature_gates::Gate;

/// Sorted by name.
pub(super) const CLUSTER_ROLES: &[Role] = &[
    Role::new("admin", &[])
        .aggregating("rbac.authorization.k8s.io/aggregate-to-admin"),
    Role::new("cluster-admin", &[
        on("*", "*", "*"),
        at("*", "*"),
    ]),
    Role::new("edit", &[])
        .labelled("rbac.authorization.k8s.io/aggregate-to-admin")
        .aggregating("rbac.authorization.k8s.io/aggregate-to-edit"),
    Role::new("system:aggregate-to-admin", &[
        on("create", "authorization.k8s.io", "localsubjectaccessreviews"),
        on("create delete deletecollection get list patch update watch", "rbac.authorization.k8s.io", "rolebindings roles"),
    ])
    .labelled("rbac.authorization.k8s.io/aggregate-to-admin"),
    Role::new("system:aggregate-to-edit", &[
        on("get list watch", "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        on("impersonate", "core", "serviceaccounts"),
        on("create delete deletecollection patch update", "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
        on("create", "core", "pods/eviction"),
        on("create delete deletecollection patch update", "core", "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy"),
        on("create", "core", "serviceaccounts/token"),
        on("create delete deletecollection patch update", "core events.k8s.io", "events"),
        on("create delete deletecollection patch update", "apps", "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale"),
        on("create delete deletecollection patch update", "autoscaling", "horizontalpodautoscalers"),
        on("create delete deletecollection patch update", "batch", "cronjobs jobs"),
        on("create delete deletecollection patch update", "extensions", "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale"),
        on("create delete deletecollection patch update", "policy", "poddisruptionbudgets"),
        on("create delete deletecollection patch update", "networking.k8s.io", "ingresses networkpolicies"),
        on("create delete deletecollection get list patch update watch", "coordination.k8s.io", "leases"),
        on("create delete deletecollection patch update", "resource.k8s.io", "resourceclaims resourceclaimtemplates")
            .behind(Gate::DynamicResourceAllocation),
        on("create delete deletecollection patch update", "scheduling.k8s.io", "podgroups workloads")
            .behind(Gate::GenericWorkload),
    ])
    .labelled("rbac.authorization.k8s.io/aggregate-to-edit"),
    Role::new("system:aggregate-to-view", &[
        on("get list watch", "core", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status"),
        on("get list watch", "core", "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status"),
        on("get list watch", "core", "namespaces"),
        on("get list watch", "core events.k8s.io", "events"),
        on("get list watch", "discovery.k8s.io", "endpointslices"),
        on("get list watch", "apps", "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"),
        on("get list watch", "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        on("get list watch", "batch", "cronjobs cronjobs/status jobs jobs/status"),
        on("get list watch", "extensions", "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"),
        on("get list watch", "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        on("get list watch", "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
        on("get list watch", "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates")
            .behind(Gate::DynamicResourceAllocation),
        on("get list watch", "scheduling.k8s.io", "podgroups podgroups/status workloads")
            .behind(Gate::GenericWorkload),
    ])
    .labelled("rbac.authorization.k8s.io/aggregate-to-view"),
    Role::new("system:auth-delegator", &[
        on("create", "authentication.k8s.io", "tokenreviews"),
        on("create", "authorization.k8s.io", "subjectaccessreviews"),
    ]),
    Role::new("system:basic-user", &[
        on("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        on("create", "authentication.k8s.io", "selfsubjectreviews"),
    ]),
    Role::new("system:certificates.k8s.io:certificatesigningrequests:nodeclient", &[
        on("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"),
    ]),
    Role::new("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", &[
        on("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"),
    ]),
    Role::new("system:certificates.k8s.io:kube-apiserver-client-approver", &[
        on("approve", "certificates.k8s.io", "signers").named("kubernetes.io/kube-apiserver-client"),
    ]),
    Role::new("system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", &[
        on("approve", "certificates.k8s.io", "signers").named("kubernetes.io/kube-apiserver-client-kubelet"),
    ]),
    Role::new("system:certificates.k8s.io:kubelet-serving-approver", &[
        on("approve", "certificates.k8s.io", "signers").named("kubernetes.io/kubelet-serving"),
    ]),
    Role::new("system:certificates.k8s.io:legacy-unknown-approver", &[
        on("approve", "certificates.k8s.io", "signers").named("kubernetes.io/legacy-unknown"),
    ]),
    Role::new("system:cluster-trust-bundle-discovery", &[
        on("get list watch", "certificates.k8s.io", "clustertrustbundles"),
    ])
    .behind(Gate::ClusterTrustBundle),
    Role::new("system:discovery", &[
        at("get", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ]),
    Role::new("system:heapster", &[
        on("get list watch", "core", "events namespaces nodes pods"),
        on("get list watch", "extensions", "deployments"),
    ]),
    Role::new("system:kube-aggregator", &[
        on("get list watch", "core", "endpoints services"),
    ]),
    Role::new("system:kube-controller-manager", &[
        on("create patch update", "core events.k8s.io", "events"),
        on("create", "coordination.k8s.io", "leases"),
        on("get update", "coordination.k8s.io", "leases").named("kube-controller-manager"),
        on("create", "core", "secrets serviceaccounts"),
        on("delete", "core", "secrets"),
        on("get", "core", "configmaps namespaces secrets serviceaccounts"),
        on("update", "core", "secrets serviceaccounts"),
        on("create", "authentication.k8s.io", "tokenreviews"),
        on("create", "authorization.k8s.io", "subjectaccessreviews"),
        on("list watch", "*", "*"),
        on("create", "core", "serviceaccounts/token"),
    ]),
    Role::new("system:kube-dns", &[
        on("list watch", "core", "endpoints services"),
    ]),
    Role::new("system:kube-scheduler", &[
        on("create patch update", "core events.k8s.io", "events"),
        on("create", "coordination.k8s.io", "leases"),
        on("get list update watch", "coordination.k8s.io", "leases").named("kube-scheduler"),
        on("create delete deletecollection get list patch update watch", "coordination.k8s.io", "leasecandidates"),
        on("get list watch", "core", "nodes"),
        on("delete get list watch", "core", "pods"),
        on("create", "core", "bindings pods/binding"),
        on("patch update", "core", "pods/status"),
        on("get list watch", "core", "replicationcontrollers services"),
        on("get list watch", "apps extensions", "replicasets"),
        on("get list watch", "apps", "statefulsets"),
        on("get list watch", "policy", "poddisruptionbudgets"),
        on("get list watch", "core", "persistentvolumeclaims persistentvolumes"),
        on("create", "authentication.k8s.io", "tokenreviews"),
        on("create", "authorization.k8s.io", "subjectaccessreviews"),
        on("get list watch", "storage.k8s.io", "csinodes"),
        on("get list watch", "storage.k8s.io", "volumeattachments"),
        on("get list watch", "core", "namespaces"),
        on("get list watch", "storage.k8s.io", "csidrivers"),
        on("get list watch", "storage.k8s.io", "csistoragecapacities"),
        on("get list watch", "resource.k8s.io", "deviceclasses").behind(Gate::DynamicResourceAllocation),
        on("get list patch update watch", "resource.k8s.io", "resourceclaims").behind(Gate::DynamicResourceAllocation),
        on("get list patch update watch", "resource.k8s.io", "resourceclaims/status").behind(Gate::DynamicResourceAllocation),
        on("update", "core", "pods/finalizers").behind(Gate::DynamicResourceAllocation),
        on("get list watch", "resource.k8s.io", "resourceslices").behind(Gate::DynamicResourceAllocation),
        on("create delete", "resource.k8s.io", "resourceclaims").behind(Gate::DRAExtendedResource),
        on("get list watch", "resource.k8s.io", "devicetaintrules").behind(Gate::DRADeviceTaintRules),
        on("patch update", "resource.k8s.io", "resourceclaims/binding")
            .behind(Gate::DRAResourceClaimGranularStatusAuthorization),
        on("get list watch", "scheduling.k8s.io", "podgroups").behind(Gate::GenericWorkload),
        on("patch update", "scheduling.k8s.io", "podgroups/status").behind(Gate::GenericWorkload),
    ]),
    Role::new("system:kubelet-api-admin", &[
        on("get list watch", "core", "nodes"),
        on("proxy", "core", "nodes"),
        on("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        on("*", "core", "nodes/configz nodes/healthz nodes/pods").behind(Gate::KubeletFineGrainedAuthz),
    ]),
    Role::new("system:monitoring", &[
        at("get", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*")
            .with_urls(&[(Gate::ComponentFlagz, "/flagz"), (Gate::ComponentStatusz, "/statusz")]),
        on("get", "core", "nodes/metrics"),
    ]),
    Role::new("system:node", &[
        on("create", "authentication.k8s.io", "tokenreviews"),
        on("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
        on("get list watch", "core", "services"),
        on("create get list watch", "core", "nodes"),
        on("patch update", "core", "nodes/status"),
        on("patch update", "core", "nodes"),
        on("create patch update", "core events.k8s.io", "events"),
        on("get list watch", "core", "pods"),
        on("create delete", "core", "pods"),
        on("patch update", "core", "pods/status"),
        on("create", "core", "pods/eviction"),
        on("get list watch", "core", "configmaps secrets"),
        on("get", "core", "persistentvolumeclaims persistentvolumes"),
        on("get", "core", "endpoints"),
        on("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        on("create delete get patch update", "coordination.k8s.io", "leases"),
        on("get", "storage.k8s.io", "volumeattachments"),
        on("create", "core", "serviceaccounts/token"),
        on("get patch update", "core", "persistentvolumeclaims/status"),
        on("get list watch", "storage.k8s.io", "csidrivers"),
        on("create delete get patch update", "storage.k8s.io", "csinodes"),
        on("get list watch", "node.k8s.io", "runtimeclasses"),
        on("get", "resource.k8s.io", "resourceclaims").behind(Gate::DynamicResourceAllocation),
        on("deletecollection", "resource.k8s.io", "resourceslices").behind(Gate::DynamicResourceAllocation),
        on("get list watch", "certificates.k8s.io", "clustertrustbundles").behind(Gate::ClusterTrustBundle),
        on("get", "core", "serviceaccounts").behind(Gate::KubeletServiceAccountTokenForCredentialProviders),
        on("create get list watch", "certificates.k8s.io", "podcertificaterequests")
            .behind(Gate::PodCertificateRequest),
    ]),
    Role::new("system:node-bootstrapper", &[
        on("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    ]),
    Role::new("system:node-problem-detector", &[
        on("get", "core", "nodes"),
        on("patch", "core", "nodes/status"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:node-proxier", &[
        on("list watch", "core", "endpoints services"),
        on("get list watch", "core", "nodes"),
        on("create patch update", "core events.k8s.io", "events"),
        on("list watch", "networking.k8s.io", "servicecidrs"),
        on("list watch", "discovery.k8s.io", "endpointslices"),
    ]),
    Role::new("system:persistent-volume-provisioner", &[
        on("create delete get list watch", "core", "persistentvolumes"),
        on("get list update watch", "core", "persistentvolumeclaims"),
        on("get list watch", "storage.k8s.io", "storageclasses"),
        on("watch", "core", "events"),
        on("create patch update", "core events.k8s.io", "events"),
    ]),
    Role::new("system:public-info-viewer", &[
        at("get", "/healthz /livez /readyz /version /version/"),
    ]),
    Role::new("system:service-account-issuer-discovery", &[
        at("get", "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"),
    ]),
    Role::new("system:volume-scheduler", &[
        on("get list patch update watch", "core", "persistentvolumes"),
        on("get list watch", "storage.k8s.io", "storageclasses"),
        on("get list patch update watch", "core", "persistentvolumeclaims"),
    ]),
    Role::new("view", &[])
        .labelled("rbac.authorization.k8s.io/aggregate-to-edit")
        .aggregating("rbac.authorization.k8s.io/aggregate-to-view"),
];
