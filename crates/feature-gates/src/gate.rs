//! The gates: their names, history, dependencies and support.

use crate::{MinorVersion, Spec, Stage, Support};
use std::{fmt, str::FromStr};

macro_rules! value {
    (on) => {
        true
    };
    (off) => {
        false
    };
    () => {
        false
    };
    (locked) => {
        true
    };
}

macro_rules! gates {
    ($($name:ident, $support:ident, [$($needed:ident)*], [$($minor:literal $stage:ident $default:ident $($locked:ident)?),*];)*) => {
        /// A gate of kube-apiserver, by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Gate {
            $(#[doc = concat!("`", stringify!($name), "`")] $name,)*
        }

        impl Gate {
            /// All gates, by name.
            pub const ALL: &[Gate] = &[$(Gate::$name),*];

            /// The name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Gate::$name => stringify!($name),)*
                }
            }

            /// The states of the gate, from its introduction on.
            pub fn history(self) -> &'static [Spec] {
                match self {
                    $(Gate::$name => const { &[$(Spec {
                        since: MinorVersion::new(1, $minor),
                        stage: Stage::$stage,
                        default: value!($default),
                        locked: value!($($locked)?),
                    }),*] },)*
                }
            }

            /// The gates that have to be open for this one, by name.
            pub fn needed(self) -> &'static [Gate] {
                match self {
                    $(Gate::$name => &[$(Gate::$needed),*],)*
                }
            }

            /// The values of the gate that this server implements.
            pub fn support(self) -> Support {
                match self {
                    $(Gate::$name => Support::$support,)*
                }
            }
        }
    };
}

