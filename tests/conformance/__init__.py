"""Loadmaster against kube-scheduler, verdict by verdict. See README.md."""
