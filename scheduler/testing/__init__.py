"""The plugin author's test kit.

    pod = a_pod(requests={"cpu": "500m"}, tolerations=[Toleration(key="gpu", operator="Exists")])
    node = a_node("worker-1", cpu="8", labels={"zone": "a"}, taints=[Taint(key="gpu", effect="NoSchedule")])
    budget = an_object("shop", namespace="web", spec={"pool": "blue"})
    nodes = a_cluster(node, pods={"worker-1": [pod]})

    plugin = started(TeamBudget(), a_handle(nodes, {"budgets.v1.example.com": [budget]}))    then ask it by hand
    schedule(TeamBudget(), pod, nodes, {"budgets.v1.example.com": [budget]})                 or let it decide alone
    with a_scheduler(TeamBudget(), nodes=[node]) as scheduler: ...                           or in a whole scheduler
    check_plugin(TeamBudget(), [pod], nodes, {"budgets.v1.example.com": [budget]})           or check all its promises

For anything without a keyword there are `pod_from_dict` and `node_from_dict`, which take the content of a manifest.
"""

from scheduler.testing.api_server import Event as Event
from scheduler.testing.api_server import HttpAnswers as HttpAnswers
from scheduler.testing.contract import check_plugin as check_plugin
from scheduler.testing.handles import Cluster as Cluster
from scheduler.testing.handles import Objects as Objects
from scheduler.testing.handles import a_cluster as a_cluster
from scheduler.testing.handles import a_handle as a_handle
from scheduler.testing.handles import started as started
from scheduler.testing.objects import a_container as a_container
from scheduler.testing.objects import a_node as a_node
from scheduler.testing.objects import a_pod as a_pod
from scheduler.testing.objects import a_requirement as a_requirement
from scheduler.testing.objects import a_term as a_term
from scheduler.testing.objects import an_object as an_object
from scheduler.testing.objects import node_from_dict as node_from_dict
from scheduler.testing.objects import pod_from_dict as pod_from_dict
from scheduler.testing.objects import preferred as preferred
from scheduler.testing.objects import required as required
from scheduler.testing.scheduler import Outcome as Outcome
from scheduler.testing.scheduler import Scheduler as Scheduler
from scheduler.testing.scheduler import a_scheduler as a_scheduler
from scheduler.testing.scheduling import Decision as Decision
from scheduler.testing.scheduling import schedule as schedule
