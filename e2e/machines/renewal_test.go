// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
)

// brief is the shortest validity of certificates that sno-install accepts.
const brief = 5 * time.Minute

// All certificates of an all-in-one node expire, once while it runs and once while it is off (R-AIO-7).
var _ = Describe("All in one, with certificates of five minutes", Ordered, Label("all-in-one-renewal", suite.Long), func() {
	m := &machine{way: "all-in-one-renewal", command: aiokube, checks: everywhere(allInOne)}
	BeforeAll(m.setUp, NodeTimeout(stepTimeout))

	It("is a complete node", func(ctx SpecContext) {
		m.configAllInOne(ctx, "--validity", brief.String())
		m.boot(ctx)
		m.passChecks(ctx)
	}, SpecTimeout(2*stepTimeout))

	It("outlives all of its certificates", func(ctx SpecContext) {
		m.api.reset()
		suite.Elapse(ctx, time.Until(m.lastEnd(ctx))+time.Second)
		m.isRenewed(ctx, "after-all-ended")
		recordInstallation("All in one, no API while certificates are renewed", "%s", seconds(m.api.reset()))
	}, SpecTimeout(2*stepTimeout))

	It("outlives all of its certificates while it is off", func(ctx SpecContext) {
		last := m.lastEnd(ctx)
		Expect(m.PowerCut(ctx)).To(Succeed())
		suite.Elapse(ctx, time.Until(last)+time.Second)
		Expect(m.Start(ctx)).To(Succeed())
		m.isRenewed(ctx, "after-it-was-off")
	}, SpecTimeout(2*stepTimeout))
})

// isRenewed passes the checks of a node whose first certificates have expired. A new pod proves that its CA bundle and
// token are valid.
func (m *machine) isRenewed(ctx context.Context, pod string) {
	m.wait(ctx, m.checks...)
	put(ctx, m.Machine, "opt/check/"+pod+".yaml", 0o600, fmt.Appendf(nil, askingPod, pod, version))
	m.wait(ctx, check{"a new pod is created", client + "get pod " + pod + " 2>/dev/null || " + client + "create --filename=/opt/check/" + pod + ".yaml"},
		check{"its CA bundle and token are valid", client + "logs " + pod + " | grep -qx system:serviceaccount:default:default"})
	By("no certificate in use has expired")
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		all, err := m.certificates(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		used := inUse(all)
		g.Expect(len(used)).To(BeNumerically(">=", 60), "the static pods have 60 files with certificates, and the kubelet two")
		for name, chain := range used {
			for _, c := range chain {
				g.Expect(c.NotAfter).To(BeTemporally(">", time.Now()), "%s: %s", name, c.Subject)
			}
		}
	}).Should(Succeed())
}

// askingPod reviews its own identity. It is in the host's network, because nothing on the node forwards addresses of
// Services.
const askingPod = `apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  hostNetwork: true
  restartPolicy: OnFailure
  containers:
  - name: ask
    image: registry.k8s.io/kube-scheduler:%s
    command: [/program/kubectl, auth, whoami, "-o=jsonpath={.status.userInfo.username}"]
    env: [{name: KUBERNETES_SERVICE_HOST, value: localhost}, {name: KUBERNETES_SERVICE_PORT, value: "6443"}]
    volumeMounts: [{name: program, mountPath: /program/kubectl}]
  volumes: [{name: program, hostPath: {path: /usr/bin/kubectl, type: File}}]
`

// lastEnd returns when the last of the node's certificates expires.
func (m *machine) lastEnd(ctx context.Context) time.Time {
	all := suite.Must(m.certificates(ctx))
	different := map[[sha256.Size]byte]bool{}
	var last time.Time
	for _, chain := range all {
		for _, c := range chain {
			different[sha256.Sum256(c.Raw)] = true
			if c.NotAfter.After(last) {
				last = c.NotAfter
			}
		}
	}
	By(fmt.Sprintf("waiting until the last of %d certificates in %d files has expired, in %s", len(different), len(all), time.Until(last).Round(time.Second)))
	return last
}

// inUse returns the files that programs read: without earlier revisions and inputs of the installation.
func inUse(all map[string][]*x509.Certificate) map[string][]*x509.Certificate {
	latest := map[string]int{}
	for name := range all {
		if pod, revision, of := revisionOf(name); of {
			latest[pod] = max(latest[pod], revision)
		}
	}
	used := map[string][]*x509.Certificate{}
	for name, chain := range all {
		pod, revision, of := revisionOf(name)
		switch {
		case of && revision < latest[pod]:
		case strings.HasPrefix(name, "/var/lib/sno/manifests/"), strings.HasPrefix(name, "/var/lib/sno/rendered/input/"):
		case strings.HasPrefix(name, "/var/lib/kubelet/pki/") && !strings.HasSuffix(name, "-current.pem"):
		default:
			used[name] = chain
		}
	}
	return used
}

// revisioned matches a folder on the node, and a manifest with a copy of it.
var revisioned = regexp.MustCompile(`^/etc/kubernetes/static-pod-resources/([a-z-]+)-(\d+)/|^/var/lib/sno/rendered/manifests/[^/]*_(openshift-[^/]*)-(\d+)\.yaml$`)

func revisionOf(name string) (pod string, revision int, of bool) {
	found := revisioned.FindStringSubmatch(name)
	if found == nil {
		return "", 0, false
	}
	revision, err := strconv.Atoi(found[2] + found[4])
	return found[1] + found[3], revision, err == nil
}

// certificates returns those of the node's files.
func (m *machine) certificates(ctx context.Context) (map[string][]*x509.Certificate, error) {
	out, err := m.Exec(ctx, "sh", "-c", "grep --recursive --with-filename '' /etc/kubernetes /var/lib/kubelet/kubeconfig /var/lib/kubelet/pki /var/lib/sno || true")
	if err != nil {
		return nil, err
	}
	texts := map[string]*strings.Builder{}
	for line := range strings.Lines(out) {
		name, text, _ := strings.Cut(line, ":")
		if texts[name] == nil {
			texts[name] = &strings.Builder{}
		}
		texts[name].WriteString(text)
	}
	all := map[string][]*x509.Certificate{}
	for name, text := range texts {
		if found := certificatesIn([]byte(text.String())); len(found) > 0 {
			all[path.Clean(name)] = found
		}
	}
	return all, nil
}

var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{200,}={0,2}`)

// certificatesIn returns the certificates of a text, also in base64.
func certificatesIn(text []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for _, inside := range encoded.FindAll(text, -1) {
		if decoded, err := base64.StdEncoding.DecodeString(string(inside)); err == nil {
			found = append(found, certificatesIn(decoded)...)
		}
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, c)
		}
	}
	return found
}
