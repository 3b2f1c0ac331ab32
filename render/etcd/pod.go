// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/podtemplate"
)

const dataDir = "/var/lib/etcd"

func podFor(s *inputs.Settings, all []member, env []corev1.EnvVar, tls tlsSettings) *corev1.Pod {
	pod := podtemplate.NewPod(namespace, component, component,
		map[string]string{"app": component, "k8s-app": component, "etcd": "true"}, podtemplate.Annotations(component))
	if s.Profile == inputs.Kubernetes {
		create := corev1.HostPathDirectoryOrCreate
		data := podtemplate.HostPath("data-dir", dataDir)
		data.HostPath.Type = &create
		pod.Spec.Volumes = append(pod.Spec.Volumes, data)
		pod.Spec.Containers = []corev1.Container{kubernetesContainer(s.Images[component], all, tls)}
		return pod
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		podtemplate.HostPath("static-pod-dir", "/etc/kubernetes/manifests"),
		podtemplate.HostPath("data-dir", dataDir),
		podtemplate.HostPath("log-dir", "/var/log/etcd"),
		podtemplate.HostPath("etcd-auto-backup-dir", "/var/lib/etcd-auto-backup"),
	)
	pod.Spec.InitContainers, pod.Spec.Containers = openshiftContainers(s.Images, all, env, tls)
	return pod
}

func nodeEnv(name string) string { return fmt.Sprintf("$(NODE_%s_%s)", nodeEnvName, name) }

// kubernetesFlags returns kubeadm's flags of etcd 3.6 (U-REN-26). The node's address is in the environment.
func kubernetesFlags(all []member, tls tlsSettings, loopback string) []string {
	address := func(scheme, at string, port int) string { return fmt.Sprintf("%s://%s:%d", scheme, at, port) }
	flags := []string{
		"--advertise-client-urls=" + address("https", nodeEnv("IP"), clientPort),
		"--cert-file=" + servingFile + ".crt",
		"--client-cert-auth=true",
		"--data-dir=" + dataDir,
		"--feature-gates=InitialCorruptCheck=true",
		"--initial-advertise-peer-urls=" + address("https", nodeEnv("IP"), peerPort),
		"--initial-cluster=" + initialCluster(all),
		"--initial-cluster-state=new",
		"--key-file=" + servingFile + ".key",
		"--listen-client-urls=" + address("https", loopback, clientPort) + "," + address("https", nodeEnv("IP"), clientPort),
		"--listen-metrics-urls=" + address("http", loopback, healthPort),
		"--listen-peer-urls=" + address("https", nodeEnv("IP"), peerPort),
		"--name=" + nodeName,
		"--peer-cert-file=" + peerFile + ".crt",
		"--peer-client-cert-auth=true",
		"--peer-key-file=" + peerFile + ".key",
		"--peer-trusted-ca-file=" + serverCA,
		"--snapshot-count=10000",
		"--tls-min-version=" + tls.version,
		"--trusted-ca-file=" + serverCA,
		"--watch-progress-notify-interval=5s",
	}
	if len(tls.ciphers) > 0 {
		flags = append(flags, "--cipher-suites="+strings.Join(tls.ciphers, ","))
	}
	return flags
}

// kubernetesContainer returns the container of profile kubernetes, with kubeadm's probes (U-REN-11).
func kubernetesContainer(image string, all []member, tls tlsSettings) corev1.Container {
	loopback := podtemplate.Loopback(all[0].address)
	endpoint := podtemplate.Endpoint{Host: loopback, Port: healthPort, Scheme: corev1.URISchemeHTTP}
	c := podtemplate.Kubeadm(component, image, kubernetesFlags(all, tls, host(loopback)), healthPort)
	c.Resources = podtemplate.Requests("100m", "100Mi")
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data-dir", MountPath: dataDir})
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = endpoint.Liveness("/livez"), endpoint.Readiness("/readyz"), endpoint.Startup("/readyz")
	for _, m := range all {
		c.Env = append(c.Env, corev1.EnvVar{Name: memberEnv(m, "IP"), Value: host(m.address)})
	}
	return c
}

