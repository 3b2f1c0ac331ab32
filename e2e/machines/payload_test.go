// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// A machine of profile openshift. Podman, the operators' programs and the tools of CoreOS are stand-ins; what the renders
// write was recorded from the real ones. CRI-O, kubelet and the programs of the control plane are real.
var _ = Describe("Bootstrap in place, from a release payload", Ordered, Label("in-place-payload"), func() {
	m := &machine{way: "in-place-payload", command: postReboot, runtime: "crio", checks: everywhere(installed, ofOperators, runtimeIs("cri-o"))}
	BeforeAll(func(ctx SpecContext) { m.setUpPayload(ctx) }, NodeTimeout(stepTimeout))

	It("has a config that names nothing but the release image", func(ctx SpecContext) { m.configPayload(ctx) }, SpecTimeout(stepTimeout))

	It("renders, starts the release's own control plane, applies all manifests and writes the disk in the live system", func(ctx SpecContext) {
		m.bootLive(ctx)
		Expect(m.phases).NotTo(BeEmpty())
		text := suite.Must(m.ExecOnDisk(ctx, "cat boot/ignition/config.ign"))
		for _, file := range []string{"/etc/kubernetes/manifests/kube-apiserver-pod.yaml", "/etc/kubernetes/static-pod-resources/etcd-member/ca.crt",
			"/var/lib/sno-install/etcd-snapshot.db", "/etc/kubernetes/bootstrap-configs/bootstrap-in-place.json", "/etc/kubernetes/kubelet-ca.crt"} {
			Expect(text).To(ContainSubstring(`"` + file + `"`))
		}
	}, SpecTimeout(stepTimeout))

	It("boots a node from the disk, which ends the installation when the operators have replaced the static pods", func(ctx SpecContext) {
		m.boot(ctx, func(ctx context.Context) { put(ctx, m.Machine, versionFile, 0o644, m.read("version")) }, m.replacePods)
	}, SpecTimeout(stepTimeout))

	It("is a complete node", m.passChecks, SpecTimeout(stepTimeout))
	m.inspection()
})

var _ = Describe("Bootstrap in place, from a release payload, with power cuts", Ordered, Label("in-place-payload-cuts", suite.Long), func() {
	m := &machine{way: "in-place-payload-cuts", runtime: "crio"}
	BeforeAll(func(ctx SpecContext) { m.setUpPayload(ctx) }, NodeTimeout(stepTimeout))

	// The live system of the test outlives a power cut, unlike one in memory: what a cut leaves must not be trusted.
	It("has a disk that is not bootable, or complete, after every power cut, and a later boot continues with whole renders", func(ctx SpecContext) {
		m.configPayload(ctx)
		m.bootLive(ctx) // to measure how long it runs
		Expect(m.WipeDisk(ctx)).To(Succeed())
		m.cutAtPoints(2, m.uptime, func(at time.Duration) (ran, after string) {
			return m.cutPayload(ctx, func(*nodemachine.Machine) { suite.Elapse(ctx, at) })
		})
		By("cutting while the fifth render runs: no random point may be in the renders")
		_, after := m.cutPayload(ctx, func(live *nodemachine.Machine) {
			execute(ctx, live, "until [ -e /opt/payload/calls ] && [ $(wc --lines </opt/payload/calls) -ge 9 ]; do :; done")
		})
		AddReportEntry("power cut in a render: " + after)
		Expect(after).To(HavePrefix(notBootable))
		Expect(after).To(MatchRegexp("after [4-9] of 12"))
		m.bootLive(ctx)
	}, cutsTimeout())
})

// cutPayload cuts the power of a live system when that function returns, and turns it on again if the disk is not
// complete: it has to continue with the renders that were done, and complete the disk.
func (m *machine) cutPayload(ctx context.Context, when func(*nodemachine.Machine)) (ran, after string) {
	live := m.makeLive(ctx, liveConfig)
	Expect(live.PowerOn(ctx)).To(Succeed())
	when(live)
	ran = running(ctx, live, bootstrapInPlace)
	Expect(live.PowerCut(ctx)).To(Succeed())
	if after = m.diskState(ctx); after == complete {
		return ran, after
	}
	before, accepted := rendersOf(ctx, live), 0
	Expect(live.PowerOn(ctx)).To(Succeed())
	Expect(live.WaitPoweredOff(ctx)).To(Succeed(), "the live system restarts the machine")
	Expect(m.diskState(ctx)).To(Equal(complete))
	now := rendersOf(ctx, live)
	for name, r := range before {
		if r.Sum != "" {
			Expect(now).To(HaveKeyWithValue(name, r), "a render that was done")
			accepted++
		}
	}
	Expect(now).To(And(HaveLen(12), HaveEach(HaveField("Sum", Not(BeEmpty())))))
	return ran, fmt.Sprintf("%s, and continues after %d of 12 renders", after, accepted)
}

