#!/bin/bash
# HAProxy in the place of the Envoy that kind expects:  envoy -c FOLDER/envoy.yaml
# Spreads connections to port 6443 over the servers that FOLDER/cds.yaml comes to name.
set -eu

servers=$(dirname "$2")/cds.yaml

write() {
	cat <<END
defaults
	mode tcp
	timeout connect 2s
	timeout client 1h
	timeout server 1h
	timeout check 2s
resolvers engine
	nameserver dns 127.0.0.11:53
	hold valid 5s
frontend control-plane
	bind :6443
	default_backend kube-apiservers
backend kube-apiservers
	option httpchk GET /readyz
END
	sed -n 's/^ *address: \([^" ]*\) *$/\1/p' "$servers" | while read -r host; do
		echo "	server $host $host:6443 check check-ssl verify none resolvers engine resolve-prefer ipv4 init-addr last,libc,none"
	done
}

until grep -q socket_address "$servers" 2>/dev/null; do sleep 0.1; done
write >/run/haproxy.cfg
exec haproxy -W -db -f /run/haproxy.cfg
