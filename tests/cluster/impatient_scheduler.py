"""Loadmaster that looks for new credentials and certificates every few seconds, and ends plugins that hang sooner."""

import sys
from dataclasses import replace
from typing import Any, Final

from scheduler.__main__ import main
from scheduler.kube.identity import credentials
from scheduler.kube.identity.identity import Identity, of_context
from scheduler.plugin_loading import trial
from scheduler.serve.port import certificates

START_SECONDS: Final = 5.0
"""For plugins to be made and started."""


def soon_read_again(*kubeconfig: Any) -> Identity:
    """The credentials of a kubeconfig."""
    return replace(of_context(*kubeconfig), fresh_for=3.0)


if __name__ == "__main__":
    parts: Any = credentials
    parts.of_context = soon_read_again
    parts = certificates
    parts.CHECK_SECONDS = 1.0
    trial.START_SECONDS = START_SECONDS
    sys.exit(main())
