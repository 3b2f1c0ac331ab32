// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/audit"
)

const (
	etcdSocketFile = "etcd.sock"
	auditLogFile   = "audit.log"
	auditPolicy    = "audit-policy.yaml"
	stagesFile     = "stages.yaml"
	serviceNetwork = "10.96.0.0/16"
	podNetwork     = "10.128.0.0/14"
	loopback       = "127.0.0.1"
)

// serviceIP is the first address of serviceNetwork, which the kubernetes Service gets.
var serviceIP = net.IPv4(10, 96, 0, 1)

func (c *Cluster) etcdSocket() string { return "unix://" + filepath.Join(c.dir, etcdSocketFile) }

func (c *Cluster) etcdArguments() []string {
	// etcd requires addresses for peers and clients. There are no peers, so nothing listens on this one.
	const peer = "http://localhost:1"
	listen, advertise := c.etcdSocket(), peer
	if c.etcdURL != "" {
		listen, advertise = listen+","+c.etcdURL, c.etcdURL
	}
	return []string{
		"--name=sno",
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + listen,
		"--advertise-client-urls=" + advertise,
		"--listen-peer-urls=unix://" + filepath.Join(c.dir, "peer.sock"),
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=sno=" + peer,
		// The data need not survive a crash of the machine. They survive a kill of the process.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=" + strconv.Itoa(4<<30),
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArguments(port int) []string {
	pki := func(name string) string { return filepath.Join(c.dir, pkiDir, name) }
	return []string{
		"--etcd-servers=" + c.etcdSocket(),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		// The endpoints of the kubernetes Service must not be a loopback address, and no client uses them.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--tls-cert-file=" + pki(servingName+".crt"),
		"--tls-private-key-file=" + pki(servingName+".key"),
		"--client-ca-file=" + pki(caName+".crt"),
		"--requestheader-client-ca-file=" + pki(frontProxyCAName+".crt"),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki(frontProxyName+".crt"),
		"--proxy-client-key-file=" + pki(frontProxyName+".key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki(serviceAccountName+".key"),
		"--service-account-signing-key-file=" + pki(serviceAccountName+".key"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--audit-policy-file=" + filepath.Join(c.dir, auditPolicy),
		"--audit-log-path=" + filepath.Join(c.dir, auditLogFile),
		"--audit-log-maxsize=0", // never rotated: tests count all writes
	}
}

func (c *Cluster) controllerManagerArguments() []string {
	pki := func(name string) string { return filepath.Join(c.dir, pkiDir, name) }
	return []string{
		"--kubeconfig=" + c.componentKubeconfigPath(ControllerManager),
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials=true",
		"--root-ca-file=" + pki(caName+".crt"),
		"--service-account-private-key-file=" + pki(serviceAccountName+".key"),
		"--cluster-signing-cert-file=" + pki(caName+".crt"),
		"--cluster-signing-key-file=" + pki(caName+".key"),
		// Late heartbeats after an outage of the API server would make pods permanently not Ready: simulated kubelets do not
		// set it again.
		"--node-monitor-grace-period=10m",
		// Client-side limits of 20 requests a second would take minutes for large clusters.
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
}

func (c *Cluster) schedulerArguments() []string {
	return []string{
		"--kubeconfig=" + c.componentKubeconfigPath(Scheduler),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// The scheduler of 1.35 does not retry a pod when the one is deleted whose anti-affinity excludes it (U-TOP-16), but
		// every 30 s those that have waited longer than this.
		"--pod-max-in-unschedulable-pods-duration=1s",
	}
}

func (c *Cluster) kubeletsArguments() []string {
	return []string{
		"--kubeconfig=" + c.componentKubeconfigPath(Kubelets),
		"--config=" + filepath.Join(c.dir, stagesFile),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--cidr=" + podNetwork,
	}
}

// writeAuditPolicy configures an event for every answered request, without bodies, and also one for the beginning of
// each write.
func writeAuditPolicy(dir string) error {
	policy := auditv1.Policy{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		Rules: []auditv1.PolicyRule{
			{Level: auditv1.LevelMetadata, Verbs: sets.List(audit.WriteVerbs)},
			{Level: auditv1.LevelMetadata, OmitStages: []auditv1.Stage{auditv1.StageRequestReceived}},
		},
	}
	content, err := yaml.Marshal(policy)
	if err != nil {
		return fmt.Errorf("encode the audit policy: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, auditPolicy), content, 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return nil
}

// writeStages writes kwok's stages into one file. Those of nodes are changed to skip a node with notReadyAnnotation;
// they would make it Ready again at once.
func writeStages(dir string, assets assets.Assets) error {
	files, err := assets.Stages()
	if err != nil {
		return err
	}
	var all []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a simulation stage: %w", err)
		}
		var stage map[string]any
		if err := yaml.Unmarshal(content, &stage); err != nil {
			return fmt.Errorf("parse simulation stage %s: %w", file, err)
		}
		if err := exceptNotReady(stage); err != nil {
			return fmt.Errorf("simulation stage %s: %w", file, err)
		}
		encoded, err := json.Marshal(stage)
		if err != nil {
			return fmt.Errorf("encode simulation stage %s: %w", file, err)
		}
		all = append(append(all, "---\n"...), append(encoded, '\n')...)
	}
	if err := os.WriteFile(filepath.Join(dir, stagesFile), all, 0o600); err != nil {
		return fmt.Errorf("write the simulation stages: %w", err)
	}
	return nil
}