// recordedOutputs returns the folder with outputs of real renders, beside the repository.
func recordedOutputs(ctx context.Context) string {
	return filepath.Join(suite.Must(programs.Root(ctx)), "../shared/payload")
}

// setUpPayload skips what has no images or no recorded outputs here.
func (m *machine) setUpPayload(ctx context.Context) {
	switch _, err := os.Stat(recordedOutputs(ctx)); {
	case err != nil:
		Skip("the outputs of real renders are not there: " + err.Error())
	case !strings.HasPrefix(image, "sno/node:"):
		Skip("CRI-O is only in an image that was built here, not in " + image)
	}
	m.setUp(ctx)
}

// configPayload makes the machine, its release payload and its config.
func (m *machine) configPayload(ctx context.Context) {
	m.create(ctx, m.medium("firmware", ""))
	Expect(m.WipeDisk(ctx)).To(Succeed())
	m.serveMirror(ctx)
	release := m.pushPayload(ctx)
	const standIns = "[Service]\nEnvironment=PATH=/opt/payload/bin:/opt/machine/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
	m.write(map[string]string{
		"live/units/node-image.service.d/10-machine.conf": standIns + fmt.Sprintf(fetchStandIns, strings.TrimSuffix(m.program, "/sno-install")),
		"live/units/bootkube.service.d/20-payload.conf":   standIns,
		// A live system that has the packages of OpenShift. Nothing labels its files.
		"live/files/opt/machine/bin/rpm":      "#!/bin/sh\n",
		"live/files/opt/machine/bin/semodule": "#!/bin/sh\n",
		"extra/files/" + networkConfigFile:    fmt.Sprintf(networkConfig, podsOfNode), // the network operator's
	})
	m.snoInstall(ctx, "create", "single-node-ignition-config", "--dir", "sno", "--release-image", release, "--program", m.program, "--extra", "extra", "--extra-live", "live")
}

// fetchStandIns fetches podman with what the payload contains. It replaces commands that want a system of CoreOS.
const fetchStandIns = `ExecStartPre=
ExecStartPre=/usr/bin/install -D -m 0755 /usr/local/bin/sno-install /run/sno-install/add-node-image
ExecStartPre=/bin/sh -ec 'test -e /opt/payload || { rm -rf /opt/payload.part; mkdir -p /opt/payload.part/bin; cd /opt/payload.part; \
  curl --silent --fail %[1]s/payload.tar | tar --extract; curl --silent --fail --output bin/podman %[1]s/podman; chmod 755 bin/podman; sync; mv /opt/payload.part /opt/payload; }'
`

