"""ElasticQuota v1alpha1 of scheduler-plugins: how much the pods of a namespace are guaranteed, and may use."""

from scheduler.api.objects import ApiObject, ResourceList, Wire


class ElasticQuotaSpec(Wire, frozen=True):
    min: ResourceList | None = None
    max: ResourceList | None = None


class ElasticQuotaStatus(Wire, frozen=True):
    used: ResourceList | None = None


class ElasticQuota(ApiObject, frozen=True):
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()
