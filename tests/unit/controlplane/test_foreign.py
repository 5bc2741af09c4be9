from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, Settings
from tests.controlplane.foreign import ClusterError, ExistingCluster, choose


def test_the_default_is_a_control_plane_of_our_own_even_with_a_kubeconfig_around() -> None:
    cluster = choose({"KUBECONFIG": "/production"})

    assert isinstance(cluster, ControlPlane)
    assert cluster.settings == Settings(controller_manager=True, kwok=True)


def test_an_existing_cluster_must_be_asked_for_by_name() -> None:
    cluster = choose({"LOADMASTER_CLUSTER": "existing", "KUBECONFIG": "/mine:/other"})

    assert isinstance(cluster, ExistingCluster)
    assert cluster.kubeconfig() == Path("/mine")
    with pytest.raises(ClusterError, match="user kwok"):
        cluster.kubeconfig("kwok")


def test_another_choice_is_refused_with_the_list() -> None:
    with pytest.raises(ClusterError, match="LOADMASTER_CLUSTER=minikube is none of: built, existing"):
        choose({"LOADMASTER_CLUSTER": "minikube"})
