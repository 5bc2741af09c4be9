"""Bases of the structs in `objects` and `pod`: the fields of a v1.Pod that they do not decode.

Written by `make reference`; not to be edited. A type checker sees the fields as they are for a plugin that needs them.
"""

from typing import TYPE_CHECKING

from scheduler.api.undecoded import fields_of

if TYPE_CHECKING:
    from scheduler.api import pod_kinds

    AWSElasticBlockStoreFields = pod_kinds.AWSElasticBlockStoreRest
    AzureDiskFields = pod_kinds.AzureDiskRest
    AzureFileFields = pod_kinds.AzureFileRest
    CSIVolumeSourceFields = pod_kinds.CSIVolumeSourceRest
    CinderFields = pod_kinds.CinderRest
    ContainerFields = pod_kinds.ContainerRest
    ContainerPortFields = pod_kinds.ContainerPortRest
    ContainerRestartRuleFields = pod_kinds.ContainerRestartRuleRest
    ContainerStatusFields = pod_kinds.ContainerStatusRest
    EphemeralVolumeSourceFields = pod_kinds.EphemeralVolumeSourceRest
    GCEPersistentDiskFields = pod_kinds.GCEPersistentDiskRest
    ISCSIFields = pod_kinds.ISCSIRest
    ImageVolumeSourceFields = pod_kinds.ImageVolumeSourceRest
    ObjectMetaFields = pod_kinds.ObjectMetaRest
    OwnerReferenceFields = pod_kinds.OwnerReferenceRest
    PersistentVolumeClaimVolumeSourceFields = pod_kinds.PersistentVolumeClaimVolumeSourceRest
    PodConditionFields = pod_kinds.PodConditionRest
    PodExtendedResourceClaimStatusFields = pod_kinds.PodExtendedResourceClaimStatusRest
    PodSpecFields = pod_kinds.PodSpecRest
    PodStatusFields = pod_kinds.PodStatusRest
    PortworxVolumeFields = pod_kinds.PortworxVolumeRest
    RBDFields = pod_kinds.RBDRest
    ResourceRequirementsFields = pod_kinds.ResourceRequirementsRest
    VolumeFields = pod_kinds.VolumeRest
    VsphereVolumeFields = pod_kinds.VsphereVolumeRest
else:
    AWSElasticBlockStoreFields = fields_of(
        "AWSElasticBlockStore",
        "fsType",
        "partition",
        "readOnly",
    )
    AzureDiskFields = fields_of(
        "AzureDisk",
        "cachingMode",
        "diskName",
        "fsType",
        "readOnly",
    )
    AzureFileFields = fields_of(
        "AzureFile",
        "readOnly",
        "secretName",
        "shareName",
    )
    CSIVolumeSourceFields = fields_of(
        "CSIVolumeSource",
        "fsType",
        "nodePublishSecretRef",
        "readOnly",
        "volumeAttributes",
    )
    CinderFields = fields_of(
        "Cinder",
        "fsType",
        "readOnly",
        "secretRef",
    )
    ContainerFields = fields_of(
        "Container",
        "args",
        "command",
        "env",
        "envFrom",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "resizePolicy",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeDevices",
        "volumeMounts",
        "workingDir",
    )
    ContainerPortFields = fields_of(
        "ContainerPort",
        "name",
    )
    ContainerRestartRuleFields = fields_of(
        "ContainerRestartRule",
        "exitCodes",
    )
    ContainerStatusFields = fields_of(
        "ContainerStatus",
        "allocatedResourcesStatus",
        "containerID",
        "image",
        "imageID",
        "lastState",
        "ready",
        "restartCount",
        "started",
        "state",
        "stopSignal",
        "user",
        "volumeMounts",
    )
    EphemeralVolumeSourceFields = fields_of(
        "EphemeralVolumeSource",
        "volumeClaimTemplate",
    )
    GCEPersistentDiskFields = fields_of(
        "GCEPersistentDisk",
        "fsType",
        "partition",
    )
    ISCSIFields = fields_of(
        "ISCSI",
        "chapAuthDiscovery",
        "chapAuthSession",
        "fsType",
        "initiatorName",
        "iscsiInterface",
        "lun",
        "portals",
        "secretRef",
        "targetPortal",
    )
    ImageVolumeSourceFields = fields_of(
        "ImageVolumeSource",
        "pullPolicy",
    )
    ObjectMetaFields = fields_of(
        "ObjectMeta",
        "annotations",
        "deletionGracePeriodSeconds",
        "finalizers",
        "generateName",
        "selfLink",
    )
    OwnerReferenceFields = fields_of(
        "OwnerReference",
        "blockOwnerDeletion",
    )
    PersistentVolumeClaimVolumeSourceFields = fields_of(
        "PersistentVolumeClaimVolumeSource",
        "readOnly",
    )
    PodConditionFields = fields_of(
        "PodCondition",
        "lastProbeTime",
    )
    PodExtendedResourceClaimStatusFields = fields_of(
        "PodExtendedResourceClaimStatus",
        "requestMappings",
    )
    PodSpecFields = fields_of(
        "PodSpec",
        "activeDeadlineSeconds",
        "automountServiceAccountToken",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "evictionResponders",
        "hostAliases",
        "hostIPC",
        "hostPID",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "os",
        "priorityClassName",
        "readinessGates",
        "restartPolicy",
        "runtimeClassName",
        "schedulingGroup",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
    )
    PodStatusFields = fields_of(
        "PodStatus",
        "ephemeralContainerStatuses",
        "hostIP",
        "hostIPs",
        "message",
        "nodeAllocatableResourceClaimStatuses",
        "observedGeneration",
        "podIP",
        "podIPs",
        "qosClass",
        "reason",
        "resize",
        "volumeHealth",
    )
    PortworxVolumeFields = fields_of(
        "PortworxVolume",
        "fsType",
        "readOnly",
    )
    RBDFields = fields_of(
        "RBD",
        "fsType",
        "keyring",
        "secretRef",
        "user",
    )
    ResourceRequirementsFields = fields_of(
        "ResourceRequirements",
        "claims",
    )
    VolumeFields = fields_of(
        "Volume",
        "cephfs",
        "configMap",
        "downwardAPI",
        "emptyDir",
        "fc",
        "flexVolume",
        "flocker",
        "gitRepo",
        "glusterfs",
        "hostPath",
        "nfs",
        "photonPersistentDisk",
        "projected",
        "quobyte",
        "scaleIO",
        "secret",
        "storageos",
    )
    VsphereVolumeFields = fields_of(
        "VsphereVolume",
        "fsType",
        "storagePolicyID",
        "storagePolicyName",
        "volumePath",
    )
