# Reports whether this router answers. The old router of a rollout cannot answer on a socket in the pod.
answer=$(printf 'GET /healthz/ready HTTP/1.0\r\n\r\n' | /usr/bin/socat -t 1 - UNIX-CONNECT:/etc/router/stats.sock)
[[ $answer == "HTTP/1.1 200 "* ]]
