//! Drops status fields of disabled features, unless the stored pod has them.

use crate::gated_fields::{GatedFields, drop_disabled};
use pintle_feature_gates::Gate;
use pintle_machinery::Value;

const GATED: &[GatedFields] = &[
    GatedFields {
        gates: &[Gate::DRANodeAllocatableResources],
        fields: &["nodeAllocatableResourceClaimStatuses"],
    },
    GatedFields {
        gates: &[Gate::PodObservedGenerationTracking],
        fields: &["observedGeneration", "conditions[].observedGeneration"],
    },
    GatedFields { gates: &[Gate::DRAExtendedResource], fields: &["extendedResourceClaimStatus"] },
    GatedFields {
        gates: &[Gate::InPlacePodLevelResourcesVerticalScaling],
        fields: &["resources", "allocatedResources"],
    },
    GatedFields {
        gates: &[Gate::ResourceHealthStatus],
        fields: &[
            "containerStatuses[].allocatedResourcesStatus",
            "initContainerStatuses[].allocatedResourcesStatus",
            "ephemeralContainerStatuses[].allocatedResourcesStatus",
        ],
    },
    GatedFields {
        gates: &[Gate::ResourceHealthStatusMessage],
        fields: &[
            "containerStatuses[].allocatedResourcesStatus[].resources[].message",
            "initContainerStatuses[].allocatedResourcesStatus[].resources[].message",
            "ephemeralContainerStatuses[].allocatedResourcesStatus[].resources[].message",
        ],
    },
    GatedFields {
        gates: &[Gate::ImageVolumeWithDigest],
        fields: &[
            "containerStatuses[].volumeMounts[].volumeStatus",
            "initContainerStatuses[].volumeMounts[].volumeStatus",
            "ephemeralContainerStatuses[].volumeMounts[].volumeStatus",
        ],
    },
];

/// Fields of specs, and those of statuses that belong to them: a stored pod with the ones keeps the others, too.
pub(super) const OF_SPECS: &[GatedFields] = &[
    GatedFields {
        gates: &[Gate::DynamicResourceAllocation],
        fields: &["spec.resourceClaims", "status.resourceClaimStatuses"],
    },
    GatedFields {
        gates: &[Gate::SupplementalGroupsPolicy],
        fields: &[
            "spec.securityContext.supplementalGroupsPolicy",
            "status.containerStatuses[].user",
            "status.initContainerStatuses[].user",
            "status.ephemeralContainerStatuses[].user",
        ],
    },
];

/// Drops the fields.
pub(super) fn drop_disabled_fields(status: &mut Value, old: Option<&Value>) {
    drop_disabled(GATED, status, old);
}