// openshiftContainers returns the stock operator's containers (U-REN-27), but a member without data forms a new
// cluster, where the stock pod needs the installer's etcd, and no scripts are copied.
func openshiftContainers(images map[string]string, all []member, env []corev1.EnvVar, tls tlsSettings) (initial, containers []corev1.Container) {
	image, operator := images[component], images["cluster-etcd-operator"]
	revisioned := append([]corev1.EnvVar{}, env...)
	revisioned = append(revisioned, corev1.EnvVar{Name: "ETCD_STATIC_POD_VERSION", Value: podtemplate.Revision})
	any, loopback := "0.0.0.0", "127.0.0.1"
	if all[0].address.Is6() {
		any, loopback = "[::]", "[::1]"
	}
	mount := func(name, path string) corev1.VolumeMount { return corev1.VolumeMount{Name: name, MountPath: path} }
	manifests, data, logs := mount("static-pod-dir", "/etc/kubernetes/manifests"), mount("data-dir", dataDir+"/"), mount("log-dir", "/var/log/etcd")
	resourceMount, certMount := podtemplate.Mounts()[0], podtemplate.Mounts()[1]
	var cipherFlag, proxyCipherFlag string
	if len(tls.ciphers) > 0 {
		cipherFlag, proxyCipherFlag = " --listen-cipher-suites=$(ETCD_CIPHER_SUITES)", " --listen-cipher-suites ${ETCD_CIPHER_SUITES}"
	}

	setup := shell("setup", image, `
mkdir -p /var/log/etcd /var/lib/etcd-auto-backup
chmod 0600 /var/log/etcd /var/lib/etcd-auto-backup
rm -f /etc/kubernetes/manifests/etcd-restore-pod.yaml`)
	setup.Resources = podtemplate.Requests("5m", "50Mi")
	setup.VolumeMounts = []corev1.VolumeMount{manifests, logs, mount("etcd-auto-backup-dir", "/var/lib/etcd-auto-backup")}

	check := shell("etcd-ensure-env-vars", image, `
for address in "${NODE_NODE_ENVVAR_NAME_IP?not set}" "${NODE_NODE_ENVVAR_NAME_ETCD_URL_HOST?not set}"; do
  if [ "${address}" != "${NODE_IP}" ] && [ "${address}" != "[${NODE_IP}]" ]; then
    echo "the address of member ${NODE_NODE_ENVVAR_NAME_ETCD_NAME?not set} is ${address}, that of the node ${NODE_IP}" >&2
    exit 1
  fi
done`)
	check.Resources = podtemplate.Requests("10m", "60Mi")
	check.Env = append(append([]corev1.EnvVar{}, env...), podtemplate.FieldEnv("NODE_IP", "status.podIP"))

	// etcdctl is first, so that kubectl exec uses it.
	etcdctl := podtemplate.Container("etcdctl", image)
	etcdctl.Command = []string{"/bin/bash", "-c", "trap TERM INT; sleep infinity & wait"}
	etcdctl.Resources = podtemplate.Requests("10m", "60Mi")
	etcdctl.VolumeMounts = []corev1.VolumeMount{manifests, resourceMount, certMount, data}
	etcdctl.Env = revisioned

	server := shell("etcd", image, fmt.Sprintf(`
if [ -d /var/lib/etcd/member ]; then
  ETCD_INITIAL_CLUSTER=$(discover-etcd-initial-cluster --cacert=%[1]s --cert=%[2]s.crt --key=%[2]s.key \
    --endpoints=${ALL_ETCD_ENDPOINTS} --data-dir=/var/lib/etcd \
    --target-peer-url-host=${NODE_NODE_ENVVAR_NAME_ETCD_URL_HOST} --target-name=NODE_NAME)
else
  ETCD_INITIAL_CLUSTER=%[3]s
  ETCD_INITIAL_CLUSTER_STATE=new
fi
export ETCD_INITIAL_CLUSTER ETCD_INITIAL_CLUSTER_STATE
export ETCD_NAME=${NODE_NODE_ENVVAR_NAME_ETCD_NAME}
while [ -n "$(ss -Htan '( sport = 2379 or sport = 2380 or sport = 9978 )')" ]; do sleep 1; done
env | grep ETCD | grep -v NODE
exec nice -n -19 ionice -c2 -n0 etcd \
  --logger=zap --log-level=info --feature-gates=InitialCorruptCheck=true \
  --initial-advertise-peer-urls=https://${NODE_NODE_ENVVAR_NAME_IP}:2380 \
  --cert-file=%[4]s.crt --key-file=%[4]s.key --trusted-ca-file=%[1]s --client-cert-auth=true \
  --peer-cert-file=%[2]s.crt --peer-key-file=%[2]s.key --peer-trusted-ca-file=%[1]s --peer-client-cert-auth=true \
  --advertise-client-urls=https://${NODE_NODE_ENVVAR_NAME_IP}:2379 \
  --listen-client-urls=https://%[5]s:2379 --listen-client-http-urls=https://%[5]s:2381 \
  --listen-peer-urls=https://%[5]s:2380 --metrics=extensive --listen-metrics-urls=https://%[5]s:9978`,
		serverCA, peerFile, initialCluster(all), servingFile, any))
	server.Resources = podtemplate.Requests("300m", "600Mi")
	server.VolumeMounts = []corev1.VolumeMount{manifests, resourceMount, certMount, data}
	server.Env = revisioned
	endpoint := podtemplate.Endpoint{Port: readyzPort, Scheme: corev1.URISchemeHTTPS}
	probe := func(path string, delay, timeout, period, failures int32) *corev1.Probe {
		p := endpoint.Get(path)
		p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.FailureThreshold, p.SuccessThreshold = delay, timeout, period, failures, 1
		return p
	}
	server.ReadinessProbe = probe("readyz", 0, 30, 5, 5)
	server.LivenessProbe = probe("healthz", 0, 30, 5, 5)
	server.StartupProbe = probe("readyz", 10, 1, 10, 18)

	metrics := shell("etcd-metrics", image, fmt.Sprintf(`
export ETCD_NAME=${NODE_NODE_ENVVAR_NAME_ETCD_NAME}
exec nice -n -18 etcd grpc-proxy start --endpoints https://${NODE_NODE_ENVVAR_NAME_ETCD_URL_HOST}:%[1]d \
  --metrics-addr https://%[2]s:%[3]d --listen-addr %[4]s:%[5]d --advertise-client-url "" \
  --key %[6]s.key --key-file %[7]s.key --cert %[6]s.crt --cert-file %[7]s.crt \
  --cacert %[8]s --trusted-ca-file %[9]s --tls-min-version ${ETCD_TLS_MIN_VERSION}`,
		serverPort, any, metricsPort, loopback, proxyPort, peerFile, metricsFile, serverCA, metricsCAs)+proxyCipherFlag)
	metrics.Resources = podtemplate.Requests("40m", "200Mi")
	metrics.VolumeMounts = []corev1.VolumeMount{resourceMount, certMount, data}
	metrics.Env = revisioned

	readyz := shell("etcd-readyz", operator, fmt.Sprintf(`
exec nice -n -18 cluster-etcd-operator readyz --target=https://localhost:%d --listen-port=%d \
  --serving-cert-file=%[3]s.crt --serving-key-file=%[3]s.key \
  --client-cert-file=$(ETCDCTL_CERT) --client-key-file=$(ETCDCTL_KEY) --client-cacert-file=$(ETCDCTL_CACERT) \
  --listen-tls-min-version=$(ETCD_TLS_MIN_VERSION)`, clientPort, readyzPort, servingFile)+cipherFlag)
	readyz.Ports = []corev1.ContainerPort{{Name: "readyz", ContainerPort: readyzPort, Protocol: corev1.ProtocolTCP}}
	readyz.Resources = podtemplate.Requests("10m", "50Mi")
	readyz.VolumeMounts = []corev1.VolumeMount{logs, certMount}
	readyz.Env = env

	revision := shell("etcd-rev", operator, `
exec cluster-etcd-operator rev --endpoints=$(ALL_ETCD_ENDPOINTS) \
  --client-cert-file=$(ETCDCTL_CERT) --client-key-file=$(ETCDCTL_KEY) --client-cacert-file=$(ETCDCTL_CACERT)`)
	revision.Resources = podtemplate.Requests("10m", "50Mi")
	revision.VolumeMounts = []corev1.VolumeMount{mount("data-dir", dataDir), certMount}
	revision.Env = env

	return []corev1.Container{setup, check}, []corev1.Container{etcdctl, server, metrics, readyz, revision}
}

func shell(name, image, script string) corev1.Container {
	c := podtemplate.Container(name, image)
	c.Command = []string{"/bin/sh", "-c", "#!/bin/sh\nset -euo pipefail\n" + strings.TrimPrefix(script, "\n") + "\n"}
	privileged := true
	c.SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	return c
}
