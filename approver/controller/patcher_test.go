package controller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
)

func anyRequest(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "anybody"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// Where there is no configuration, one is made, the stock approver is restarted once, and both are undone.
func TestNodeClientOff(t *testing.T) {
	c := install(t)
	before := c.deployment().Generation
	l := c.looker(approver.NodeClientOff)
	l.want(l.settle(), patch.InForce, "AsExpected")
	if text, _ := c.text(); !strings.Contains(text, "nodeClientCert: {disabled: true}") {
		t.Errorf("the configuration is %q", text)
	}
	d := c.deployment()
	if d.Generation != before+1 || d.Spec.Template.Annotations[editAnnotation] == "" || *d.Spec.Replicas != 1 {
		t.Errorf("generation %d, was %d; annotations %v", d.Generation, before, d.Spec.Template.Annotations)
	}
	if len(c.version().Spec.Overrides) != 1 {
		t.Errorf("overrides %v: the cluster could not be upgraded", c.version().Spec.Overrides)
	}
	l.atRest()
	// A restart of the controller is none of the stock approver.
	l = c.looker(approver.NodeClientOff)
	l.atRest()

	c.flip(ha)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	if c.config() != nil {
		t.Error("the configuration that was made is still there")
	}
	c.must(c.untouched())
	if got := c.deployment().Generation; got != d.Generation+1 {
		t.Errorf("generation %d, was %d: it has to be restarted, once, to read that", got, d.Generation)
	}
	l.atRest()
}

const persons = "# Who approves what. Ask Ada before you change this.\nfutureSetting: [1, 2] # from the next release\nnodeClientCert:\n  # kept for the audit\n  note: \"see #42\"\n"

// A person's configuration keeps everything: comments, unknown keys, order, and what is changed later.
func TestConfigurationOfAPerson(t *testing.T) {
	c := install(t)
	c.configure(persons)
	l := c.looker(approver.NodeClientOff)
	l.want(l.settle(), patch.InForce, "AsExpected")
	text, _ := c.text()
	if disabled, err := approver.NodeClientDisabled(text); !disabled || err != nil {
		t.Errorf("it is not disabled: %v\n%s", err, text)
	}
	for line := range strings.Lines(persons) {
		if !strings.Contains(text, line) {
			t.Errorf("a line is gone: %q", line)
		}
	}
	l.atRest()

	generation := c.deployment().Generation
	c.edit(configObject, "kubectl-edit", fmt.Sprintf(`{"data":{"config.yaml":%q,"other":"x"}}`, text+"later: true\n"))
	l.want(l.settle(), patch.InForce, "AsExpected")
	if c.deployment().Generation != generation {
		t.Error("somebody else's change restarted the stock approver")
	}
	l.atRest()

	c.edit(deploymentObject, "kubectl-annotate", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"approver"}}}`)
	l.want(l.settle(), patch.OptedOut, "OptedOut")
	if text, _ := c.text(); text != persons+"later: true\n" || c.config().Data["other"] != "x" {
		t.Errorf("it is not as it was:\n%s", text)
	}
	c.must(c.untouched())
	l.atRest()
}

// What a person disabled before needs no restart, and what a person enables is theirs.
func TestDecidedByAPerson(t *testing.T) {
	c := install(t)
	c.configure("nodeClientCert:\n  disabled: true\n")
	l := c.looker(approver.NodeClientOff)
	c.server.NoWrites(t, ourUser, func() { l.want(l.settle(), patch.InForce, "AsExpected") })

	c.edit(configObject, "kubectl-edit", `{"data":{"config.yaml":"nodeClientCert:\n  disabled: false\n"}}`)
	c.server.NoWrites(t, ourUser, func() { l.want(l.settle(), patch.Blocked, "FieldOwnedByOther") })
	c.edit(configObject, "kubectl-edit", `{"data":{"config.yaml":"nodeClientCert: ["}}`)
	c.server.NoWrites(t, ourUser, func() { l.want(l.settle(), patch.Failed, "Invalid") })
}

// Who takes the line out is not fought.
func TestReverted(t *testing.T) {
	c := install(t)
	c.configure(persons)
	l := c.looker(approver.NodeClientOff)
	l.settle()
	c.edit(configObject, "kubectl-edit", fmt.Sprintf(`{"data":{"config.yaml":%q}}`, persons))
	c.server.NoWrites(t, ourUser, func() { l.want(l.settle(), patch.Reverted, "Reverted") })
	c.edit(configObject, "kubectl-annotate", `{"metadata":{"annotations":{"`+editAnnotation+`":null}}}`)
	generation := c.deployment().Generation
	l.want(l.settle(), patch.InForce, "AsExpected")
	if c.deployment().Generation != generation+1 {
		t.Error("the stock approver was not restarted to read the line that is back")
	}
}

// Off keeps the cluster-version-operator away before anything is scaled, and gives everything back in the other order.
func TestOff(t *testing.T) {
	c := install(t)
	l := c.looker(approver.Off)
	c.server.WritesDuring(t, ourUser, func() { l.want(l.look(), patch.Progressing, "TakingOver") })
	if *c.deployment().Spec.Replicas != 1 {
		t.Error("it was scaled before the cluster-version-operator has let go")
	}
	l.want(l.settle(), patch.InForce, "AsExpected")
	if *c.deployment().Spec.Replicas != 0 || len(c.version().Spec.Overrides) != 2 || c.config() != nil {
		t.Errorf("%d replicas, overrides %v", *c.deployment().Spec.Replicas, c.version().Spec.Overrides)
	}
	c.reconcile()
	l.atRest()
	for _, undo := range []func(){
		func() { c.flip(ha) },
		func() {
			c.edit(versionObject, "kubectl-annotate", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
		},
	} {
		undo()
		l.settle()
		c.must(c.untouched())
		l.atRest()
		c.flip(sr)
		c.edit(versionObject, "kubectl-annotate", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`)
		l.want(l.settle(), patch.InForce, "AsExpected")
	}
}