// pushPayload pushes the images that are run, serves the payload's files to podman, and returns the release image.
func (m *machine) pushPayload(ctx context.Context) (release string) {
	bin := suite.Must(assets.Ensure(ctx, GinkgoWriter)).Dir
	standIn := suite.Must(programs.Build(ctx, programs.ReleasePayload, GinkgoWriter))
	programsOf := func(named ...string) map[string]string {
		files := map[string]string{}
		for _, name := range named {
			from := filepath.Join(bin, name)
			if _, err := os.Stat(from); err != nil {
				from = standIn
			}
			files["usr/bin/"+name] = from
		}
		return files
	}
	recorded := recordedOutputs(ctx)
	metadata := filepath.Join(recorded, "inputs/release-metadata.json")
	definitions := map[string]string{"release-manifests/release-metadata": metadata}
	for _, file := range releaseDefinitions(ctx, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "machine-config") {
		definitions["release-manifests/definitions/"+filepath.Base(file)] = file
	}
	shell := m.shellLayer(ctx)
	const registry, tagged = "registry.invalid/sno/", ":test"
	names := m.push(ctx,
		images.Image{Name: registry + "etcd" + tagged, Files: programsOf("etcd"), Tar: shell},
		images.Image{Name: registry + "hyperkube" + tagged, Files: programsOf("hyperkube", "kube-apiserver", "kube-controller-manager", "kube-scheduler"), Tar: shell},
		images.Image{Name: registry + "cluster-kube-apiserver-operator" + tagged, Files: programsOf("cluster-kube-apiserver-operator")},
		images.Image{Name: registry + "cluster-policy-controller" + tagged, Files: programsOf("cluster-policy-controller")},
		images.Image{Name: registry + "machine-config-operator" + tagged, Files: programsOf("machine-config-controller", "machine-config-server")},
		images.Image{Name: registry + "pod" + tagged, Files: map[string]string{"usr/bin/pod": suite.Must(programs.Build(ctx, programs.Pause, GinkgoWriter))}, Entrypoint: []string{"/usr/bin/pod"}},
		images.Image{Name: registry + "cluster-version-operator" + tagged, Files: programsOf("cluster-version-operator"), Data: definitions, Entrypoint: []string{"/usr/bin/cluster-version-operator"}},
	)
	release = names[len(names)-1]

	// The other images are only rendered with.
	var stream map[string]any
	Expect(json.Unmarshal(suite.Must(os.ReadFile(filepath.Join(recorded, "inputs/image-references.json"))), &stream)).To(Succeed())
	tags := stream["spec"].(map[string]any)["tags"].([]any)
	for i, tag := range tags {
		name := tag.(map[string]any)["name"].(string)
		from := fmt.Sprintf("%s%s@sha256:%064d", registry, name, i)
		if at := slices.IndexFunc(names, func(image string) bool { return strings.HasPrefix(image, registry+name+"@") }); at >= 0 {
			from = names[at]
		}
		tag.(map[string]any)["from"] = map[string]any{"kind": "DockerImage", "name": from}
		if name == "hyperkube" {
			tag.(map[string]any)["annotations"] = map[string]any{"io.openshift.build.versions": "kubernetes=" + strings.TrimPrefix(version, "v")}
		}
	}
	m.write(map[string]string{
		"payload/image-references": string(suite.Must(json.Marshal(stream))), "payload/release-metadata": string(suite.Must(os.ReadFile(metadata))), "served/podman": "",
	})
	Expect(os.CopyFS(m.path("payload/recorded"), os.DirFS(recorded))).To(Succeed())
	said, err := exec.CommandContext(ctx, "tar", "--create", "--file", m.path("served/payload.tar"), "--directory", m.path("payload"), ".").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
	Expect(os.WriteFile(m.path("served/podman"), suite.Must(os.ReadFile(standIn)), 0o755)).To(Succeed())
	return release
}

// shellLayer returns a layer with the shell of the static pods, which the machines' image has.
func (m *machine) shellLayer(ctx context.Context) string {
	Expect(os.MkdirAll(m.path("images"), 0o755)).To(Succeed())
	layer := suite.Must(os.Create(m.path("images/shell.tar")))
	command := suite.Must(engine.Find(ctx)).Command(ctx, "run", "--rm", "--network", "none", "--entrypoint", "/bin/bash", image, "-ec", `ln -sf bash /bin/sh
programs="/bin/sh /bin/bash /bin/chmod /bin/touch /bin/sleep"
{ echo $programs; ldd $programs; } | tr -s ' \t' '\n' | grep '^/[^:]*$' | sort -u |
	tar --create --dereference --absolute-names --transform='s,^/,,' --files-from=-`)
	command.Stdout, command.Stderr = layer, GinkgoWriter
	Expect(command.Run()).To(Succeed())
	Expect(layer.Close()).To(Succeed())
	return layer.Name()
}

// operatorRender is what the disk of a live system has of a render: how often it began, and the sum of its accepted output.
type operatorRender struct {
	Began int
	Sum   string
}

// rendersOf returns the renders of a live system that is off. One is accepted only after its end.
func rendersOf(ctx context.Context, live *nodemachine.Machine) map[string]operatorRender {
	GinkgoHelper()
	out := suite.Must(live.ExecOnDisk(ctx, `cd opt 2>/dev/null || exit 0
cat payload/calls 2>/dev/null || true
cd openshift 2>/dev/null || exit 0
for output in *-bootstrap ingress-operator-manifests; do
	if [ -d "$output" ]; then echo "sum $output $(find "$output" -type f | sort | xargs --no-run-if-empty sha256sum | sha256sum | cut -c1-64)"; fi
done`))
	all, ended := map[string]operatorRender{}, map[string]bool{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		r := all[words[1]]
		switch words[0] {
		case "begin":
			r.Began++
		case "end":
			ended[words[1]] = true
		case "sum":
			r.Sum = words[2]
			Expect(ended).To(HaveKey(words[1]), "a render whose output was accepted")
		}
		all[words[1]] = r
	}
	return all
}

