// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solonode/sno/testcluster/nodemachine"
)

// AllInOneRenewal is an all-in-one node whose certificates all expire, once while it runs and once while it is off
// (R-AIO-7).
var AllInOneRenewal = Method{
	Name: "all-in-one-renewal", Title: "All in one, with certificates of " + brief, command: "aiokube", Long: true,
	steps: []step{
		{"config", func(ctx context.Context, m *Machine) error { return configAllInOne(ctx, m, "--validity", brief) }},
		{"node", boot},
		{"checks", passFirstChecks},
		{"all end", outlive},
		{"all end while it is off", outliveOff},
	},
	checks: slices.Concat(allInOne, pending()),
}

const brief = "5m"

// outlive waits until all current certificates have expired, and passes the checks.
func outlive(ctx context.Context, m *Machine) error {
	last, err := m.lastEnd(ctx)
	if err != nil {
		return err
	}
	m.api.reset()
	if err := m.past(ctx, last); err != nil {
		return err
	}
	if err := renewed(ctx, m, "after-all-ended"); err != nil {
		return err
	}
	m.report.Renewal = m.api.reset()
	return nil
}

// outliveOff is outlive with the machine off until the certificates have expired.
func outliveOff(ctx context.Context, m *Machine) error {
	last, err := m.lastEnd(ctx)
	if err != nil {
		return err
	}
	if err := m.node.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := m.past(ctx, last); err != nil {
		return err
	}
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return renewed(ctx, m, "after-it-was-off")
}

// renewed passes the checks of a node whose first certificates have expired. A new pod proves that its CA bundle and
// token are valid.
func renewed(ctx context.Context, m *Machine, pod string) error {
	if err := passChecks(ctx, m); err != nil {
		return err
	}
	if err := m.node.Put(ctx, nodemachine.File{Path: "opt/check/" + pod + ".yaml", Mode: 0o600, Content: fmt.Appendf(nil, askingPod, pod, m.Version)}); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	for _, c := range []check{
		{"a new pod is created", client + "get pod " + pod + " 2>/dev/null || " + client + "create --filename=/opt/check/" + pod + ".yaml"},
		{"its CA bundle and token are valid", client + "logs " + pod + " | grep -qx system:serviceaccount:default:default"},
	} {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.logf("  %s", c.what)
	}
	const what = "no certificate in use has expired"
	if err := until(ctx, what, m.noneEnded); err != nil {
		return err
	}
	m.logf("  %s", what)
	return nil
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

func (m *Machine) past(ctx context.Context, last time.Time) error {
	m.logf("the last certificate expires in %s", time.Until(last).Round(time.Second))
	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller wraps it
	case <-time.After(time.Until(last) + time.Second):
		return nil
	}
}

func (m *Machine) lastEnd(ctx context.Context) (time.Time, error) {
	all, err := m.certificates(ctx)
	if err != nil {
		return time.Time{}, err
	}
	different := map[[sha256.Size]byte]bool{}
	var first, last time.Time
	for _, chain := range all {
		for _, c := range chain {
			different[sha256.Sum256(c.Raw)] = true
			if first.IsZero() || c.NotAfter.Before(first) {
				first = c.NotAfter
			}
			if c.NotAfter.After(last) {
				last = c.NotAfter
			}
		}
	}
	m.logf("%d certificates in %d files expire from %s to %s", len(different), len(all), first.Format(time.TimeOnly), last.Format(time.TimeOnly))
	return last, nil
}

var errEnded = errors.New("expired")

func (m *Machine) noneEnded(ctx context.Context) error {
	all, err := m.certificates(ctx)
	if err != nil {
		return err
	}
	used := inUse(all)
	var errs []error
	for name, chain := range used {
		for _, c := range chain {
			if time.Now().After(c.NotAfter) {
				errs = append(errs, fmt.Errorf("%s: %s: %w at %s", name, c.Subject, errEnded, c.NotAfter.Format(time.TimeOnly)))
			}
		}
	}
	// The static pods have 60 such files and the kubelet two.
	if len(used) < 60 {
		errs = append(errs, fmt.Errorf("%w: %d files with certificates, want 60", errFew, len(used)))
	}
	return errors.Join(errs...)
}

var errFew = errors.New("too few certificates")

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

func (m *Machine) certificates(ctx context.Context) (map[string][]*x509.Certificate, error) {
	out, err := m.node.Exec(ctx, "sh", "-c", "grep --recursive --with-filename '' /etc/kubernetes /var/lib/kubelet/kubeconfig /var/lib/kubelet/pki /var/lib/sno || true")
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
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
