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

// AllInOneRenewal is an all-in-one node that outlives its certificates: once while it runs, and once while it is off (R-AIO-7).
var AllInOneRenewal = Method{
	Name: "all-in-one-renewal", Title: "All in one, with certificates of " + brief, command: "aiokube", Long: true,
	steps: []step{
		{"config", func(ctx context.Context, m *Machine) error { return configAllInOne(ctx, m, "--validity", brief) }},
		{"node", boot},
		{"checks", goodAtFirst},
		{"all end", outlive},
		{"all end while it is off", outliveOff},
	},
	checks: slices.Concat(allInOne, pending()),
}

// brief is how long certificates last on a node that outlives them.
const brief = "5m"

// outlive waits until every certificate that the node has now has ended, and passes the checks then.
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

// outliveOff does the same with a machine whose power is cut, and comes back when all have ended.
func outliveOff(ctx context.Context, m *Machine) error {
	last, err := m.lastEnd(ctx)
	if err != nil {
		return err
	}
	if err := m.node.PowerCut(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	if err := m.past(ctx, last); err != nil {
		return err
	}
	if err := m.node.Start(ctx); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	return renewed(ctx, m, "after-it-was-off")
}

// renewed passes the checks of a node whose first certificates have ended. A new pod proves that the bundle and the tokens which it gets are good.
func renewed(ctx context.Context, m *Machine, pod string) error {
	if err := good(ctx, m); err != nil {
		return err
	}
	if err := m.node.Put(ctx, nodemachine.File{Path: "opt/check/" + pod + ".yaml", Mode: 0o600, Content: fmt.Appendf(nil, askingPod, pod, m.Version)}); err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	for _, c := range []check{
		{"a new pod is created", client + "get pod " + pod + " 2>/dev/null || " + client + "create --filename=/opt/check/" + pod + ".yaml"},
		{"it knows the API server, and is known by its token", client + "logs " + pod + " | grep -qx system:serviceaccount:default:default"},
	} {
		if err := m.wait(ctx, c); err != nil {
			return err
		}
		m.say("  %s", c.what)
	}
	const what = "no certificate that is used has ended"
	if err := until(ctx, what, m.noneEnded); err != nil {
		return err
	}
	m.say("  %s", what)
	return nil
}

// askingPod asks the API server who it is, as any client in a pod does. Nothing on the node forwards addresses of Services, so it is in the network of the node.
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

// past waits until a time has passed.
func (m *Machine) past(ctx context.Context, last time.Time) error {
	m.say("the last certificate ends in %s", time.Until(last).Round(time.Second))
	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller says of what
	case <-time.After(time.Until(last) + time.Second):
		return nil
	}
}

// lastEnd returns when the last certificate of the node ends.
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
	m.say("%d certificates in %d files end from %s to %s", len(different), len(all), first.Format(time.TimeOnly), last.Format(time.TimeOnly))
	return last, nil
}

var errEnded = errors.New("it has ended")

// noneEnded returns an error that names the certificates that are used and have ended.
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
	// The static pods have 60 such files, and the kubelet two.
	if len(used) < 60 {
		errs = append(errs, fmt.Errorf("%w: %d files with certificates", errFew, len(used)))
	}
	return errors.Join(errs...)
}

var errFew = errors.New("there are too few")

// inUse returns the files that some program reads: not those of earlier revisions, and not what the installation was given.
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

// revisioned is a folder on the node, and a manifest of its copy.
var revisioned = regexp.MustCompile(`^/etc/kubernetes/static-pod-resources/([a-z-]+)-(\d+)/|^/var/lib/sno/rendered/manifests/[^/]*_(openshift-[^/]*)-(\d+)\.yaml$`)

func revisionOf(name string) (pod string, revision int, of bool) {
	found := revisioned.FindStringSubmatch(name)
	if found == nil {
		return "", 0, false
	}
	revision, err := strconv.Atoi(found[2] + found[4])
	return found[1] + found[3], revision, err == nil
}

// certificates returns those in the files of the node, also in kubeconfigs and Secrets.
func (m *Machine) certificates(ctx context.Context) (map[string][]*x509.Certificate, error) {
	out, err := m.node.Exec(ctx, "sh", "-c", "grep --recursive --with-filename '' /etc/kubernetes /var/lib/kubelet/kubeconfig /var/lib/kubelet/pki /var/lib/sno || true")
	if err != nil {
		return nil, err //nolint:wrapcheck // it says of what
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

// certificatesIn returns the certificates in a text, and in what it has in base64.
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
