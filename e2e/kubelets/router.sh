# Ends gracefully on the signal that kubelets send.
export STATS_BIND="${STATS_BIND:-:1936}"
/usr/sbin/haproxy -db -f /etc/router/haproxy.cfg &
haproxy=$!
trap 'kill -USR1 "$haproxy"' TERM
# The first wait is cut short by the signal.
wait "$haproxy"
wait "$haproxy"