// ofOperators holds when the operators have replaced the static pods of the bootstrap phase.
var ofOperators = []check{
	{"the release is complete", `test "$(` + client + `get clusterversion version -o jsonpath='{.status.history[*].state}')" = Completed`},
	{"an object from the live system has the same version", `test "$(` + client + `get configmap site --namespace=default -o jsonpath='{.metadata.resourceVersion}')" = ` +
		`"$(cat /` + versionFile + `)"`},
}

// replacePods is what the operators of a release do on a node: service-ca makes what the cluster-version operator
// mounts; the node gets its roles; and an installer writes revision 2 of each static pod, with the files of the bootstrap
// phase in folders of its own.
func (m *machine) replacePods(ctx context.Context) {
	const kubectl = "kubectl --kubeconfig=/etc/kubernetes/bootstrap-secrets/kubeconfig "
	m.wait(ctx,
		check{"the node has its roles", kubectl + "label --overwrite node " + hostname + " node-role.kubernetes.io/master= node-role.kubernetes.io/control-plane="},
		check{"the bootstrap phase is complete", kubectl + "get configmap bootstrap --namespace=kube-system -o jsonpath={.data.status} | grep -qx complete"})
	m.run(ctx, strings.NewReplacer("HOST", hostname, "KUBECTL", kubectl).Replace(replacement))
	m.wait(ctx, check{"the operators report their revision", strings.NewReplacer("HOST", hostname, "KUBECTL", client).Replace(reports)})
}

const replacement = `set -e
namespace=--namespace=openshift-cluster-version
KUBECTL create configmap openshift-service-ca.crt $namespace
KUBECTL create secret generic cluster-version-operator-serving-cert $namespace
cd /etc/kubernetes
admin=static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs
mkdir -p $admin
cp bootstrap-secrets/kubeconfig $admin/localhost.kubeconfig
while read file was name namespace; do
	own=static-pod-resources/$file-pod-2
	mkdir -p $own/configs
	cp -a bootstrap-secrets $own/secrets
	cp bootstrap-configs/*-config.yaml $own/configs/
	sed -e "s,/bootstrap-secrets,/$own/secrets,; s,/bootstrap-configs,/$own/configs,; s,^  name: $was$,  name: $name,; s,^  namespace: .*,  namespace: $namespace," \
		-e '0,/^  labels:/s//  labels:\n    revision: "2"/' manifests/$file-pod.yaml >$own/pod.yaml
done <<END
etcd etcd-HOST etcd openshift-etcd
kube-apiserver bootstrap-kube-apiserver kube-apiserver openshift-kube-apiserver
kube-controller-manager bootstrap-kube-controller-manager kube-controller-manager openshift-kube-controller-manager
kube-scheduler bootstrap-kube-scheduler openshift-kube-scheduler openshift-kube-scheduler
END
KUBECTL create namespace openshift-kube-scheduler || true
KUBECTL create namespace openshift-kube-controller-manager || true
for pod in kube-scheduler kube-controller-manager kube-apiserver etcd; do mv static-pod-resources/$pod-pod-2/pod.yaml manifests/$pod-pod.yaml; done
`

const reports = `set -e
while read operator resource kind; do
	echo '{"apiVersion": "operator.openshift.io/v1", "kind": "'$kind'", "metadata": {"name": "cluster"}, "spec": {"managementState": "Managed"}}' |
		KUBECTL apply --server-side --filename=-
	patch="KUBECTL patch $resource.operator.openshift.io cluster --subresource=status --type=merge --patch"
	$patch '{"status": {"latestAvailableRevision": 2, "nodeStatuses": [{"nodeName": "HOST", "currentRevision": 2}]}}' ||
		$patch '{"status": {"nodeStatuses": [{"nodeName": "HOST"}]}}' &&
		$patch '{"status": {"latestAvailableRevision": 2, "nodeStatuses": [{"nodeName": "HOST", "currentRevision": 2}]}}'
	echo '{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "'$operator'"}, "spec": {}}' | KUBECTL apply --server-side --filename=-
	now=$(date --utc +%Y-%m-%dT%H:%M:%SZ)
	KUBECTL patch clusteroperator $operator --subresource=status --type=merge --patch='{"status": {"conditions": [
		{"type": "Available", "status": "True", "lastTransitionTime": "'$now'"}, {"type": "Progressing", "status": "False", "lastTransitionTime": "'$now'"},
		{"type": "Degraded", "status": "False", "lastTransitionTime": "'$now'"}]}}'
done <<END
etcd etcds Etcd
kube-apiserver kubeapiservers KubeAPIServer
kube-controller-manager kubecontrollermanagers KubeControllerManager
kube-scheduler kubeschedulers KubeScheduler
END
`
