"""The parts of a v1.Pod that are decoded only for plugins that need them: see `needs`.

Written by `make reference` from the API's description; not to be edited. What has no value is None.
"""

from collections.abc import Mapping

import msgspec

from scheduler.api import objects
from scheduler.api.objects import ResourceList, Wire


class AppArmorProfile(Wire, frozen=True):
    localhost_profile: str | None = None
    type: str | None = None


class Capabilities(Wire, frozen=True):
    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class LocalObjectReference(Wire, frozen=True):
    name: str | None = None


class CephFSVolumeSource(Wire, frozen=True):
    monitors: tuple[str, ...] | None = None
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class ClusterTrustBundleProjection(Wire, frozen=True):
    label_selector: objects.LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: str | None = None
    signer_name: str | None = None
    user: int | None = None


class ConfigMapEnvSource(Wire, frozen=True):
    name: str | None = None
    optional: bool | None = None


class ConfigMapKeySelector(Wire, frozen=True):
    key: str | None = None
    name: str | None = None
    optional: bool | None = None


class KeyToPath(Wire, frozen=True):
    key: str | None = None
    mode: int | None = None
    path: str | None = None
    user: int | None = None


class ConfigMapProjection(Wire, frozen=True):
    items: tuple[KeyToPath, ...] | None = None
    name: str | None = None
    optional: bool | None = None


class ConfigMapVolumeSource(Wire, frozen=True):
    default_mode: int | None = None
    default_user: int | None = None
    items: tuple[KeyToPath, ...] | None = None
    name: str | None = None
    optional: bool | None = None


class ContainerClaim(Wire, frozen=True):
    name: str | None = None
    request: str | None = None


class ContainerExtendedResourceRequest(Wire, frozen=True):
    container_name: str | None = None
    request_name: str | None = None
    resource_name: str | None = None


class ContainerResizePolicy(Wire, frozen=True):
    resource_name: str | None = None
    restart_policy: str | None = None


class ContainerRestartRuleOnExitCodes(Wire, frozen=True):
    operator: str | None = None
    values: tuple[int, ...] | None = None


class ContainerStateRunning(Wire, frozen=True):
    started_at: str | None = None


class ContainerStateTerminated(Wire, frozen=True):
    container_id: str | None = msgspec.field(default=None, name="containerID")
    exit_code: int | None = None
    finished_at: str | None = None
    message: str | None = None
    reason: str | None = None
    signal: int | None = None
    started_at: str | None = None


class ContainerStateWaiting(Wire, frozen=True):
    message: str | None = None
    reason: str | None = None


class ContainerState(Wire, frozen=True):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class LinuxContainerUser(Wire, frozen=True):
    gid: int | None = None
    supplemental_groups: tuple[int, ...] | None = None
    uid: int | None = None


class ContainerUser(Wire, frozen=True):
    linux: LinuxContainerUser | None = None


class ObjectFieldSelector(Wire, frozen=True):
    api_version: str | None = None
    field_path: str | None = None


class ResourceFieldSelector(Wire, frozen=True):
    container_name: str | None = None
    divisor: str | int | float | None = None
    resource: str | None = None


class DownwardAPIVolumeFile(Wire, frozen=True):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    user: int | None = None


class DownwardAPIProjection(Wire, frozen=True):
    items: tuple[DownwardAPIVolumeFile, ...] | None = None


class DownwardAPIVolumeSource(Wire, frozen=True):
    default_mode: int | None = None
    default_user: int | None = None
    items: tuple[DownwardAPIVolumeFile, ...] | None = None


class EmptyDirVolumeSource(Wire, frozen=True):
    medium: str | None = None
    mode: int | None = None
    size_limit: str | int | float | None = None


class SecretEnvSource(Wire, frozen=True):
    name: str | None = None
    optional: bool | None = None


class EnvFromSource(Wire, frozen=True):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str | None = None
    secret_ref: SecretEnvSource | None = None


class FileKeySelector(Wire, frozen=True):
    key: str | None = None
    optional: bool | None = None
    path: str | None = None
    volume_name: str | None = None


class SecretKeySelector(Wire, frozen=True):
    key: str | None = None
    name: str | None = None
    optional: bool | None = None


