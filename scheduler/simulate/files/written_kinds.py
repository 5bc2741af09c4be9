"""The fields of the objects that a simulation reads: see `strict_fields`.

Written by `make reference` from the API's description; not to be edited. `a:B` is a field with an object of kind B,
`a:[]B` one with a list of them, `a:{}B` one with a mapping to them; of others nothing but the name is known.
"""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "AWSElasticBlockStoreVolumeSource": ("fsType partition readOnly volumeID"),
    "Affinity": ("nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity"),
    "AllocatedDeviceStatus": ("conditions:[]Condition data device driver networkData:NetworkDeviceData pool shareID"),
    "AllocationResult": ("allocationTimestamp devices:DeviceAllocationResult nodeSelector:NodeSelector"),
    "AppArmorProfile": ("localhostProfile type"),
    "AttachedVolume": ("devicePath name"),
    "AzureDiskVolumeSource": ("cachingMode diskName diskURI fsType kind readOnly"),
    "AzureFilePersistentVolumeSource": ("readOnly secretName secretNamespace shareName"),
    "AzureFileVolumeSource": ("readOnly secretName shareName"),
    "CELDeviceSelector": ("expression"),
    "CSIDriver": ("apiVersion kind metadata:ObjectMeta spec:CSIDriverSpec"),
    "CSIDriverSpec": (
        "attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount "
        "preventPodSchedulingIfMissing requiresRepublish seLinuxMount serviceAccountTokenInSecrets "
        "storageCapacity tokenRequests:[]StorageV1TokenRequest volumeLifecycleModes"
    ),
    "CSINode": ("apiVersion kind metadata:ObjectMeta spec:CSINodeSpec status:CSINodeStatus"),
    "CSINodeDriver": ("allocatable:VolumeNodeResources name nodeID topologyKeys"),
    "CSINodeSpec": ("drivers:[]CSINodeDriver"),
    "CSINodeStatus": ("storageHealth:[]StorageHealth"),
    "CSIPersistentVolumeSource": (
        "controllerExpandSecretRef:SecretReference controllerPublishSecretRef:SecretReference driver fsType "
        "nodeExpandSecretRef:SecretReference nodePublishSecretRef:SecretReference "
        "nodeStageSecretRef:SecretReference readOnly volumeAttributes volumeHandle"
    ),
    "CSIStorageCapacity": (
        "apiVersion capacity kind maximumVolumeSize metadata:ObjectMeta nodeTopology:LabelSelector storageClassName"
    ),
    "CSIVolumeSource": ("driver fsType nodePublishSecretRef:LocalObjectReference readOnly volumeAttributes"),
    "Capabilities": ("add drop"),
    "CapacityRequestPolicy": ("default validRange:CapacityRequestPolicyRange validValues"),
    "CapacityRequestPolicyRange": ("max min step"),
    "CapacityRequirements": ("requests"),
    "CephFSPersistentVolumeSource": ("monitors path readOnly secretFile secretRef:SecretReference user"),
    "CephFSVolumeSource": ("monitors path readOnly secretFile secretRef:LocalObjectReference user"),
    "CinderPersistentVolumeSource": ("fsType readOnly secretRef:SecretReference volumeID"),
    "CinderVolumeSource": ("fsType readOnly secretRef:LocalObjectReference volumeID"),
    "ClientIPConfig": ("timeoutSeconds"),
    "ClusterTrustBundleProjection": ("labelSelector:LabelSelector name optional path signerName user"),
    "Condition": ("lastTransitionTime message observedGeneration reason status type"),
    "ConfigMapEnvSource": ("name optional"),
    "ConfigMapKeySelector": ("key name optional"),
    "ConfigMapNodeConfigSource": ("kubeletConfigKey name namespace resourceVersion uid"),
    "ConfigMapProjection": ("items:[]KeyToPath name optional"),
    "ConfigMapVolumeSource": ("defaultMode defaultUser items:[]KeyToPath name optional"),
    "Container": (
        "args command env:[]EnvVar envFrom:[]EnvFromSource image imagePullPolicy lifecycle:Lifecycle "
        "livenessProbe:Probe name ports:[]ContainerPort readinessProbe:Probe "
        "resizePolicy:[]ContainerResizePolicy resources:ResourceRequirements restartPolicy "
        "restartPolicyRules:[]ContainerRestartRule securityContext:SecurityContext startupProbe:Probe stdin "
        "stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices:[]VolumeDevice "
        "volumeMounts:[]VolumeMount workingDir"
    ),
    "ContainerClaim": ("name request"),
    "ContainerExtendedResourceRequest": ("containerName requestName resourceName"),
    "ContainerImage": ("names sizeBytes"),
    "ContainerPort": ("containerPort hostIP hostPort name protocol"),
    "ContainerResizePolicy": ("resourceName restartPolicy"),
    "ContainerRestartRule": ("action exitCodes:ContainerRestartRuleOnExitCodes"),
    "ContainerRestartRuleOnExitCodes": ("operator values"),
    "ContainerState": (
        "running:ContainerStateRunning terminated:ContainerStateTerminated waiting:ContainerStateWaiting"
    ),
    "ContainerStateRunning": ("startedAt"),
    "ContainerStateTerminated": ("containerID exitCode finishedAt message reason signal startedAt"),
    "ContainerStateWaiting": ("message reason"),
    "ContainerStatus": (
        "allocatedResources allocatedResourcesStatus:[]ResourceStatus containerID image imageID "
        "lastState:ContainerState name ready resources:ResourceRequirements restartCount started "
        "state:ContainerState stopSignal user:ContainerUser volumeMounts:[]VolumeMountStatus"
    ),
    "ContainerUser": ("linux:LinuxContainerUser"),
    "Counter": ("value"),
    "CounterSet": ("counters:{}Counter name"),
    "DaemonEndpoint": ("Port"),
    "DaemonSet": ("apiVersion kind metadata:ObjectMeta spec:DaemonSetSpec status:DaemonSetStatus"),
    "DaemonSetCondition": ("lastTransitionTime message reason status type"),
    "DaemonSetSpec": (
        "minReadySeconds revisionHistoryLimit selector:LabelSelector template:PodTemplateSpec "
        "updateStrategy:DaemonSetUpdateStrategy"
    ),
    "DaemonSetStatus": (
        "collisionCount conditions:[]DaemonSetCondition currentNumberScheduled desiredNumberScheduled "
        "numberAvailable numberMisscheduled numberReady numberUnavailable observedGeneration "
        "updatedNumberScheduled"
    ),
    "DaemonSetUpdateStrategy": ("rollingUpdate:RollingUpdateDaemonSet type"),
    "Deployment": ("apiVersion kind metadata:ObjectMeta spec:DeploymentSpec status:DeploymentStatus"),
    "DeploymentCondition": ("lastTransitionTime lastUpdateTime message reason status type"),
    "DeploymentSpec": (
        "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit selector:LabelSelector "
        "strategy:DeploymentStrategy template:PodTemplateSpec"
    ),
    "DeploymentStatus": (
        "availableReplicas collisionCount conditions:[]DeploymentCondition observedGeneration readyReplicas "
        "replicas terminatingReplicas unavailableReplicas updatedReplicas"
    ),
    "DeploymentStrategy": ("rollingUpdate:RollingUpdateDeployment type"),
    "Device": (
        "allNodes allowMultipleAllocations attributes:{}DeviceAttribute bindingConditions "
        "bindingFailureConditions bindsToNode capacity:{}DeviceCapacity "
        "consumesCounters:[]DeviceCounterConsumption name nodeAllocatableResources:{}NodeAllocatableResource "
        "nodeName nodeSelector:NodeSelector taints:[]DeviceTaint"
    ),
    "DeviceAllocationConfiguration": ("opaque:OpaqueDeviceConfiguration requests source"),
    "DeviceAllocationResult": ("config:[]DeviceAllocationConfiguration results:[]DeviceRequestAllocationResult"),
    "DeviceAttribute": ("bool bools int ints string strings version versions"),
    "DeviceCapacity": ("requestPolicy:CapacityRequestPolicy value"),
    "DeviceClaim": ("config:[]DeviceClaimConfiguration constraints:[]DeviceConstraint requests:[]DeviceRequest"),
    "DeviceClaimConfiguration": ("opaque:OpaqueDeviceConfiguration requests"),
    "DeviceClass": ("apiVersion kind metadata:ObjectMeta spec:DeviceClassSpec"),
    "DeviceClassConfiguration": ("opaque:OpaqueDeviceConfiguration"),
    "DeviceClassSpec": ("config:[]DeviceClassConfiguration extendedResourceName selectors:[]DeviceSelector"),
    "DeviceConstraint": ("distinctAttribute matchAttribute requests"),
    "DeviceCounterConsumption": ("compatibilityGroups counterSet counters:{}Counter"),
    "DeviceDerivedAttribute": ("expression name"),
    "DeviceRequest": ("exactly:ExactDeviceRequest firstAvailable:[]DeviceSubRequest name"),
    "DeviceRequestAllocationResult": (
        "adminAccess bindingConditions bindingFailureConditions consumedCapacity device driver pool request "
        "shareID skipNodeOperations tolerations:[]DeviceToleration"
    ),
    "DeviceSelector": ("cel:CELDeviceSelector"),
    "DeviceSubRequest": (
        "allocationMode capacity:CapacityRequirements count derivedAttributes:[]DeviceDerivedAttribute "
        "deviceClassName name selectors:[]DeviceSelector tolerations:[]DeviceToleration"
    ),
    "DeviceTaint": ("effect key timeAdded value"),
    "DeviceToleration": ("effect key operator tolerationSeconds value"),
    "DownwardAPIProjection": ("items:[]DownwardAPIVolumeFile"),
    "DownwardAPIVolumeFile": ("fieldRef:ObjectFieldSelector mode path resourceFieldRef:ResourceFieldSelector user"),
    "DownwardAPIVolumeSource": ("defaultMode defaultUser items:[]DownwardAPIVolumeFile"),
    "EmptyDirVolumeSource": ("medium mode sizeLimit"),
    "EnvFromSource": ("configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource"),
    "EnvVar": ("name value valueFrom:EnvVarSource"),
    "EnvVarSource": (
        "configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector fileKeyRef:FileKeySelector "
        "resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector"
    ),
    "EphemeralContainer": (
        "args command env:[]EnvVar envFrom:[]EnvFromSource image imagePullPolicy lifecycle:Lifecycle "
        "livenessProbe:Probe name ports:[]ContainerPort readinessProbe:Probe "
        "resizePolicy:[]ContainerResizePolicy resources:ResourceRequirements restartPolicy "
        "restartPolicyRules:[]ContainerRestartRule securityContext:SecurityContext startupProbe:Probe stdin "
        "stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty "
        "volumeDevices:[]VolumeDevice volumeMounts:[]VolumeMount workingDir"
    ),
    "EphemeralVolumeSource": ("volumeClaimTemplate:PersistentVolumeClaimTemplate"),
    "EvictionResponder": ("name priority"),
    "ExactDeviceRequest": (
        "adminAccess allocationMode capacity:CapacityRequirements count "
        "derivedAttributes:[]DeviceDerivedAttribute deviceClassName selectors:[]DeviceSelector "
        "tolerations:[]DeviceToleration"
    ),
    "ExecAction": ("command"),
    "FCVolumeSource": ("fsType lun readOnly targetWWNs wwids"),
    "FileKeySelector": ("key optional path volumeName"),
    "FlexPersistentVolumeSource": ("driver fsType options readOnly secretRef:SecretReference"),
    "FlexVolumeSource": ("driver fsType options readOnly secretRef:LocalObjectReference"),
    "FlockerVolumeSource": ("datasetName datasetUUID"),
    "GCEPersistentDiskVolumeSource": ("fsType partition pdName readOnly"),
    "GRPCAction": ("mode port service"),
    "GitRepoVolumeSource": ("directory repository revision"),
    "GlusterfsPersistentVolumeSource": ("endpoints endpointsNamespace path readOnly"),
    "GlusterfsVolumeSource": ("endpoints path readOnly"),
    "HTTPGetAction": ("host httpHeaders:[]HTTPHeader path port protocol scheme"),
    "HTTPHeader": ("name value"),
    "HostAlias": ("hostnames ip"),
    "HostIP": ("ip"),
    "HostPathVolumeSource": ("path type"),
    "ISCSIPersistentVolumeSource": (
        "chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals readOnly "
        "secretRef:SecretReference targetPortal"
    ),
    "ISCSIVolumeSource": (
        "chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals readOnly "
        "secretRef:LocalObjectReference targetPortal"
    ),
    "ImageVolumeSource": ("pullPolicy reference"),
    "ImageVolumeStatus": ("imageRef"),
    "Job": ("apiVersion kind metadata:ObjectMeta spec:JobSpec status:JobStatus"),
    "JobCondition": ("lastProbeTime lastTransitionTime message reason status type"),
    "JobSchedulingConfiguration": ("disruptionMode resourceClaims schedulingConstraints schedulingPolicy"),
    "JobSpec": (
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy "
        "manualSelector maxFailedIndexes parallelism podFailurePolicy:PodFailurePolicy podReplacementPolicy "
        "scheduling:JobSchedulingConfiguration selector:LabelSelector successPolicy:SuccessPolicy suspend "
        "template:PodTemplateSpec ttlSecondsAfterFinished"
    ),
    "JobStatus": (
        "active completedIndexes completionTime conditions:[]JobCondition failed failedIndexes ready "
        "startTime succeeded terminating uncountedTerminatedPods:UncountedTerminatedPods"
    ),
    "KeyToPath": ("key mode path user"),
    "LabelSelector": ("matchExpressions:[]LabelSelectorRequirement matchLabels"),
    "LabelSelectorRequirement": ("key operator values"),
    "Lifecycle": ("postStart:LifecycleHandler preStop:LifecycleHandler stopSignal"),
    "LifecycleHandler": ("exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction"),
    "LimitRange": ("apiVersion kind metadata:ObjectMeta spec:LimitRangeSpec"),
    "LimitRangeItem": ("default defaultRequest max maxLimitRequestRatio min type"),
    "LimitRangeSpec": ("limits:[]LimitRangeItem"),
    "LinuxContainerUser": ("gid supplementalGroups uid"),
    "LoadBalancerIngress": ("hostname ip ipMode ports:[]PortStatus"),
    "LoadBalancerStatus": ("ingress:[]LoadBalancerIngress"),
    "LocalObjectReference": ("name"),
    "LocalVolumeSource": ("fsType path"),
    "ModifyVolumeStatus": ("status targetVolumeAttributesClassName"),
    "NFSVolumeSource": ("path readOnly server"),
    "Namespace": ("apiVersion kind metadata:ObjectMeta spec:NamespaceSpec status:NamespaceStatus"),
    "NamespaceCondition": ("lastTransitionTime message reason status type"),
    "NamespaceSpec": ("finalizers"),
    "NamespaceStatus": ("conditions:[]NamespaceCondition phase"),
    "NetworkDeviceData": ("hardwareAddress interfaceName ips"),
    "Node": ("apiVersion kind metadata:ObjectMeta spec:NodeSpec status:NodeStatus"),
    "NodeAddress": ("address type"),
    "NodeAffinity": (
        "preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm "
        "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector"
    ),
    "NodeAllocatableMappedResources": ("name quantity"),
    "NodeAllocatableMapping": ("capacityKey capacityMultiplier deviceMultiplier"),
    "NodeAllocatableOverhead": ("perContainer perPod"),
    "NodeAllocatableOverheadResources": ("name perContainer perPod"),
    "NodeAllocatableResource": ("mapping:NodeAllocatableMapping overhead:NodeAllocatableOverhead"),
    "NodeAllocatableResourceClaimStatus": (
        "containers mapping:[]NodeAllocatableMappedResources overhead:[]NodeAllocatableOverheadResources "
        "resourceClaimName"
    ),
    "NodeCondition": ("lastHeartbeatTime lastTransitionTime message reason status type"),
    "NodeConfigSource": ("configMap:ConfigMapNodeConfigSource"),
    "NodeConfigStatus": ("active:NodeConfigSource assigned:NodeConfigSource error lastKnownGood:NodeConfigSource"),
    "NodeDaemonEndpoints": ("kubeletEndpoint:DaemonEndpoint"),
    "NodeFeatures": ("supplementalGroupsPolicy"),
    "NodePodPreemptionPolicy": ("disableResizePreemption"),
    "NodeRuntimeHandler": ("features:NodeRuntimeHandlerFeatures name"),
    "NodeRuntimeHandlerFeatures": ("recursiveReadOnlyMounts userNamespaces"),
    "NodeSelector": ("nodeSelectorTerms:[]NodeSelectorTerm"),
    "NodeSelectorRequirement": ("key operator values"),
    "NodeSelectorTerm": ("matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement"),
    "NodeSpec": (
        "configSource:NodeConfigSource externalID podCIDR podCIDRs "
        "podPreemptionPolicy:NodePodPreemptionPolicy providerID taints:[]Taint unschedulable"
    ),
    "NodeStatus": (
        "addresses:[]NodeAddress allocatable capacity conditions:[]NodeCondition config:NodeConfigStatus "
        "daemonEndpoints:NodeDaemonEndpoints declaredFeatures features:NodeFeatures images:[]ContainerImage "
        "nodeInfo:NodeSystemInfo phase runtimeHandlers:[]NodeRuntimeHandler volumesAttached:[]AttachedVolume "
        "volumesInUse"
    ),
    "NodeSwapStatus": ("capacity"),
    "NodeSystemInfo": (
        "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID "
        "operatingSystem osImage runningInUserNamespace swap:NodeSwapStatus systemUUID"
    ),
    "ObjectFieldSelector": ("apiVersion fieldPath"),
    "ObjectMeta": (
        "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName "
        "generation labels managedFields name namespace ownerReferences:[]OwnerReference resourceVersion "
        "selfLink uid"
    ),
    "ObjectReference": ("apiVersion fieldPath kind name namespace resourceVersion uid"),
    "OpaqueDeviceConfiguration": ("driver parameters"),
    "Overhead": ("podFixed"),
    "OwnerReference": ("apiVersion blockOwnerDeletion controller kind name uid"),
    "PersistentVolume": ("apiVersion kind metadata:ObjectMeta spec:PersistentVolumeSpec status:PersistentVolumeStatus"),
    "PersistentVolumeClaim": (
        "apiVersion kind metadata:ObjectMeta spec:PersistentVolumeClaimSpec status:PersistentVolumeClaimStatus"
    ),
    "PersistentVolumeClaimCondition": ("lastProbeTime lastTransitionTime message reason status type"),
    "PersistentVolumeClaimSpec": (
        "accessModes dataSource:TypedLocalObjectReference dataSourceRef:TypedObjectReference "
        "resources:VolumeResourceRequirements selector:LabelSelector storageClassName "
        "volumeAttributesClassName volumeMode volumeName"
    ),
    "PersistentVolumeClaimStatus": (
        "accessModes allocatedResourceStatuses allocatedResources capacity "
        "conditions:[]PersistentVolumeClaimCondition currentVolumeAttributesClassName "
        "healthStatus:VolumeHealthStatus modifyVolumeStatus:ModifyVolumeStatus phase"
    ),
    "PersistentVolumeClaimTemplate": ("metadata:ObjectMeta spec:PersistentVolumeClaimSpec"),
    "PersistentVolumeClaimVolumeSource": ("claimName readOnly"),
    "PersistentVolumeSpec": (
        "accessModes awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource "
        "azureFile:AzureFilePersistentVolumeSource capacity cephfs:CephFSPersistentVolumeSource "
        "cinder:CinderPersistentVolumeSource claimRef:ObjectReference csi:CSIPersistentVolumeSource "
        "fc:FCVolumeSource flexVolume:FlexPersistentVolumeSource flocker:FlockerVolumeSource "
        "gcePersistentDisk:GCEPersistentDiskVolumeSource glusterfs:GlusterfsPersistentVolumeSource "
        "hostPath:HostPathVolumeSource iscsi:ISCSIPersistentVolumeSource local:LocalVolumeSource mountOptions "
        "nfs:NFSVolumeSource nodeAffinity:VolumeNodeAffinity persistentVolumeReclaimPolicy "
        "photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource "
        "quobyte:QuobyteVolumeSource rbd:RBDPersistentVolumeSource scaleIO:ScaleIOPersistentVolumeSource "
        "storageClassName storageos:StorageOSPersistentVolumeSource volumeAttributesClassName volumeMode "
        "vsphereVolume:VsphereVirtualDiskVolumeSource"
    ),
    "PersistentVolumeStatus": ("lastPhaseTransitionTime message phase reason"),
    "PhotonPersistentDiskVolumeSource": ("fsType pdID"),
    "Pod": ("apiVersion kind metadata:ObjectMeta spec:PodSpec status:PodStatus"),
    "PodAffinity": (
        "preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm "
        "requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm"
    ),
    "PodAffinityTerm": (
        "labelSelector:LabelSelector matchLabelKeys mismatchLabelKeys namespaceSelector:LabelSelector "
        "namespaces topologyKey"
    ),
    "PodAntiAffinity": (
        "preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm "
        "requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm"
    ),
    "PodCertificateProjection": (
        "certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds signerName user userAnnotations"
    ),
    "PodCondition": ("lastProbeTime lastTransitionTime message observedGeneration reason status type"),
    "PodDNSConfig": ("nameservers options:[]PodDNSConfigOption searches"),
    "PodDNSConfigOption": ("name value"),
    "PodDisruptionBudget": (
        "apiVersion kind metadata:ObjectMeta spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus"
    ),
    "PodDisruptionBudgetSpec": ("maxUnavailable minAvailable selector:LabelSelector unhealthyPodEvictionPolicy"),
    "PodDisruptionBudgetStatus": (
        "conditions:[]Condition currentHealthy desiredHealthy disruptedPods disruptionsAllowed expectedPods "
        "observedGeneration"
    ),
    "PodExtendedResourceClaimStatus": ("requestMappings:[]ContainerExtendedResourceRequest resourceClaimName"),
    "PodFailurePolicy": ("rules:[]PodFailurePolicyRule"),
    "PodFailurePolicyOnExitCodesRequirement": ("containerName operator values"),
    "PodFailurePolicyOnPodConditionsPattern": ("status type"),
    "PodFailurePolicyRule": (
        "action onExitCodes:PodFailurePolicyOnExitCodesRequirement "
        "onPodConditions:[]PodFailurePolicyOnPodConditionsPattern"
    ),
    "PodIP": ("ip"),
    "PodOS": ("name"),
    "PodReadinessGate": ("conditionType"),
    "PodResourceClaim": ("name resourceClaimName resourceClaimTemplateName"),
    "PodResourceClaimStatus": ("name resourceClaimName"),
    "PodSchedulingGate": ("name"),
    "PodSchedulingGroup": ("podGroupName"),
    "PodSecurityContext": (
        "appArmorProfile:AppArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser "
        "seLinuxChangePolicy seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile supplementalGroups "
        "supplementalGroupsPolicy sysctls:[]Sysctl windowsOptions:WindowsSecurityContextOptions"
    ),
    "PodSpec": (
        "activeDeadlineSeconds affinity:Affinity automountServiceAccountToken containers:[]Container "
        "dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks ephemeralContainers:[]EphemeralContainer "
        "evictionResponders:[]EvictionResponder hostAliases:[]HostAlias hostIPC hostNetwork hostPID hostUsers "
        "hostname hostnameOverride imagePullSecrets:[]LocalObjectReference initContainers:[]Container "
        "nodeName nodeSelector os:PodOS overhead preemptionPolicy priority priorityClassName "
        "readinessGates:[]PodReadinessGate resourceClaims:[]PodResourceClaim resources:ResourceRequirements "
        "restartPolicy runtimeClassName schedulerName schedulingGates:[]PodSchedulingGate "
        "schedulingGroup:PodSchedulingGroup securityContext:PodSecurityContext serviceAccount "
        "serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds "
        "tolerations:[]Toleration topologySpreadConstraints:[]TopologySpreadConstraint volumes:[]Volume"
    ),
    "PodStatus": (
        "allocatedResources conditions:[]PodCondition containerStatuses:[]ContainerStatus "
        "ephemeralContainerStatuses:[]ContainerStatus "
        "extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP hostIPs:[]HostIP "
        "initContainerStatuses:[]ContainerStatus message "
        "nodeAllocatableResourceClaimStatuses:[]NodeAllocatableResourceClaimStatus nominatedNodeName "
        "observedGeneration phase podIP podIPs:[]PodIP qosClass reason resize "
        "resourceClaimStatuses:[]PodResourceClaimStatus resources:ResourceRequirements startTime "
        "volumeHealth:[]PodVolumeHealth"
    ),
    "PodTemplateSpec": ("metadata:ObjectMeta spec:PodSpec"),
    "PodVolumeHealth": ("healthConditions:[]VolumeHealthCondition lastTransitionTime name"),
    "PortStatus": ("error port protocol"),
    "PortworxVolumeSource": ("fsType readOnly volumeID"),
    "PreferredSchedulingTerm": ("preference:NodeSelectorTerm weight"),
    "PriorityClass": ("apiVersion description globalDefault kind metadata:ObjectMeta preemptionPolicy value"),
    "Probe": (
        "exec:ExecAction failureThreshold grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds "
        "periodSeconds successThreshold tcpSocket:TCPSocketAction terminationGracePeriodSeconds "
        "timeoutSeconds"
    ),
    "ProjectedVolumeSource": ("defaultMode defaultUser sources:[]VolumeProjection"),
    "QuobyteVolumeSource": ("group readOnly registry tenant user volume"),
    "RBDPersistentVolumeSource": ("fsType image keyring monitors pool readOnly secretRef:SecretReference user"),
    "RBDVolumeSource": ("fsType image keyring monitors pool readOnly secretRef:LocalObjectReference user"),
    "ReplicaSet": ("apiVersion kind metadata:ObjectMeta spec:ReplicaSetSpec status:ReplicaSetStatus"),
    "ReplicaSetCondition": ("lastTransitionTime message reason status type"),
    "ReplicaSetSpec": ("minReadySeconds replicas selector:LabelSelector template:PodTemplateSpec"),
    "ReplicaSetStatus": (
        "availableReplicas conditions:[]ReplicaSetCondition fullyLabeledReplicas observedGeneration "
        "readyReplicas replicas terminatingReplicas"
    ),
    "ReplicationController": (
        "apiVersion kind metadata:ObjectMeta spec:ReplicationControllerSpec status:ReplicationControllerStatus"
    ),
    "ReplicationControllerCondition": ("lastTransitionTime message reason status type"),
    "ReplicationControllerSpec": ("minReadySeconds replicas selector template:PodTemplateSpec"),
    "ReplicationControllerStatus": (
        "availableReplicas conditions:[]ReplicationControllerCondition fullyLabeledReplicas "
        "observedGeneration readyReplicas replicas"
    ),
    "ResourceClaim": ("apiVersion kind metadata:ObjectMeta spec:ResourceClaimSpec status:ResourceClaimStatus"),
    "ResourceClaimConsumerReference": ("apiGroup name resource uid"),
    "ResourceClaimSpec": ("devices:DeviceClaim"),
    "ResourceClaimStatus": (
        "allocation:AllocationResult devices:[]AllocatedDeviceStatus reservedFor:[]ResourceClaimConsumerReference"
    ),
    "ResourceClaimTemplate": ("apiVersion kind metadata:ObjectMeta spec:ResourceClaimTemplateSpec"),
    "ResourceClaimTemplateSpec": ("metadata:ObjectMeta spec:ResourceClaimSpec"),
    "ResourceFieldSelector": ("containerName divisor resource"),
    "ResourceHealth": ("health message resourceID"),
    "ResourcePool": ("generation name resourceSliceCount"),
    "ResourceRequirements": ("claims:[]ContainerClaim limits requests"),
    "ResourceSlice": ("apiVersion kind metadata:ObjectMeta spec:ResourceSliceSpec"),
    "ResourceSliceSpec": (
        "allNodes devices:[]Device driver nodeName nodeSelector:NodeSelector partitionTypeAttribute "
        "perDeviceNodeSelection pool:ResourcePool sharedCounters:[]CounterSet skipNodeOperations"
    ),
    "ResourceStatus": ("name resources:[]ResourceHealth"),
    "RollingUpdateDaemonSet": ("maxSurge maxUnavailable"),
    "RollingUpdateDeployment": ("maxSurge maxUnavailable"),
    "RollingUpdateStatefulSetStrategy": ("maxUnavailable partition"),
    "RuntimeClass": ("apiVersion handler kind metadata:ObjectMeta overhead:Overhead scheduling:Scheduling"),
    "SELinuxOptions": ("level role type user"),
    "ScaleIOPersistentVolumeSource": (
        "fsType gateway protectionDomain readOnly secretRef:SecretReference sslEnabled storageMode "
        "storagePool system volumeName"
    ),
    "ScaleIOVolumeSource": (
        "fsType gateway protectionDomain readOnly secretRef:LocalObjectReference sslEnabled storageMode "
        "storagePool system volumeName"
    ),
    "Scheduling": ("nodeSelector tolerations:[]Toleration"),
    "SeccompProfile": ("localhostProfile type"),
    "SecretEnvSource": ("name optional"),
    "SecretKeySelector": ("key name optional"),
    "SecretProjection": ("items:[]KeyToPath name optional"),
    "SecretReference": ("name namespace"),
    "SecretVolumeSource": ("defaultMode defaultUser items:[]KeyToPath optional secretName"),
    "SecurityContext": (
        "allowPrivilegeEscalation appArmorProfile:AppArmorProfile capabilities:Capabilities privileged "
        "procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser seLinuxOptions:SELinuxOptions "
        "seccompProfile:SeccompProfile windowsOptions:WindowsSecurityContextOptions"
    ),
    "Service": ("apiVersion kind metadata:ObjectMeta spec:ServiceSpec status:ServiceStatus"),
    "ServiceAccountTokenProjection": ("audience expirationSeconds path user"),
    "ServicePort": ("appProtocol name nodePort port protocol targetPort"),
    "ServiceSpec": (
        "allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy "
        "healthCheckNodePort internalTrafficPolicy ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP "
        "loadBalancerSourceRanges ports:[]ServicePort publishNotReadyAddresses selector sessionAffinity "
        "sessionAffinityConfig:SessionAffinityConfig trafficDistribution type"
    ),
    "ServiceStatus": ("conditions:[]Condition loadBalancer:LoadBalancerStatus"),
    "SessionAffinityConfig": ("clientIP:ClientIPConfig"),
    "SleepAction": ("seconds"),
    "StatefulSet": ("apiVersion kind metadata:ObjectMeta spec:StatefulSetSpec status:StatefulSetStatus"),
    "StatefulSetCondition": ("lastTransitionTime message reason status type"),
    "StatefulSetOrdinals": ("start"),
    "StatefulSetPersistentVolumeClaimRetentionPolicy": ("whenDeleted whenScaled"),
    "StatefulSetSpec": (
        "minReadySeconds ordinals:StatefulSetOrdinals "
        "persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy "
        "podManagementPolicy replicas revisionHistoryLimit selector:LabelSelector serviceName "
        "template:PodTemplateSpec updateStrategy:StatefulSetUpdateStrategy "
        "volumeClaimTemplates:[]PersistentVolumeClaim"
    ),
    "StatefulSetStatus": (
        "availableReplicas collisionCount conditions:[]StatefulSetCondition currentReplicas currentRevision "
        "observedGeneration readyReplicas replicas updateRevision updatedReplicas"
    ),
    "StatefulSetUpdateStrategy": ("rollingUpdate:RollingUpdateStatefulSetStrategy type"),
    "StorageClass": (
        "allowVolumeExpansion allowedTopologies:[]TopologySelectorTerm apiVersion kind metadata:ObjectMeta "
        "mountOptions parameters provisioner reclaimPolicy volumeBindingMode"
    ),
    "StorageHealth": ("healthConditions:[]StorageHealthCondition name"),
    "StorageHealthCondition": ("accessMode lastTransitionTime message reason status volumeMode"),
    "StorageOSPersistentVolumeSource": ("fsType readOnly secretRef:ObjectReference volumeName volumeNamespace"),
    "StorageOSVolumeSource": ("fsType readOnly secretRef:LocalObjectReference volumeName volumeNamespace"),
    "StorageV1TokenRequest": ("audience expirationSeconds"),
    "SuccessPolicy": ("rules:[]SuccessPolicyRule"),
    "SuccessPolicyRule": ("succeededCount succeededIndexes"),
    "Sysctl": ("name value"),
    "TCPSocketAction": ("host port"),
    "Taint": ("effect key timeAdded value"),
    "Toleration": ("effect key operator tolerationSeconds value"),
    "TopologySelectorLabelRequirement": ("key values"),
    "TopologySelectorTerm": ("matchLabelExpressions:[]TopologySelectorLabelRequirement"),
    "TopologySpreadConstraint": (
        "labelSelector:LabelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy "
        "topologyKey whenUnsatisfiable"
    ),
    "TypedLocalObjectReference": ("apiGroup kind name"),
    "TypedObjectReference": ("apiGroup kind name namespace"),
    "UncountedTerminatedPods": ("failed succeeded"),
    "Volume": (
        "awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource "
        "azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource "
        "configMap:ConfigMapVolumeSource csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource "
        "emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource fc:FCVolumeSource "
        "flexVolume:FlexVolumeSource flocker:FlockerVolumeSource "
        "gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource "
        "glusterfs:GlusterfsVolumeSource hostPath:HostPathVolumeSource image:ImageVolumeSource "
        "iscsi:ISCSIVolumeSource name nfs:NFSVolumeSource "
        "persistentVolumeClaim:PersistentVolumeClaimVolumeSource "
        "photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource "
        "projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource "
        "scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource "
        "vsphereVolume:VsphereVirtualDiskVolumeSource"
    ),
    "VolumeAttachment": ("apiVersion kind metadata:ObjectMeta spec:VolumeAttachmentSpec status:VolumeAttachmentStatus"),
    "VolumeAttachmentSource": ("inlineVolumeSpec:PersistentVolumeSpec persistentVolumeName"),
    "VolumeAttachmentSpec": ("attacher nodeName source:VolumeAttachmentSource"),
    "VolumeAttachmentStatus": ("attachError:VolumeError attached attachmentMetadata detachError:VolumeError"),
    "VolumeDevice": ("devicePath name"),
    "VolumeError": ("errorCode message time"),
    "VolumeHealthCondition": ("message reason status"),
    "VolumeHealthStatus": ("healthConditions:[]VolumeHealthCondition lastTransitionTime"),
    "VolumeMount": ("bindMountOptions mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr"),
    "VolumeMountStatus": ("mountPath name readOnly recursiveReadOnly volumeStatus:VolumeStatus"),
    "VolumeNodeAffinity": ("required:NodeSelector"),
    "VolumeNodeResources": ("count"),
    "VolumeProjection": (
        "clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection "
        "downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection secret:SecretProjection "
        "serviceAccountToken:ServiceAccountTokenProjection"
    ),
    "VolumeResourceRequirements": ("limits requests"),
    "VolumeStatus": ("image:ImageVolumeStatus"),
    "VsphereVirtualDiskVolumeSource": ("fsType storagePolicyID storagePolicyName volumePath"),
    "WeightedPodAffinityTerm": ("podAffinityTerm:PodAffinityTerm weight"),
    "WindowsSecurityContextOptions": ("gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName"),
}
"""Kind → its fields."""

