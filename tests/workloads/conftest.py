"""Fixtures of the tests with real controllers: those of the tests on any cluster."""

from tests.cluster.conftest import api as api
from tests.cluster.conftest import cluster as cluster
from tests.cluster.conftest import helm as helm
from tests.cluster.conftest import make_nodes as make_nodes
from tests.cluster.conftest import namespace as namespace
from tests.cluster.conftest import new_namespace as new_namespace