class EnvVarSource(Wire, frozen=True):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Wire, frozen=True):
    name: str | None = None
    value: str | None = None
    value_from: EnvVarSource | None = None


class ExecAction(Wire, frozen=True):
    command: tuple[str, ...] | None = None


class HTTPHeader(Wire, frozen=True):
    name: str | None = None
    value: str | None = None


class HTTPGetAction(Wire, frozen=True):
    host: str | None = None
    http_headers: tuple[HTTPHeader, ...] | None = None
    path: str | None = None
    port: int | str | None = None
    protocol: str | None = None
    scheme: str | None = None


class SleepAction(Wire, frozen=True):
    seconds: int | None = None


class TCPSocketAction(Wire, frozen=True):
    host: str | None = None
    port: int | str | None = None


class LifecycleHandler(Wire, frozen=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Wire, frozen=True):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GRPCAction(Wire, frozen=True):
    mode: str | None = None
    port: int | None = None
    service: str | None = None


class Probe(Wire, frozen=True):
    exec: ExecAction | None = None
    failure_threshold: int | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int | None = None


class SELinuxOptions(Wire, frozen=True):
    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class SeccompProfile(Wire, frozen=True):
    localhost_profile: str | None = None
    type: str | None = None


class WindowsSecurityContextOptions(Wire, frozen=True):
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(Wire, frozen=True):
    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeDevice(Wire, frozen=True):
    device_path: str | None = None
    name: str | None = None