TOP: Final[Mapping[str, str]] = {
    "LimitRange": "LimitRange",
    "Namespace": "Namespace",
    "Node": "Node",
    "PersistentVolume": "PersistentVolume",
    "PersistentVolumeClaim": "PersistentVolumeClaim",
    "Pod": "Pod",
    "ReplicationController": "ReplicationController",
    "Service": "Service",
    "DaemonSet (apps/v1)": "DaemonSet",
    "Deployment (apps/v1)": "Deployment",
    "ReplicaSet (apps/v1)": "ReplicaSet",
    "StatefulSet (apps/v1)": "StatefulSet",
    "Job (batch/v1)": "Job",
    "RuntimeClass (node.k8s.io/v1)": "RuntimeClass",
    "PodDisruptionBudget (policy/v1)": "PodDisruptionBudget",
    "DeviceClass (resource.k8s.io/v1)": "DeviceClass",
    "ResourceClaim (resource.k8s.io/v1)": "ResourceClaim",
    "ResourceClaimTemplate (resource.k8s.io/v1)": "ResourceClaimTemplate",
    "ResourceSlice (resource.k8s.io/v1)": "ResourceSlice",
    "PriorityClass (scheduling.k8s.io/v1)": "PriorityClass",
    "CSIDriver (storage.k8s.io/v1)": "CSIDriver",
    "CSINode (storage.k8s.io/v1)": "CSINode",
    "CSIStorageCapacity (storage.k8s.io/v1)": "CSIStorageCapacity",
    "StorageClass (storage.k8s.io/v1)": "StorageClass",
    "VolumeAttachment (storage.k8s.io/v1)": "VolumeAttachment",
}
"""Label of an object → its kind."""
