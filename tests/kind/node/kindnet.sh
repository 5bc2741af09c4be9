#!/bin/sh
# The pods' network of a node image that is made here, in kindnetd's place and with its settings: each node's pods are in
# a subnet of their own, reached by a route to the node. docs/kind.md says what kindnetd can do and this cannot.
set -eu
# The API server's own address, as kube-proxy may not run yet.
export KUBERNETES_SERVICE_HOST="${CONTROL_PLANE_ENDPOINT%:*}" KUBERNETES_SERVICE_PORT="${CONTROL_PLANE_ENDPOINT##*:}"

configure() { # SUBNET: written as a whole, as the container runtime watches the directory
  cat > /etc/cni/net.d/.kindnet <<EOF
{"cniVersion": "1.0.0", "name": "kindnet", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": $(cat /sys/class/net/eth0/mtu),
   "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
            "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "$1"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOF
  mv /etc/cni/net.d/.kindnet /etc/cni/net.d/10-kindnet.conflist
}

masquerade() { # what leaves the cluster has the node's address
  iptables -w -t nat -N KINDNET-MASQ 2>/dev/null || iptables -w -t nat -F KINDNET-MASQ
  iptables -w -t nat -A KINDNET-MASQ -d "$POD_SUBNET" -j RETURN
  iptables -w -t nat -A KINDNET-MASQ -j MASQUERADE
  rule="-s $POD_SUBNET -m addrtype ! --dst-type LOCAL -j KINDNET-MASQ"
  # shellcheck disable=SC2086
  iptables -w -t nat -C POSTROUTING $rule 2>/dev/null || iptables -w -t nat -A POSTROUTING $rule
}

masquerade
while true; do
  kubectl get nodes --watch --cache-dir=/tmp/kubectl \
      -o 'jsonpath={.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}' |
    while read -r subnet address; do
      if [ -z "$address" ]; then continue
      elif [ "$address" = "$HOST_IP" ]; then configure "$subnet"
      else ip route replace "$subnet" via "$address"
      fi
    done
  sleep 1 # the API server ended the watch
done