class VolumeMount(Wire, frozen=True):
    bind_mount_options: tuple[str, ...] | None = None
    mount_path: str | None = None
    mount_propagation: str | None = None
    name: str | None = None
    read_only: bool | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class EphemeralContainer(Wire, frozen=True):
    args: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    env_from: tuple[EnvFromSource, ...] | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str | None = None
    ports: tuple[objects.ContainerPort, ...] | None = None
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] | None = None
    resources: objects.ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[objects.ContainerRestartRule, ...] | None = None
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    target_container_name: str | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: tuple[VolumeDevice, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None
    working_dir: str | None = None


class EvictionResponder(Wire, frozen=True):
    name: str | None = None
    priority: int | None = None


class FCVolumeSource(Wire, frozen=True):
    fs_type: str | None = None
    lun: int | None = None
    read_only: bool | None = None
    target_w_wns: tuple[str, ...] | None = msgspec.field(default=None, name="targetWWNs")
    wwids: tuple[str, ...] | None = None


class FlexVolumeSource(Wire, frozen=True):
    driver: str | None = None
    fs_type: str | None = None
    options: Mapping[str, str] | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(Wire, frozen=True):
    dataset_name: str | None = None
    dataset_uuid: str | None = msgspec.field(default=None, name="datasetUUID")


class GitRepoVolumeSource(Wire, frozen=True):
    directory: str | None = None
    repository: str | None = None
    revision: str | None = None


class GlusterfsVolumeSource(Wire, frozen=True):
    endpoints: str | None = None
    path: str | None = None
    read_only: bool | None = None


class HostAlias(Wire, frozen=True):
    hostnames: tuple[str, ...] | None = None
    ip: str | None = None


class HostIP(Wire, frozen=True):
    ip: str | None = None


class HostPathVolumeSource(Wire, frozen=True):
    path: str | None = None
    type: str | None = None


class ImageVolumeStatus(Wire, frozen=True):
    image_ref: str | None = None


class NFSVolumeSource(Wire, frozen=True):
    path: str | None = None
    read_only: bool | None = None
    server: str | None = None


class NodeAllocatableMappedResources(Wire, frozen=True):
    name: str | None = None
    quantity: str | None = None


class NodeAllocatableResourceClaimStatus(Wire, frozen=True):
    containers: tuple[str, ...] | None = None
    mapping: tuple[NodeAllocatableMappedResources, ...] | None = None
    overhead: ResourceList | None = None
    resource_claim_name: str | None = None


class TypedLocalObjectReference(Wire, frozen=True):
    api_group: str | None = None
    kind: str | None = None
    name: str | None = None


class TypedObjectReference(Wire, frozen=True):
    api_group: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None


class VolumeResourceRequirements(Wire, frozen=True):
    limits: ResourceList | None = None
    requests: ResourceList | None = None


class PersistentVolumeClaimSpec(Wire, frozen=True):
    access_modes: tuple[str, ...] | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements | None = None
    selector: objects.LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class PersistentVolumeClaimTemplate(Wire, frozen=True):
    metadata: objects.ObjectMeta | None = None
    spec: PersistentVolumeClaimSpec | None = None


class PhotonPersistentDiskVolumeSource(Wire, frozen=True):
    fs_type: str | None = None
    pd_id: str | None = msgspec.field(default=None, name="pdID")


class PodCertificateProjection(Wire, frozen=True):
    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    key_type: str | None = None
    max_expiration_seconds: int | None = None
    signer_name: str | None = None
    user: int | None = None
    user_annotations: Mapping[str, str] | None = None


class PodDNSConfigOption(Wire, frozen=True):
    name: str | None = None
    value: str | None = None


class PodDNSConfig(Wire, frozen=True):
    nameservers: tuple[str, ...] | None = None
    options: tuple[PodDNSConfigOption, ...] | None = None
    searches: tuple[str, ...] | None = None


class PodIP(Wire, frozen=True):
    ip: str | None = None


class PodOS(Wire, frozen=True):
    name: str | None = None


class PodReadinessGate(Wire, frozen=True):
    condition_type: str | None = None


class PodSchedulingGroup(Wire, frozen=True):
    pod_group_name: str | None = None


class Sysctl(Wire, frozen=True):
    name: str | None = None
    value: str | None = None


class PodSecurityContext(Wire, frozen=True):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: tuple[int, ...] | None = None
    supplemental_groups_policy: str | None = None
    sysctls: tuple[Sysctl, ...] | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeHealthCondition(Wire, frozen=True):
    message: str | None = None
    reason: str | None = None
    status: str | None = None


class PodVolumeHealth(Wire, frozen=True):
    health_conditions: tuple[VolumeHealthCondition, ...] | None = None
    last_transition_time: str | None = None
    name: str | None = None


class SecretProjection(Wire, frozen=True):
    items: tuple[KeyToPath, ...] | None = None
    name: str | None = None
    optional: bool | None = None


class ServiceAccountTokenProjection(Wire, frozen=True):
    audience: str | None = None
    expiration_seconds: int | None = None
    path: str | None = None
    user: int | None = None


class VolumeProjection(Wire, frozen=True):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = msgspec.field(default=None, name="downwardAPI")
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Wire, frozen=True):
    default_mode: int | None = None
    default_user: int | None = None
    sources: tuple[VolumeProjection, ...] | None = None


class QuobyteVolumeSource(Wire, frozen=True):
    group: str | None = None
    read_only: bool | None = None
    registry: str | None = None
    tenant: str | None = None
    user: str | None = None
    volume: str | None = None


class ResourceHealth(Wire, frozen=True):
    health: str | None = None
    message: str | None = None
    resource_id: str | None = msgspec.field(default=None, name="resourceID")


class ResourceStatus(Wire, frozen=True):
    name: str | None = None
    resources: tuple[ResourceHealth, ...] | None = None


class ScaleIOVolumeSource(Wire, frozen=True):
    fs_type: str | None = None
    gateway: str | None = None
    protection_domain: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    system: str | None = None
    volume_name: str | None = None


class SecretVolumeSource(Wire, frozen=True):
    default_mode: int | None = None
    default_user: int | None = None
    items: tuple[KeyToPath, ...] | None = None
    optional: bool | None = None
    secret_name: str | None = None


class StorageOSVolumeSource(Wire, frozen=True):
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VolumeStatus(Wire, frozen=True):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Wire, frozen=True):
    mount_path: str | None = None
    name: str | None = None
    read_only: bool | None = None
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class AWSElasticBlockStoreRest(Wire, frozen=True):
    fs_type: str | None = None
    partition: int | None = None
    read_only: bool | None = None


class AzureDiskRest(Wire, frozen=True):
    caching_mode: str | None = None
    disk_name: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None