// Name, support, needed gates, and history: minor version, stage, default.
gates! {
    APIResponseCompression, Both, [], [8 Alpha off, 16 Beta on];
    APIServerIdentity, Both, [], [20 Alpha off, 26 Beta on];
    APIServerTracing, DefaultOnly, [], [22 Alpha off, 27 Beta on, 34 GA on locked];
    APIServingWithRoutine, NoEffect, [], [30 Alpha off];
    AggregatedDiscoveryRemoveBetaType, DefaultOnly, [], [0 GA off, 33 Deprecated on, 35 Deprecated on locked];
    AllAlpha, NoEffect, [], [0 Alpha off];
    AllBeta, NoEffect, [], [0 Beta off];
    AllowDNSOnlyNodeCSR, NoEffect, [], [0 GA on, 31 Deprecated off];
    AllowInsecureKubeletCertificateSigningRequests, Both, [], [0 GA on, 31 Deprecated off];
    AllowOverwriteTerminationGracePeriodSeconds, NoEffect, [], [0 GA on, 32 Deprecated off, 35 Deprecated off locked];
    AllowParsingUserUIDFromCertAuth, Both, [], [33 Beta on];
    AllowServiceExternalIPs, NoEffect, [], [0 GA on];
    AllowUnsafeMalformedObjectDeletion, Both, [], [32 Alpha off];
    AnonymousAuthConfigurableEndpoints, DefaultOnly, [], [31 Alpha off, 32 Beta on, 34 GA on locked];
    AnyVolumeDataSource, DefaultOnly, [], [18 Alpha off, 24 Beta on, 33 GA on locked];
    AtomicFIFO, NoEffect, [], [36 Beta on];
    AuthorizeNodeWithSelectors, DefaultOnly, [AuthorizeWithSelectors], [31 Alpha off, 32 Beta on, 34 GA on locked];
    AuthorizePodWebsocketUpgradeCreatePermission, Both, [], [35 Beta on];
    AuthorizeWithSelectors, DefaultOnly, [], [31 Alpha off, 32 Beta on, 34 GA on locked];
    BtreeWatchCache, NoEffect, [], [32 Beta on, 33 GA on locked];
    CBORServingAndStorage, Both, [], [32 Alpha off];
    CPUManagerPolicyAlphaOptions, NoEffect, [], [23 Alpha off];
    CPUManagerPolicyBetaOptions, NoEffect, [], [23 Beta on];
    CPUManagerPolicyOptions, NoEffect, [], [22 Alpha off, 23 Beta on, 33 GA on locked];
    CRDObservedGenerationTracking, NoEffect, [], [35 Beta off, 36 Beta on];
    CRDValidationRatcheting, DefaultOnly, [], [28 Alpha off, 30 Beta on, 33 GA on locked];
    CRIListStreaming, NoEffect, [], [36 Alpha off];
    CSIServiceAccountTokenSecrets, Both, [], [35 Beta on, 36 GA on locked];
    CSIVolumeHealth, NoEffect, [], [21 Alpha off];
    ChangeContainerStatusOnKubeletRestart, NoEffect, [], [0 GA on, 35 Deprecated off];
    ClearingNominatedNodeNameAfterBinding, Both, [], [34 Alpha off, 35 Beta on];
    ClientsAllowCARotation, NoEffect, [], [36 Beta on];
    ClientsAllowCBOR, NoEffect, [], [32 Alpha off];
    ClientsAllowTLSCacheGC, NoEffect, [], [36 Beta on];
    ClientsPreferCBOR, NoEffect, [], [32 Alpha off];
    CloudControllerManagerWatchBasedRoutesReconciliation, NoEffect, [], [35 Alpha off];
    CloudControllerManagerWebhook, NoEffect, [], [27 Alpha off];
    ClusterTrustBundle, Both, [], [27 Alpha off, 33 Beta off];
    ClusterTrustBundleProjection, Both, [ClusterTrustBundle], [29 Alpha off, 33 Beta off];
    ComponentFlagz, Both, [], [32 Alpha off, 36 Beta on];
    ComponentStatusz, Both, [], [32 Alpha off, 36 Beta on];
    ConcurrentWatchObjectDecode, NoEffect, [], [31 Beta off];
    ConsistentListFromCache, NoEffect, [], [28 Alpha off, 31 Beta on, 34 GA on locked];
    ConstrainedImpersonation, Both, [], [35 Alpha off, 36 Beta on];
    ContainerCheckpoint, NoEffect, [], [25 Alpha off, 30 Beta on];
    ContainerRestartRules, Both, [], [34 Alpha off, 35 Beta on];
    ContainerStopSignals, Both, [], [33 Alpha off];
    ContextualLogging, NoEffect, [], [24 Alpha off, 30 Beta on];
    ControllerManagerReleaseLeaderElectionLockOnExit, NoEffect, [], [36 Alpha off];
    CoordinatedLeaderElection, Both, [], [31 Alpha off, 33 Beta off];
    CrossNamespaceVolumeDataSource, Both, [], [26 Alpha off];
    CustomCPUCFSQuotaPeriod, NoEffect, [], [12 Alpha off, 36 GA on];
    CustomResourceFieldSelectors, DefaultOnly, [], [30 Alpha off, 31 Beta on, 32 GA on locked];
    DRAAdminAccess, Both, [DynamicResourceAllocation], [32 Alpha off, 34 Beta on, 36 GA on locked];
    DRAConsumableCapacity, Both, [DynamicResourceAllocation], [34 Alpha off, 36 Beta on];
    DRADeviceBindingConditions, Both, [DRAResourceClaimDeviceStatus DynamicResourceAllocation], [34 Alpha off, 36 Beta on];
    DRADeviceTaintRules, Both, [DRADeviceTaints], [35 Alpha off, 36 Beta off];
    DRADeviceTaints, Both, [DynamicResourceAllocation], [33 Alpha off, 36 Beta on];
    DRAExtendedResource, Both, [DynamicResourceAllocation], [34 Alpha off, 36 Beta on];
    DRAListTypeAttributes, Both, [DynamicResourceAllocation], [36 Alpha off];
    DRANodeAllocatableResources, Both, [DynamicResourceAllocation], [36 Alpha off];
    DRAPartitionableDevices, Both, [DynamicResourceAllocation], [33 Alpha off, 36 Beta on];
    DRAPrioritizedList, Both, [DynamicResourceAllocation], [33 Alpha off, 34 Beta on, 36 GA on];
    DRAResourceClaimDeviceStatus, Both, [], [32 Alpha off, 33 Beta on];
    DRAResourceClaimGranularStatusAuthorization, Both, [DRAResourceClaimDeviceStatus DynamicResourceAllocation], [36 Beta on];
    DRAResourcePoolStatus, Both, [DynamicResourceAllocation], [36 Alpha off];
    DRASchedulerFilterTimeout, NoEffect, [DynamicResourceAllocation], [34 Beta on];
    DRAWorkloadResourceClaims, Both, [DynamicResourceAllocation GenericWorkload], [36 Alpha off];
    DeclarativeValidation, NoEffect, [], [33 Beta on, 36 GA on locked];
    DeclarativeValidationBeta, NoEffect, [DeclarativeValidation], [36 Beta on];
    DeclarativeValidationTakeover, NoEffect, [DeclarativeValidation], [33 Beta off, 36 Deprecated off];
    DeploymentReplicaSetTerminatingReplicas, Both, [], [33 Alpha off, 35 Beta on];
    DetectCacheInconsistency, NoEffect, [], [34 Beta on];
    DisableAllocatorDualWrite, DefaultOnly, [MultiCIDRServiceAllocator], [31 Alpha off, 33 Beta off, 34 GA on, 35 GA on locked];
    DisableCPUQuotaWithExclusiveCPUs, NoEffect, [], [33 Beta on, 36 Deprecated on];
    DisableNodeKubeProxyVersion, NoEffect, [], [29 Alpha off, 31 Deprecated off, 33 Deprecated on, 36 Deprecated on locked];
    DynamicResourceAllocation, Both, [], [26 Alpha off, 32 Beta off, 34 GA on, 35 GA on locked];
    EnvFiles, Both, [], [34 Alpha off, 35 Beta on];
    EventedPLEG, NoEffect, [], [26 Alpha off];
    ExecProbeTimeout, NoEffect, [], [20 GA on, 35 GA on locked];
    ExtendWebSocketsToKubelet, Both, [NodeDeclaredFeatures], [36 Beta on];
    ExternalServiceAccountTokenSigner, DefaultOnly, [], [32 Alpha off, 34 Beta on, 36 GA on locked];
    GangScheduling, NoEffect, [GenericWorkload], [35 Alpha off];
    GenericWorkload, Both, [], [35 Alpha off];
    GitRepoVolumeDriver, DefaultOnly, [], [0 GA on, 33 Deprecated off, 36 Deprecated off locked];
    GracefulNodeShutdown, NoEffect, [], [20 Alpha off, 21 Beta on];
    GracefulNodeShutdownBasedOnPodPriority, NoEffect, [GracefulNodeShutdown], [23 Alpha off, 24 Beta on];
    HPAConfigurableTolerance, Both, [], [33 Alpha off, 35 Beta on];
    HPAScaleToZero, Both, [], [16 Alpha off];
    HostnameOverride, Both, [], [34 Alpha off, 35 Beta on];
    ImageMaximumGCAge, NoEffect, [], [29 Alpha off, 30 Beta on, 35 GA on locked];
    ImageVolume, Both, [], [31 Alpha off, 33 Beta off, 35 Beta on, 36 GA on locked];
    ImageVolumeWithDigest, Both, [ImageVolume], [35 Alpha off];
    InOrderInformers, NoEffect, [], [33 Beta on, 36 GA on locked];
    InOrderInformersBatchProcess, NoEffect, [], [35 Beta on];
    InPlacePodLevelResourcesVerticalScaling, Both, [InPlacePodVerticalScaling NodeDeclaredFeatures PodLevelResources], [35 Alpha off, 36 Beta on];
    InPlacePodVerticalScaling, DefaultOnly, [], [27 Alpha off, 33 Beta on, 35 GA on locked];
    InPlacePodVerticalScalingExclusiveCPUs, NoEffect, [InPlacePodVerticalScaling], [32 Alpha off];
    InPlacePodVerticalScalingExclusiveMemory, NoEffect, [InPlacePodVerticalScaling], [34 Alpha off];
    InPlacePodVerticalScalingInitContainers, Both, [InPlacePodVerticalScaling NodeDeclaredFeatures], [36 Beta on];
    InformerResourceVersion, NoEffect, [], [30 Alpha off, 35 GA on];
    JobBackoffLimitPerIndex, DefaultOnly, [], [28 Alpha off, 29 Beta on, 33 GA on locked];
    JobManagedBy, DefaultOnly, [], [30 Alpha off, 32 Beta on, 35 GA on locked];
    JobPodReplacementPolicy, DefaultOnly, [], [28 Alpha off, 29 Beta on, 34 GA on locked];
    JobSuccessPolicy, DefaultOnly, [], [30 Alpha off, 31 Beta on, 33 GA on locked];
    KMSv1, DefaultOnly, [], [0 GA on, 28 Deprecated on, 29 Deprecated off];
    KubeletCgroupDriverFromCRI, NoEffect, [], [28 Alpha off, 31 Beta on, 34 GA on locked];
    KubeletCrashLoopBackOffMax, NoEffect, [], [32 Alpha off, 35 Beta on];
    KubeletEnsureSecretPulledImages, NoEffect, [], [33 Alpha off, 35 Beta on];
    KubeletFineGrainedAuthz, Both, [], [32 Alpha off, 33 Beta on, 36 GA on locked];
    KubeletInUserNamespace, NoEffect, [], [22 Alpha off];
    KubeletPSI, NoEffect, [], [33 Alpha off, 34 Beta on, 36 GA on locked];
    KubeletPodResourcesDynamicResources, NoEffect, [], [27 Alpha off, 34 Beta on, 36 GA on locked];
    KubeletPodResourcesGet, NoEffect, [], [27 Alpha off, 34 Beta on, 36 GA on locked];
    KubeletPodResourcesListUseActivePods, NoEffect, [], [0 GA off, 34 Deprecated on];
    KubeletRegistrationGetOnExistsOnly, NoEffect, [], [0 GA on, 32 Deprecated off];
    KubeletSeparateDiskGC, NoEffect, [], [29 Alpha off, 31 Beta on];
    KubeletServiceAccountTokenForCredentialProviders, Both, [], [33 Alpha off, 34 Beta on];
    KubeletTracing, NoEffect, [], [25 Alpha off, 27 Beta on, 34 GA on locked];
    ListFromCacheSnapshot, NoEffect, [], [33 Alpha off, 34 Beta on];
    LocalStorageCapacityIsolationFSQuotaMonitoring, NoEffect, [], [15 Alpha off, 31 Beta off];
    LogarithmicScaleDown, NoEffect, [], [21 Alpha off, 22 Beta on, 31 GA on locked];
    LoggingAlphaOptions, Both, [], [24 Alpha off];
    LoggingBetaOptions, Both, [], [24 Beta on];
    ManifestBasedAdmissionControlConfig, Both, [], [36 Alpha off];
    MatchLabelKeysInPodAffinity, DefaultOnly, [], [29 Alpha off, 31 Beta on, 33 GA on locked];
    MatchLabelKeysInPodTopologySpread, Both, [], [25 Alpha off, 27 Beta on];
    MatchLabelKeysInPodTopologySpreadSelectorMerge, Both, [MatchLabelKeysInPodTopologySpread], [34 Beta on];
    MaxUnavailableStatefulSet, Both, [], [24 Alpha off, 35 Beta off];
    MemoryQoS, NoEffect, [], [22 Alpha off];
    MultiCIDRServiceAllocator, DefaultOnly, [], [27 Alpha off, 31 Beta off, 33 GA on, 34 GA on locked];
    MutableCSINodeAllocatableCount, Both, [], [33 Alpha off, 34 Beta off, 35 Beta on, 36 GA on locked];
    MutablePVNodeAffinity, Both, [], [35 Alpha off];
    MutablePodResourcesForSuspendedJobs, Both, [], [35 Alpha off, 36 Beta on];
    MutableSchedulingDirectivesForSuspendedJobs, Both, [], [35 Alpha off, 36 Beta on];
    MutatingAdmissionPolicy, Both, [], [32 Alpha off, 34 Beta off, 36 GA on];
    NFTablesProxyMode, NoEffect, [], [29 Alpha off, 31 Beta on, 33 GA on locked];
    NativeHistograms, DefaultOnly, [], [36 Alpha off];
    NodeDeclaredFeatures, Both, [], [35 Alpha off, 36 Beta on];
    NodeInclusionPolicyInPodTopologySpread, DefaultOnly, [], [25 Alpha off, 26 Beta on, 33 GA on locked];
    NodeLogQuery, NoEffect, [], [27 Alpha on, 30 Beta on, 36 GA on locked];
    NodeSwap, NoEffect, [], [22 Alpha off, 28 Beta off, 30 Beta on, 34 GA on locked];
    NominatedNodeNameForExpectation, NoEffect, [], [34 Alpha off, 35 Beta on];
    OpenAPIEnums, Both, [], [23 Alpha off, 24 Beta on];
    OpportunisticBatching, NoEffect, [], [35 Beta on];
    OrderedNamespaceDeletion, NoEffect, [], [30 Beta off, 33 Beta on, 34 GA on locked];
    PLEGOnDemandRelist, NoEffect, [], [36 Beta on];
    PersistentVolumeClaimUnusedSinceTime, NoEffect, [], [36 Alpha off];
    PodAndContainerStatsFromCRI, NoEffect, [], [23 Alpha off];
    PodCertificateRequest, Both, [AuthorizeNodeWithSelectors], [34 Alpha off, 35 Beta off];
    PodDeletionCost, Both, [], [21 Alpha off, 22 Beta on];
    PodLevelResourceManagers, NoEffect, [PodLevelResources], [36 Alpha off];
    PodLevelResources, Both, [], [32 Alpha off, 34 Beta on];
    PodLifecycleSleepAction, DefaultOnly, [], [29 Alpha off, 30 Beta on, 34 GA on locked];
    PodLifecycleSleepActionAllowZero, DefaultOnly, [PodLifecycleSleepAction], [32 Alpha off, 33 Beta on, 34 GA on locked];
    PodLogsQuerySplitStreams, Both, [], [32 Alpha off];
    PodObservedGenerationTracking, Both, [], [33 Alpha off, 34 Beta on, 35 GA on locked];
    PodReadyToStartContainersCondition, NoEffect, [], [28 Alpha off, 29 Beta on];
    PodSchedulingReadiness, NoEffect, [], [26 Alpha off, 27 Beta on, 30 GA on locked];
    PodTopologyLabelsAdmission, Both, [], [33 Alpha off, 35 Beta on];
    PodsAPI, NoEffect, [], [36 Alpha off];
    PortForwardWebsockets, Both, [], [30 Alpha off, 31 Beta on];
    PreferSameTrafficDistribution, Both, [], [33 Alpha off, 34 Beta on, 35 GA on locked];
    PreventStaticPodAPIReferences, NoEffect, [], [34 Beta on];
    ProcMountType, Both, [UserNamespacesSupport], [12 Alpha off, 31 Beta off, 33 Beta on, 36 GA on locked];
    QOSReserved, NoEffect, [], [11 Alpha off];
    RecoverVolumeExpansionFailure, DefaultOnly, [], [23 Alpha off, 32 Beta on, 34 GA on locked];
    RecursiveReadOnlyMounts, DefaultOnly, [], [30 Alpha off, 31 Beta on, 33 GA on locked];
    ReduceDefaultCrashLoopBackOffDecay, NoEffect, [], [33 Alpha off];
    RelaxedDNSSearchValidation, DefaultOnly, [], [32 Alpha off, 33 Beta on, 34 GA on locked];
    RelaxedEnvironmentVariableValidation, DefaultOnly, [], [30 Alpha off, 32 Beta on, 34 GA on locked];
    RelaxedServiceNameValidation, Both, [], [34 Alpha off, 36 Beta on];
    ReloadKubeletClientCAFile, NoEffect, [], [36 Beta on];
    ReloadKubeletServerCertificateFile, NoEffect, [], [31 Beta on];
    RemoteRequestHeaderUID, Both, [], [32 Alpha off, 33 Beta on];
    ResilientWatchCacheInitialization, NoEffect, [], [31 Beta on, 34 GA on locked];
    ResourceHealthStatus, Both, [DynamicResourceAllocation], [31 Alpha off, 36 Beta on];
    ResourceHealthStatusMessage, Both, [ResourceHealthStatus], [36 Beta on];
    RestartAllContainersOnContainerExits, Both, [ContainerRestartRules NodeDeclaredFeatures], [35 Alpha off, 36 Beta on];
    RetryGenerateName, DefaultOnly, [], [30 Alpha off, 31 Beta on, 32 GA on locked];
    RotateKubeletServerCertificate, NoEffect, [], [7 Alpha off, 12 Beta on];
    RuntimeClassInImageCriApi, NoEffect, [], [29 Alpha off];
    SELinuxChangePolicy, Both, [], [32 Alpha off, 33 Beta on, 36 GA on locked];
    SELinuxMount, Both, [], [30 Alpha off, 33 Beta off];
    SELinuxMountReadWriteOncePod, Both, [], [25 Alpha off, 27 Beta off, 28 Beta on, 36 GA on locked];
    SchedulerAsyncAPICalls, NoEffect, [], [34 Beta off];
    SchedulerAsyncPreemption, NoEffect, [], [32 Alpha off, 33 Beta on];
    SchedulerPopFromBackoffQ, NoEffect, [], [33 Beta on];
    SchedulerQueueingHints, NoEffect, [], [28 Beta off, 32 Beta on, 34 GA on locked];
    SeparateCacheWatchRPC, NoEffect, [], [28 Beta on, 33 Deprecated off, 36 Deprecated off locked];
    SeparateTaintEvictionController, NoEffect, [], [29 Beta on, 34 GA on locked];
    ServiceAccountNodeAudienceRestriction, Both, [], [32 Beta off, 33 Beta on];
    ServiceAccountTokenJTI, DefaultOnly, [], [29 Alpha off, 30 Beta on, 32 GA on locked];
    ServiceAccountTokenNodeBinding, DefaultOnly, [ServiceAccountTokenNodeBindingValidation], [29 Alpha off, 31 Beta on, 33 GA on locked];
    ServiceAccountTokenNodeBindingValidation, DefaultOnly, [], [29 Alpha off, 30 Beta on, 32 GA on locked];
    ServiceAccountTokenPodNodeInfo, DefaultOnly, [], [29 Alpha off, 30 Beta on, 32 GA on locked];
    ServiceCIDRStatusFieldWiping, Both, [], [0 GA off, 36 Deprecated on];
    ShardedListAndWatch, Both, [], [36 Alpha off];
    SidecarContainers, DefaultOnly, [], [28 Alpha off, 29 Beta on, 33 GA on locked];
    SizeBasedListCostEstimate, NoEffect, [], [34 Beta on];
    StaleControllerConsistencyDaemonSet, NoEffect, [AtomicFIFO], [36 Beta on];
    StaleControllerConsistencyJob, NoEffect, [AtomicFIFO], [36 Beta on];
    StaleControllerConsistencyReplicaSet, NoEffect, [AtomicFIFO], [36 Beta on];
    StaleControllerConsistencyStatefulSet, NoEffect, [AtomicFIFO], [36 Beta on];
    StatefulSetSemanticRevisionComparison, NoEffect, [], [0 Beta on];
    StorageCapacityScoring, NoEffect, [], [33 Alpha off];
    StorageNamespaceIndex, NoEffect, [], [30 Beta on, 33 Deprecated on];
    StorageVersionAPI, Both, [APIServerIdentity], [20 Alpha off];
    StorageVersionHash, Both, [], [14 Alpha off, 15 Beta on];
    StorageVersionMigrator, Both, [], [30 Alpha off, 35 Beta off];
    StreamingCollectionEncodingToJSON, NoEffect, [], [33 Beta on, 34 GA on locked];
    StreamingCollectionEncodingToProtobuf, NoEffect, [], [33 Beta on, 34 GA on locked];
    StrictIPCIDRValidation, Both, [], [33 Alpha off, 36 Beta on];
    StructuredAuthenticationConfiguration, DefaultOnly, [], [29 Alpha off, 30 Beta on, 34 GA on locked];
    StructuredAuthenticationConfigurationEgressSelector, Both, [StructuredAuthenticationConfiguration], [34 Beta on];
    StructuredAuthenticationConfigurationJWKSMetrics, Both, [StructuredAuthenticationConfiguration], [35 Beta on];
    SupplementalGroupsPolicy, Both, [], [31 Alpha off, 33 Beta on, 35 GA on locked];
    SystemdWatchdog, NoEffect, [], [32 Beta on, 35 GA on locked];
    TaintTolerationComparisonOperators, Both, [], [35 Alpha off];
    TokenRequestServiceAccountUIDValidation, Both, [], [34 Beta on];
    TopologyAwareWorkloadScheduling, Both, [GenericWorkload], [36 Alpha off];
    TopologyManagerPolicyAlphaOptions, NoEffect, [], [26 Alpha off];
    TopologyManagerPolicyBetaOptions, NoEffect, [], [26 Beta off, 28 Beta on];
    TopologyManagerPolicyOptions, NoEffect, [], [26 Alpha off, 28 Beta on, 32 GA on locked];
    TranslateStreamCloseWebsocketRequests, Both, [], [29 Alpha off, 30 Beta on];
    UnauthenticatedHTTP2DOSMitigation, Both, [], [25 Beta off, 29 Beta on];
    UnknownVersionInteroperabilityProxy, Both, [APIServerIdentity], [28 Alpha off, 36 Beta on];
    UnlockWhileProcessingFIFO, NoEffect, [], [36 Beta on];
    UserNamespacesHostNetworkSupport, Both, [NodeDeclaredFeatures UserNamespacesSupport], [35 Alpha off];
    UserNamespacesSupport, Both, [], [25 Alpha off, 30 Beta off, 33 Beta on, 36 GA on locked];
    VolumeAttributesClass, Both, [], [29 Alpha off, 31 Beta off, 34 GA on, 36 GA on locked];
    VolumeLimitScaling, Both, [], [35 Alpha off];
    WatchCacheInitializationPostStartHook, Both, [], [31 Beta off, 36 Beta on];
    WatchList, Both, [], [27 Alpha off, 32 Beta on, 33 Beta off, 34 Beta on];
    WatchListClient, NoEffect, [], [30 Beta off, 35 Beta on];
    WinDSR, NoEffect, [], [14 Alpha off, 33 Beta on, 34 GA on locked];
    WinOverlay, NoEffect, [], [14 Alpha off, 20 Beta on, 34 GA on locked];
    WindowsCPUAndMemoryAffinity, NoEffect, [], [32 Alpha off];
    WindowsGracefulNodeShutdown, NoEffect, [GracefulNodeShutdown], [32 Alpha off, 34 Beta on];
    WindowsHostNetwork, NoEffect, [], [26 Alpha off, 33 Deprecated off];
    WorkloadAwarePreemption, Both, [GangScheduling], [36 Alpha off];
    WorkloadWithJob, Both, [GenericWorkload], [36 Alpha off];
}

