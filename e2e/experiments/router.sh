# Ends gracefully on the signal that kubelets send.
/usr/sbin/haproxy -db -f /etc/router/haproxy.cfg &
haproxy=$!
trap 'kill -USR1 "$haproxy"' TERM
# The first wait is cut short by the signal.
wait "$haproxy"
wait "$haproxy"