class AzureFileRest(Wire, frozen=True):
    read_only: bool | None = None
    secret_name: str | None = None
    share_name: str | None = None


class CSIVolumeSourceRest(Wire, frozen=True):
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: Mapping[str, str] | None = None


class CinderRest(Wire, frozen=True):
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class ContainerRest(Wire, frozen=True):
    args: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    env_from: tuple[EnvFromSource, ...] | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] | None = None
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: tuple[VolumeDevice, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None
    working_dir: str | None = None


class ContainerPortRest(Wire, frozen=True):
    name: str | None = None


class ContainerRestartRuleRest(Wire, frozen=True):
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ContainerStatusRest(Wire, frozen=True):
    allocated_resources_status: tuple[ResourceStatus, ...] | None = None
    container_id: str | None = msgspec.field(default=None, name="containerID")
    image: str | None = None
    image_id: str | None = msgspec.field(default=None, name="imageID")
    last_state: ContainerState | None = None
    ready: bool | None = None
    restart_count: int | None = None
    started: bool | None = None
    state: ContainerState | None = None
    stop_signal: str | None = None
    user: ContainerUser | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] | None = None


class EphemeralVolumeSourceRest(Wire, frozen=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GCEPersistentDiskRest(Wire, frozen=True):
    fs_type: str | None = None
    partition: int | None = None


class ISCSIRest(Wire, frozen=True):
    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iscsi_interface: str | None = None
    lun: int | None = None
    portals: tuple[str, ...] | None = None
    secret_ref: LocalObjectReference | None = None
    target_portal: str | None = None


class ImageVolumeSourceRest(Wire, frozen=True):
    pull_policy: str | None = None


class ObjectMetaRest(Wire, frozen=True):
    annotations: objects.Strings = objects.ABSENT
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] | None = None
    generate_name: str | None = None
    self_link: str | None = None


class OwnerReferenceRest(Wire, frozen=True):
    block_owner_deletion: bool | None = None


class PersistentVolumeClaimVolumeSourceRest(Wire, frozen=True):
    read_only: bool | None = None


class PodConditionRest(Wire, frozen=True):
    last_probe_time: str | None = None


class PodExtendedResourceClaimStatusRest(Wire, frozen=True):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = None


class PodSpecRest(Wire, frozen=True):
    active_deadline_seconds: int | None = None
    automount_service_account_token: bool | None = None
    dns_config: PodDNSConfig | None = None
    dns_policy: str | None = None
    enable_service_links: bool | None = None
    ephemeral_containers: tuple[EphemeralContainer, ...] | None = None
    eviction_responders: tuple[EvictionResponder, ...] | None = None
    host_aliases: tuple[HostAlias, ...] | None = None
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] | None = None
    os: PodOS | None = None
    priority_class_name: str | None = None
    readiness_gates: tuple[PodReadinessGate, ...] | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    share_process_namespace: bool | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: int | None = None


class PodStatusRest(Wire, frozen=True):
    ephemeral_container_statuses: tuple[objects.ContainerStatus, ...] | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    host_ips: tuple[HostIP, ...] | None = msgspec.field(default=None, name="hostIPs")
    message: str | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] | None = None
    observed_generation: int | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    pod_ips: tuple[PodIP, ...] | None = msgspec.field(default=None, name="podIPs")
    qos_class: str | None = None
    reason: str | None = None
    resize: str | None = None
    volume_health: tuple[PodVolumeHealth, ...] | None = None


class PortworxVolumeRest(Wire, frozen=True):
    fs_type: str | None = None
    read_only: bool | None = None


class RBDRest(Wire, frozen=True):
    fs_type: str | None = None
    keyring: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class ResourceRequirementsRest(Wire, frozen=True):
    claims: tuple[ContainerClaim, ...] | None = None


class VolumeRest(Wire, frozen=True):
    cephfs: CephFSVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = msgspec.field(default=None, name="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = msgspec.field(default=None, name="scaleIO")
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None


class VsphereVolumeRest(Wire, frozen=True):
    fs_type: str | None = None
    storage_policy_id: str | None = msgspec.field(default=None, name="storagePolicyID")
    storage_policy_name: str | None = None
    volume_path: str | None = None