impl Gate {
    /// The state in a version.
    pub fn spec(self, version: MinorVersion) -> Spec {
        let spec = self.history().iter().rev().find(|spec| spec.since <= version);
        spec.copied().unwrap_or(Spec::PRE_ALPHA)
    }

    /// The default in the binary's version.
    pub(crate) fn default_now(self) -> bool {
        self.history().last().is_some_and(|spec| spec.default)
    }

    /// The word and the bit of the gate in a set of gates.
    pub(crate) fn position(self) -> (usize, u64) {
        let index = self as usize;
        (index / 64, 1 << (index % 64))
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The name is that of no gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownGate;

impl FromStr for Gate {
    type Err = UnknownGate;

    fn from_str(name: &str) -> Result<Gate, UnknownGate> {
        let index = Gate::ALL.binary_search_by(|gate| gate.name().cmp(name)).map_err(|_| UnknownGate)?;
        Gate::ALL.get(index).copied().ok_or(UnknownGate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_keeps_the_rules_of_the_reference() {
        assert!(Gate::ALL.iter().map(|gate| gate.name()).is_sorted());
        for gate in Gate::ALL {
            assert_eq!(gate.name().parse(), Ok(*gate));
            let history = gate.history();
            assert!(history.windows(2).all(|pair| pair[0].since < pair[1].since), "{gate}");
            let last = history.last().unwrap();
            assert!(last.since <= MinorVersion::BINARY, "{gate}");
            let unlocked = history.iter().skip_while(|spec| !spec.locked).any(|spec| !spec.locked);
            assert!(!unlocked, "{gate}");
            for needed in gate.needed() {
                let needed = needed.spec(MinorVersion::BINARY);
                assert!(!last.default || needed.default, "{gate}");
            }
        }
        assert_eq!("Nope".parse::<Gate>(), Err(UnknownGate));
    }

    #[test]
    fn a_gate_has_the_state_of_the_last_version_before() {
        let check = |minor, expected: (Stage, bool, bool)| {
            let spec = Gate::WatchList.spec(MinorVersion::new(1, minor));
            assert_eq!((spec.stage, spec.default, spec.locked), expected);
        };
        check(26, (Stage::PreAlpha, false, false));
        check(27, (Stage::Alpha, false, false));
        check(32, (Stage::Beta, true, false));
        check(33, (Stage::Beta, false, false));
        check(40, (Stage::Beta, true, false));
        assert!(Gate::BtreeWatchCache.spec(MinorVersion::BINARY).locked);
    }
}