// From one mode to the other nothing is approved in between.
func TestModeChanges(t *testing.T) {
	c := install(t)
	c.configure(persons)
	closed := func() error {
		text, _ := c.text()
		if disabled, _ := approver.NodeClientDisabled(text); !disabled && *c.deployment().Spec.Replicas > 0 {
			return fmt.Errorf("the stock approver runs with\n%s", text)
		}
		return nil
	}
	c.looker(approver.NodeClientOff).settle()
	for _, mode := range []approver.Mode{approver.Off, approver.NodeClientOff, approver.Off} {
		l := c.looker(mode)
		l.fuse.Before(func(*http.Request) {
			if err := closed(); err != nil {
				t.Errorf("on the way to %s: %v", mode, err)
			}
		})
		l.want(l.settle(), patch.InForce, "AsExpected")
		c.must(closed())
	}
	if text, _ := c.text(); text != persons {
		t.Errorf("a configuration that nobody reads is still ours:\n%s", text)
	}
}

// Machines of either kind are a second source, at whatever time they come.
func TestMachines(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff)
	l.want(l.settle(), patch.InForce, "AsExpected")
	groups := []string{"machine.openshift.io", "cluster.x-k8s.io"}
	if testing.Short() {
		groups = groups[:1] // to define a kind takes long
	}
	for _, group := range groups {
		c.serve(group)
		l = c.looker(approver.NodeClientOff)
		l.want(l.settle(), patch.InForce, "AsExpected") // the kind alone is no Machine
		machine := object(group+"/v1beta1", "Machine", "default")
		machine.SetName("worker-1")
		c.must(c.admin.Create(t.Context(), machine))
		l.want(l.settle(), patch.NotNeeded, "NotNeeded")
		c.must(c.untouched())
		c.must(c.admin.Delete(t.Context(), machine))
		l.want(l.settle(), patch.InForce, "AsExpected")
	}
	// The RESTMapper still knows a kind that is not served any more.
	c.unserve(groups[0])
	l.want(l.settle(), patch.InForce, "AsExpected")
}

// To find out that a kind is not served is costly, so it is not asked again before the next look that comes by itself.
func TestMachinesNotServed(t *testing.T) {
	c := install(t)
	group := machineKinds[0].Group
	c.serve(group)
	m := &lateMapper{}
	l := c.looker(approver.NodeClientOff, func(p *patcher) { m.RESTMapper, p.mapper = p.mapper, m })
	l.want(l.settle(), patch.InForce, "AsExpected")
	if m.asked != len(machineKinds) {
		t.Errorf("%d kinds are looked for %d times within a minute", len(machineKinds), m.asked)
	}
	machine := object(group+"/v1beta1", "Machine", "default")
	machine.SetName("worker-1")
	c.must(c.admin.Create(t.Context(), machine))
	m.served = true
	l.later(l.patcher.every - time.Second)
	l.want(l.settle(), patch.InForce, "AsExpected")
	l.later(time.Second)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	c.must(c.untouched())
	c.must(c.admin.Delete(t.Context(), machine))
	l.want(l.settle(), patch.InForce, "AsExpected")
}

// lateMapper is that of an API server that does not serve any kind at first.
type lateMapper struct {
	meta.RESTMapper
	asked  int
	served bool
}

func (m *lateMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	if !m.served {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// A dry run asks for the first step and writes nothing.
func TestDryRun(t *testing.T) {
	c := install(t)
	c.configure(persons)
	for _, mode := range approver.Modes() {
		l := c.looker(mode, func(p *patcher) {
			p.writer.dryRun, p.writer.deployment.DryRun, p.writer.version.DryRun = true, true, true
		})
		l.want(l.look(), patch.WouldChange, "DryRun")
		c.must(c.untouched())
	}
	c.looker(approver.NodeClientOff).settle()
	c.flip(ha)
	l := c.looker(approver.NodeClientOff, func(p *patcher) { p.writer.dryRun, p.writer.deployment.DryRun = true, true })
	l.want(l.look(), patch.WouldChange, "DryRun")
	if text, _ := c.text(); text == persons {
		t.Error("a dry run wrote")
	}
}

// Somebody writes between the read and the write: it is read and decided on again.
func TestRace(t *testing.T) {
	c := install(t)
	c.configure(persons)
	l := c.looker(approver.NodeClientOff)
	raced := false
	l.fuse.Before(func(r *http.Request) {
		if r.Method != http.MethodGet && !raced {
			raced = true
			c.edit(configObject, "kubectl-edit", fmt.Sprintf(`{"data":{"config.yaml":%q}}`, persons+"later: true\n"))
		}
	})
	l.want(l.settle(), patch.InForce, "AsExpected")
	if text, _ := c.text(); !strings.HasSuffix(text, "later: true\n") || !raced {
		t.Errorf("what a person wrote meanwhile is gone:\n%s", text)
	}
}
