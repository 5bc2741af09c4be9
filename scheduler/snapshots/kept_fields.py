"""The fields that a snapshot keeps, which scheduling, admission and controllers read, and what they contain.

Everything that is not listed is left out: Secrets and ConfigMaps, env, commands, probes, most annotations,
`managedFields`, parameters of drivers. A test compares the lists with what is decoded elsewhere.

    a            an amount, a time, a UID, one of a few words; in an anonymised snapshot anything else gets another name
    a@name       a name or the like, for which another one stands in an anonymised snapshot: see `aliases`
    a@whole      what stands for it depends on other fields of its object: see `Aliases.of_kind`
    a:B          an object with the fields of B; `a:[]B` a list of them, `a:{}B` a mapping to them
    a@name:{}B   a mapping of names to them
    a:|B         a word in one version of the API, an object with the fields of B in another
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from scheduler.framework.nodes.resources import NODES, PODS, ApiResource

_META: Final = (
    "namespace@namespace uid resourceVersion generation creationTimestamp deletionTimestamp labels@labels "
    "ownerReferences:[]Owner"
)

FIELDS: Final[Mapping[str, str]] = {
    # metadata
    "Meta": f"name@name {_META} annotations@annotations",
    "PodMeta": f"name@pod {_META} annotations@annotations finalizers@key deletionGracePeriodSeconds",
    "NodeMeta": f"name@name {_META}",
    "ClaimMeta": f"name@claim {_META} annotations@annotations",
    "DeviceClaimMeta": f"name@name {_META} annotations@annotations finalizers@key",
    "NamespaceMeta": f"name@namespace {_META}",
    "ClassMeta": f"name@class {_META} annotations@annotations",
    "DriverMeta": f"name@driver {_META}",
    "TemplateMeta": "name@name labels@labels annotations@annotations",
    "Owner": "apiVersion@apiVersion kind@kind name@whole uid controller",
    # selectors
    "Requirement": "key@whole operator values@whole",
    "LabelSelector": "matchLabels@labels matchExpressions:[]Requirement",
    "NodeSelectorTerm": "matchExpressions:[]Requirement matchFields:[]Requirement",
    "NodeSelector": "nodeSelectorTerms:[]NodeSelectorTerm",
    "Taint": "key@key value@whole effect",
    "Toleration": "key@key operator value@whole effect tolerationSeconds",
    # pods
    "Pod": "metadata:PodMeta spec:PodSpec status:PodStatus",
    "PodSpec": (
        "nodeName@name schedulerName@scheduler priority priorityClassName@class preemptionPolicy runtimeClassName@name "
        "nodeSelector@labels affinity:Affinity tolerations:[]Toleration "
        "topologySpreadConstraints:[]TopologySpreadConstraint containers:[]Container initContainers:[]Container "
        "overhead@resources resources:Resources activeDeadlineSeconds schedulingGates:[]Gate volumes:[]Volume "
        "hostNetwork hostUsers resourceClaims:[]PodResourceClaim schedulingGroup:SchedulingGroup"
    ),
    "SchedulingGroup": "podGroupName@name",
    # groups of pods: of scheduling.k8s.io, of scheduling.x-k8s.io and of Volcano
    "PodGroup": "metadata:PodGroupMeta spec:PodGroupSpec",
    "CompositePodGroup": "metadata:PodGroupMeta spec:PodGroupSpec",
    "PodGroupMeta": f"name@name {_META} annotations@annotations",
    "PodGroupSpec": (
        "schedulingPolicy:SchedulingPolicy schedulingConstraints:SchedulingConstraints disruptionMode:|DisruptionMode "
        "priority priorityClassName@class preemptionPolicy parentCompositePodGroupName@name "
        "resourceClaims:[]PodResourceClaim minMember minResources@resources scheduleTimeoutSeconds "
        "minTaskMember@resources queue@name"
    ),
    "SchedulingPolicy": "gang:GangPolicy",
    "GangPolicy": "minCount minGroupCount",
    "DisruptionMode": "single:Presence all:Presence",
    "SchedulingConstraints": "topology:[]TopologyConstraint",
    "TopologyConstraint": "key@key",
    # shares of a cluster: of scheduling.x-k8s.io and of kueue.x-k8s.io
    "ElasticQuota": "metadata:Meta spec:ElasticQuotaSpec status:ElasticQuotaStatus",
    "ElasticQuotaSpec": "min@resources max@resources",
    "ElasticQuotaStatus": "used@resources",
    "ClusterQueue": "metadata:Meta spec:ClusterQueueSpec",
    "ClusterQueueSpec": (
        "resourceGroups:[]ResourceGroup cohortName@name namespaceSelector:LabelSelector "
        "flavorFungibility:FlavorFungibility preemption:QueuePreemption "
        "admissionChecksStrategy:AdmissionChecksStrategy stopPolicy fairSharing:FairSharing"
    ),
    "ResourceGroup": "coveredResources@resource flavors:[]FlavorQuotas",
    "FlavorQuotas": "name@name resources:[]FlavorQuota",
    "FlavorQuota": "name@resource nominalQuota borrowingLimit lendingLimit",
    "FlavorFungibility": "whenCanBorrow whenCanPreempt preference",
    "QueuePreemption": "reclaimWithinCohort borrowWithinCohort:BorrowWithinCohort withinClusterQueue",
    "BorrowWithinCohort": "policy maxPriorityThreshold",
    "AdmissionChecksStrategy": "admissionChecks:[]AdmissionCheck",
    "AdmissionCheck": "name@name",
    "FairSharing": "weight",
    "LocalQueue": "metadata:Meta spec:LocalQueueSpec",
    "LocalQueueSpec": "clusterQueue@name stopPolicy",
    "Cohort": "metadata:Meta spec:CohortSpec",
    "CohortSpec": "parentName@name resourceGroups:[]ResourceGroup fairSharing:FairSharing",
    "ResourceFlavor": "metadata:Meta spec:ResourceFlavorSpec",
    "ResourceFlavorSpec": "nodeLabels@labels nodeTaints:[]Taint topologyName@name resourceWeights@resources",
    # affinity
    "Affinity": "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity",
    "NodeAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector "
        "preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm"
    ),
    "PreferredSchedulingTerm": "weight preference:NodeSelectorTerm",
    "PodAffinity": (
        "requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm "
        "preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm"
    ),
    "WeightedPodAffinityTerm": "weight podAffinityTerm:PodAffinityTerm",
    "PodAffinityTerm": (
        "labelSelector:LabelSelector namespaces@namespace topologyKey@key namespaceSelector:LabelSelector "
        "matchLabelKeys@key mismatchLabelKeys@key"
    ),
    "TopologySpreadConstraint": (
        "maxSkew topologyKey@key whenUnsatisfiable labelSelector:LabelSelector minDomains nodeAffinityPolicy "
        "nodeTaintsPolicy matchLabelKeys@key"
    ),
    "Container": (
        "name@name image@image resources:Resources ports:[]Port restartPolicy restartPolicyRules:[]RestartRule "
        "volumeMounts:[]VolumeMount"
    ),
    "VolumeMount": "bindMountOptions",
    "Resources": "requests@resources limits@resources claims:[]ContainerClaim",
    "ContainerClaim": "name@name",
    "Port": "containerPort hostPort hostIP@address protocol",
    "RestartRule": "action",
    "Gate": "name@key",
    "PodResourceClaim": "name@name resourceClaimName@name resourceClaimTemplateName@name",
    "PodStatus": (
        "phase conditions:[]PodCondition nominatedNodeName@name startTime containerStatuses:[]ContainerStatus "
        "initContainerStatuses:[]ContainerStatus resources:Resources allocatedResources@resources "
        "resourceClaimStatuses:[]PodResourceClaimStatus extendedResourceClaimStatus:ExtendedClaimStatus "
        "nodeAllocatableResourceClaimStatuses:[]ClaimAmounts"
    ),
    "PodCondition": "type@word status reason@word observedGeneration lastTransitionTime",
    "ContainerStatus": "name@name resources:Resources allocatedResources@resources",
    "PodResourceClaimStatus": "name@name resourceClaimName@name",
    "ExtendedClaimStatus": "resourceClaimName@name",
    "ClaimAmounts": "resourceClaimName@name containers@name mapping:[]MappedAmount overhead:[]OverheadAmount",
    "MappedAmount": "name@resource quantity",
    "OverheadAmount": "name@resource perPod perContainer",
    # volumes of pods
    "Volume": (
        "name@name image:ImageVolume persistentVolumeClaim:ClaimVolume ephemeral:EphemeralVolume iscsi:ISCSI rbd:RBD "
        "csi:CSIVolume emptyDir:Presence awsElasticBlockStore:VolumeID azureDisk:AzureDisk azureFile:Presence "
        "cinder:VolumeID gcePersistentDisk:GCEDisk portworxVolume:VolumeID vsphereVolume:Presence"
    ),
    "Presence": "",
    "ImageVolume": "reference@image",
    "ClaimVolume": "claimName@claim",
    "EphemeralVolume": "volumeClaimTemplate:ClaimTemplate",
    "ClaimTemplate": "metadata:TemplateMeta spec:ClaimSpec",
    "ISCSI": "iqn@volume readOnly",
    "RBD": "monitors@volume image@volume pool@volume readOnly",
    "CSIVolume": "driver@driver",
    "VolumeID": "volumeID@volume",
    "AzureDisk": "diskURI@volume kind",
    "GCEDisk": "pdName@volume readOnly",
    # nodes
    "Node": "metadata:NodeMeta spec:NodeSpec status:NodeStatus",
    "NodeSpec": "unschedulable taints:[]Taint podPreemptionPolicy:NodePodPreemptionPolicy",
    "NodePodPreemptionPolicy": "disableResizePreemption@word",
    "NodeStatus": (
        "allocatable@resources conditions:[]NodeCondition images:[]NodeImage declaredFeatures capacity@resources"
    ),
    "NodeCondition": "type@word status",
    "NodeImage": "names@nodeImage sizeBytes",
    # what workloads are made of
    "PodTemplate": "metadata:TemplateMeta spec:PodSpec",
    "Service": "metadata:Meta spec:ServiceSpec",
    "ServiceSpec": "selector@labels",
    "ReplicationController": "metadata:Meta spec:ReplicationControllerSpec",
    "ReplicationControllerSpec": "replicas selector@labels template:PodTemplate",
    "ReplicaSet": "metadata:Meta spec:ReplicaSetSpec",
    "ReplicaSetSpec": "replicas selector:LabelSelector template:PodTemplate",
    "Deployment": "metadata:Meta spec:DeploymentSpec",
    "DeploymentSpec": "replicas paused selector:LabelSelector template:PodTemplate",
    "StatefulSet": "metadata:Meta spec:StatefulSetSpec",
    "StatefulSetSpec": (
        "replicas selector:LabelSelector template:PodTemplate ordinals:Ordinals volumeClaimTemplates:[]ClaimTemplate"
    ),
    "Ordinals": "start",
    "DaemonSet": "metadata:Meta spec:DaemonSetSpec",
    "DaemonSetSpec": "selector:LabelSelector template:PodTemplate",
    "Job": "metadata:Meta spec:JobSpec status:JobStatus",
    "JobSpec": "parallelism completions completionMode suspend managedBy selector:LabelSelector template:PodTemplate",
    "CronJob": "metadata:Meta spec:CronJobSpec",
    "CronJobSpec": "jobTemplate:JobTemplate",
    "JobTemplate": "metadata:TemplateMeta spec:JobSpec",
    "JobStatus": "succeeded conditions:[]JobCondition",
    "JobCondition": "type@word status",
    "PodDisruptionBudget": "metadata:Meta spec:BudgetSpec status:BudgetStatus",
    "BudgetSpec": "selector:LabelSelector minAvailable maxUnavailable unhealthyPodEvictionPolicy",
    "BudgetStatus": (
        "observedGeneration disruptionsAllowed currentHealthy desiredHealthy expectedPods disruptedPods@byPod"
    ),
    # admission
    "Namespace": "metadata:NamespaceMeta",
    "PriorityClass": "metadata:ClassMeta value globalDefault preemptionPolicy",
    "RuntimeClass": "metadata:Meta overhead:Overhead scheduling:RuntimeScheduling",
    "Overhead": "podFixed@resources",
    "RuntimeScheduling": "nodeSelector@labels tolerations:[]Toleration",
    "LimitRange": "metadata:Meta spec:LimitRangeSpec",
    "LimitRangeSpec": "limits:[]LimitRangeItem",
    "LimitRangeItem": (
        "type max@resources min@resources default@resources defaultRequest@resources maxLimitRequestRatio@resources"
    ),
    "ResourceQuota": "metadata:Meta",
    # storage
    "PersistentVolume": "metadata:Meta spec:VolumeSpec status:VolumeStatus",
    "VolumeSpec": (
        "accessModes capacity@resources claimRef:ClaimReference csi:CSISource nodeAffinity:VolumeNodeAffinity "
        "persistentVolumeReclaimPolicy storageClassName@name volumeAttributesClassName@name volumeMode "
        "awsElasticBlockStore:VolumeID azureDisk:AzureDisk azureFile:Presence cinder:VolumeID "
        "gcePersistentDisk:GCEDisk portworxVolume:VolumeID vsphereVolume:Presence emptyDir:Presence"
    ),
    "ClaimReference": "apiVersion kind namespace@whole name@whole uid resourceVersion",
    "CSISource": "driver@driver volumeHandle@volume",
    "VolumeNodeAffinity": "required:NodeSelector",
    "VolumeStatus": "phase",
    "PersistentVolumeClaim": "metadata:ClaimMeta spec:ClaimSpec status:ClaimStatus",
    "ClaimSpec": (
        "accessModes resources:Resources selector:LabelSelector storageClassName@name volumeAttributesClassName@name "
        "volumeMode volumeName@name"
    ),
    "ClaimStatus": "phase",
    "StorageClass": (
        "metadata:Meta provisioner@driver reclaimPolicy volumeBindingMode allowedTopologies:[]TopologySelectorTerm"
    ),
    "TopologySelectorTerm": "matchLabelExpressions:[]Requirement",
    "CSINode": "metadata:Meta spec:CSINodeSpec",
    "CSINodeSpec": "drivers:[]CSINodeDriver",
    "CSINodeDriver": "name@driver nodeID@volume topologyKeys@key allocatable:DriverLimit",
    "DriverLimit": "count",
    "CSIDriver": "metadata:DriverMeta spec:CSIDriverSpec",
    "CSIDriverSpec": "storageCapacity preventPodSchedulingIfMissing",
    "CSIStorageCapacity": "metadata:Meta nodeTopology:LabelSelector storageClassName@name capacity maximumVolumeSize",
    "VolumeAttachment": "metadata:Meta spec:AttachmentSpec",
    "AttachmentSpec": "attacher@driver nodeName@name source:AttachmentSource",
    "AttachmentSource": "persistentVolumeName@name",
    # devices
    "DeviceClass": "metadata:Meta spec:DeviceClassSpec",
    "DeviceClassSpec": "selectors:[]DeviceSelector extendedResourceName@resource",
    "DeviceSelector": "cel:CEL",
    "CEL": "expression@expression",
    "ResourceClaim": "metadata:DeviceClaimMeta spec:DeviceClaimSpec status:DeviceClaimStatus",
    "ResourceClaimTemplate": "metadata:Meta spec:DeviceClaimTemplateSpec",
    "DeviceClaimTemplateSpec": "metadata:TemplateMeta spec:DeviceClaimSpec",
    "DeviceClaimSpec": "devices:DeviceClaim",
    "DeviceClaim": "requests:[]DeviceRequest constraints:[]DeviceConstraint",
    "DeviceRequest": "name@name exactly:ExactRequest firstAvailable:[]ExactRequest",
    "ExactRequest": (
        "name@name deviceClassName@name selectors:[]DeviceSelector allocationMode count adminAccess "
        "tolerations:[]Toleration capacity:CapacityRequirements derivedAttributes:[]DerivedAttribute"
    ),
    "DerivedAttribute": "name@attribute expression@expression",
    "CapacityRequirements": "requests@capacities",
    "DeviceConstraint": "requests@name matchAttribute@attribute distinctAttribute@attribute",
    "DeviceClaimStatus": "allocation:Allocation reservedFor:[]Consumer devices:[]DeviceStatus",
    "Allocation": "devices:DeviceAllocation nodeSelector:NodeSelector allocationTimestamp",
    "DeviceAllocation": "results:[]DeviceResult",
    "DeviceResult": (
        "request@name driver@device pool@name device@name adminAccess tolerations:[]Toleration bindingConditions@word "
        "bindingFailureConditions@word shareID consumedCapacity@capacities skipNodeOperations"
    ),
    "Consumer": "apiGroup@whole resource@whole name@whole uid",
    "DeviceStatus": "driver@device pool@name device@name conditions:[]DeviceCondition",
    "DeviceCondition": "type@word status",
    "ResourceSlice": "metadata:Meta spec:SliceSpec",
    "SliceSpec": (
        "driver@device pool:Pool nodeName@name nodeSelector:NodeSelector allNodes devices:[]Device "
        "perDeviceNodeSelection sharedCounters:[]CounterSet skipNodeOperations"
    ),
    "Pool": "name@name generation resourceSliceCount",
    "Device": (
        "name@name attributes@attribute:{}Attribute capacity@attribute:{}Capacity "
        "consumesCounters:[]CounterConsumption nodeName@name nodeSelector:NodeSelector allNodes taints:[]Taint "
        "bindsToNode bindingConditions@word bindingFailureConditions@word allowMultipleAllocations "
        "nodeAllocatableResources@resource:{}NodeAmounts"
    ),
    "NodeAmounts": "mapping:NodeMapping overhead:NodeOverhead",
    "NodeMapping": "capacityKey@attribute capacityMultiplier deviceMultiplier",
    "NodeOverhead": "perPod perContainer",
    "Attribute": "int bool string@device version@device ints bools strings@device versions@device",
    "Capacity": "value requestPolicy:CapacityPolicy",
    "CapacityPolicy": "default validValues validRange:CapacityRange",
    "CapacityRange": "min max step",
    "CounterSet": "name@name counters@name:{}Counter",
    "Counter": "value",
    "CounterConsumption": "counterSet@name counters@name:{}Counter compatibilityGroups@name",
    "DeviceTaintRule": "metadata:Meta spec:TaintRuleSpec",
    "TaintRuleSpec": "deviceSelector:TaintSelector taint:Taint",
    "TaintSelector": "driver@device pool@name device@name",
    # what plugins of `contrib` read
    "NodeMetrics": "metadata:Meta timestamp window usage@resources",
    "NodeResourceTopology": "metadata:Meta topologyPolicies zones:[]Zone attributes:[]ZoneAttribute",
    "Zone": "name@zone type costs:[]ZoneCost resources:[]ZoneResource",
    "ZoneCost": "name@zone value",
    "ZoneResource": "name@resource available allocatable",
    "ZoneAttribute": "name@whole value",
}
"""Kind of an object, or of an object in it → its fields."""

ANNOTATIONS: Final[Mapping[str, str]] = {
    "deployment.kubernetes.io/revision": "",
    "gang.scheduling.koordinator.sh/min-available": "",
    "gang.scheduling.koordinator.sh/name": "name",
    "gang.scheduling.koordinator.sh/waiting-time": "",
    "kubernetes.io/config.mirror": "",
    "kueue.x-k8s.io/podset-preferred-topology": "key",
    "kueue.x-k8s.io/podset-required-topology": "key",
    "leaderworkerset.sigs.k8s.io/size": "",
    "loadmaster.dev/expected-seconds": "",
    "loadmaster.dev/gang": "",
    "loadmaster.dev/pod-group": "name",
    "loadmaster.dev/pod-group-min-available": "",
    "loadmaster.dev/preferred-topology": "key",
    "loadmaster.dev/required-topology": "key",
    "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority": "",
    "preemption-toleration.scheduling.x-k8s.io/toleration-seconds": "",
    "scheduling.k8s.io/group-name": "name",
    "pv.kubernetes.io/bind-completed": "",
    "pv.kubernetes.io/bound-by-controller": "",
    "resource.kubernetes.io/extended-resource-claim": "",
    "storage.alpha.kubernetes.io/migrated-plugins": "drivers",
    "storageclass.beta.kubernetes.io/is-default-class": "",
    "storageclass.kubernetes.io/is-default-class": "",
    "topology.node.k8s.io/fingerprint": "fingerprint",
    "volume.beta.kubernetes.io/storage-class": "name",
    "volume.kubernetes.io/selected-node": "name",
}
"""Annotations that are kept → what they contain."""


class Kind(NamedTuple):
    name: str
    resource: ApiResource
    without: str
    """The error of a simulation without them; empty for a kind that a snapshot must have."""

    @property
    def api_version(self) -> str:
        group, version = self.resource.group, self.resource.version
        return f"{group}/{version}" if group else version


_SPREAD: Final = "its pods are not spread by default as in the cluster, and pods that it lacks are not made"
_LACKING: Final = "pods that it lacks are not made"
_VOLUMES: Final = "pods with claims get other nodes than in the cluster, or none"
_DEVICES: Final = "pods with claims of devices get other nodes than in the cluster, or none"
_GROUPS: Final = "pods that name a group wait for it, or are placed each by itself"
_QUOTAS: Final = "pods of namespaces that have one are placed as if they had none"
_QUEUES: Final = "pods that name a queue are placed as if nothing limited it, or wait for the queue"
_EXTENDED: Final = "the plugin that reads it gives other answers than in the cluster"


def _kind(name: str, group: str, version: str, plural: str, without: str) -> Kind:
    return Kind(name, ApiResource(group, version, plural), without)


KINDS: Final = (
    # Claims come first: names that are made of a pod's and a volume's are known when pods and volumes name them.
    _kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", _VOLUMES),
    Kind("Pod", PODS, ""),
    Kind("Node", NODES, ""),
    _kind("Namespace", "", "v1", "namespaces", "namespace selectors of affinity terms find no namespace"),
    _kind("Service", "", "v1", "services", "pods are not spread by default over the pods of their Service"),
    _kind("ReplicationController", "", "v1", "replicationcontrollers", _SPREAD),
    _kind("LimitRange", "", "v1", "limitranges", "new pods get none of its requests and limits"),
    _kind("ResourceQuota", "", "v1", "resourcequotas", "it is not said that they are not applied"),
    _kind("PersistentVolume", "", "v1", "persistentvolumes", _VOLUMES),
    _kind("ReplicaSet", "apps", "v1", "replicasets", _SPREAD),
    _kind("StatefulSet", "apps", "v1", "statefulsets", _SPREAD),
    _kind("Deployment", "apps", "v1", "deployments", _LACKING),
    _kind("DaemonSet", "apps", "v1", "daemonsets", _LACKING),
    _kind("Job", "batch", "v1", "jobs", _LACKING),
    _kind("CronJob", "batch", "v1", "cronjobs", "they cannot be asked about"),
    _kind("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", "preemption respects no budget"),
    _kind("PodGroup", "scheduling.k8s.io", "v1alpha2", "podgroups", _GROUPS),
    _kind("PodGroup", "scheduling.k8s.io", "v1beta1", "podgroups", _GROUPS),
    _kind("CompositePodGroup", "scheduling.k8s.io", "v1alpha3", "compositepodgroups", _GROUPS),
    _kind("PodGroup", "scheduling.x-k8s.io", "v1alpha1", "podgroups", _GROUPS),
    _kind("PodGroup", "scheduling.volcano.sh", "v1beta1", "podgroups", _GROUPS),
    _kind("ElasticQuota", "scheduling.x-k8s.io", "v1alpha1", "elasticquotas", _QUOTAS),
    _kind("ElasticQuota", "scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", _QUOTAS),
    _kind("ClusterQueue", "kueue.x-k8s.io", "v1beta2", "clusterqueues", _QUEUES),
    _kind("LocalQueue", "kueue.x-k8s.io", "v1beta2", "localqueues", _QUEUES),
    _kind("Cohort", "kueue.x-k8s.io", "v1beta2", "cohorts", _QUEUES),
    _kind("ResourceFlavor", "kueue.x-k8s.io", "v1beta2", "resourceflavors", _QUEUES),
    _kind("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", "new pods get no priority of it"),
    _kind("RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", "new pods get no overhead and no selector of it"),
    _kind("StorageClass", "storage.k8s.io", "v1", "storageclasses", _VOLUMES),
    _kind("CSINode", "storage.k8s.io", "v1", "csinodes", "nodes have no limit on their volumes"),
    _kind("CSIDriver", "storage.k8s.io", "v1", "csidrivers", _VOLUMES),
    _kind("CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities", _VOLUMES),
    _kind(
        "VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", "volumes that are being detached do not count"
    ),
    # Slices come before what has expressions: what these may ask about is known then.
    _kind("ResourceSlice", "resource.k8s.io", "v1", "resourceslices", _DEVICES),
    _kind("DeviceTaintRule", "resource.k8s.io", "v1", "devicetaintrules", "devices have no taints of it"),
    _kind("DeviceClass", "resource.k8s.io", "v1", "deviceclasses", _DEVICES),
    _kind("ResourceClaim", "resource.k8s.io", "v1", "resourceclaims", _DEVICES),
    _kind("ResourceClaimTemplate", "resource.k8s.io", "v1", "resourceclaimtemplates", _DEVICES),
    _kind("NodeMetrics", "metrics.k8s.io", "v1beta1", "nodes", _EXTENDED),
    _kind("NodeResourceTopology", "topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", _EXTENDED),
)
"""All kinds, in the order in which they are read."""
