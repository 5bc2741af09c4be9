"""One real node on a machine without Docker: the image runs as users run it.

`make node-test` builds the image and runs tests/node on it. The node is a kubelet with containerd and runc, and its
control plane is that of `tests.controlplane`; all of it lives in private namespaces:

    this machine            buildah builds the image; nothing else happens here
      └─ unshare            mount, network, PID, IPC and UTS namespaces: no port is taken, and one kill ends everything
           └─ init.py       PID 1: runs pytest and reaps what containerd leaves behind
                └─ pytest   tests/node: its session fixture is a RealNode
                     └─ etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd, kubelet, pods

The API server listens at the first address of the services' range, where pods look for it: no kube-proxy is needed,
and there is none, so the addresses of other Services lead nowhere. There is no DNS either.
"""
