// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/install/internal/fixture"
)

// recorded are outputs of real renders, where they are: see podman.
const recorded = "../../../shared/payload"

// stateVariable has this program be podman, with the folder of its state.
const stateVariable = "SNO_PAYLOAD_TEST_PODMAN"

func TestMain(m *testing.M) {
	if state := os.Getenv(stateVariable); state != "" {
		if err := (podman{state}).run(os.Stdout, os.Stderr, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// podman stands in for podman and the images of a release. It refuses what the real programs refuse: unknown flags,
// inputs that are missing, a FeatureGate without status. Outputs are the recorded ones, or small ones. The files of its
// state change it: "fault-STEP" has a fault, "calls" the calls.
type podman struct{ state string }

var errStandIn = errors.New("Error")

// programs are the commands by the tag of their image, with their flags where nothing is recorded, and their folder there.
var programs = map[string]struct{ folder, flags string }{
	"cluster-config-api":                       {"01-api", "asset-output-dir cluster-profile payload-version rendered-manifest-dir"},
	"cluster-authentication-operator":          {"02-auth-api", "asset-output-dir rendered-manifest-dir"},
	"cluster-config-operator":                  {"", "cluster-infrastructure-input-file cloud-provider-config-output-file config-output-file asset-input-dir asset-output-dir rendered-manifest-files payload-version"},
	"":                                         {"04-cvo", "output-dir release-image feature-gate-manifest-path"},
	"cluster-etcd-operator":                    {"05-etcd", "asset-output-dir cluster-configmap-file etcd-image infra-config-file network-config-file"},
	"cluster-kube-apiserver-operator":          {"06-kube-apiserver", "manifest-etcd-serving-ca manifest-etcd-server-urls manifest-image manifest-operator-image asset-input-dir asset-output-dir config-output-file cluster-config-file cluster-auth-file infra-config-file rendered-manifest-files payload-version operand-kubernetes-version"},
	"cluster-kube-controller-manager-operator": {"07-kube-controller-manager", "cluster-policy-controller-image manifest-image asset-input-dir asset-output-dir config-output-file cpc-config-output-file cluster-config-file rendered-manifest-files payload-version"},
	"cluster-kube-scheduler-operator":          {"08-kube-scheduler", "manifest-image asset-input-dir asset-output-dir config-output-file rendered-manifest-files payload-version"},
	"cluster-ingress-operator":                 {"09-ingress", "prefix output-dir"},
	"cluster-node-tuning-operator":             {"", "asset-input-dir asset-output-dir"},
	"machine-config-operator":                  {"11-machine-config", "root-ca kube-ca config-file dest-dir pull-secret release-image image-references payload-version"},
	"cloud-credential-operator":                {"12-cloud-credential", "dest-dir manifests-dir cloud-credential-operator-image"},
}

const (
	testRelease = "quay.io/example/release@sha256:00"
	testVersion = "5.0.0-0.test"
)

func (p podman) run(stdout, stderr io.Writer, arguments []string) error {
	image := slices.IndexFunc(arguments, func(a string) bool { return strings.Contains(a, "@sha256:") })
	options, command := arguments[:image], arguments[image+1:]
	text := func(name string) string {
		content, _ := os.ReadFile(filepath.Join(p.state, name))
		return string(content)
	}
	if slices.Contains(options, "cat") {
		fmt.Fprint(stdout, text(filepath.Base(command[0])))
		return nil
	}
	release, err := Parse(testRelease, []byte(text(metadata)), []byte(text(references)))
	if err != nil {
		return err
	}
	tag := ""
	for name, of := range release.images {
		if of == arguments[image] {
			tag = name
		}
	}
	program, known := programs[tag]
	if !known {
		return fmt.Errorf("%w: image %s is not known", errStandIn, arguments[image])
	}
	step := steps[slices.IndexFunc(steps, func(s step) bool { return s.tag == tag })]
	if !slices.Equal(command[:len(step.command)], step.command) {
		return fmt.Errorf("%w: unknown command %q", errStandIn, command)
	}
	flags := p.flags(tag, program.flags)
	given := command[len(step.command):]
	if slices.Equal(given, []string{"--help"}) {
		fmt.Fprintf(stderr, "Flags:\n  --%s string   text\n", strings.Join(flags, " string   text\n  --"))
		return nil
	}
	if err := appendLine(filepath.Join(p.state, "calls"), step.name); err != nil {
		return err
	}
	volume := options[slices.Index(options, "--volume")+1]
	assets, _, _ := strings.Cut(volume, ":")
	values := map[string]string{}
	for _, f := range given {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		if !slices.Contains(flags, name) {
			return fmt.Errorf("%w: unknown flag: --%s", errStandIn, name)
		}
		values[name] = strings.Replace(value, assetsVolume, assets, 1)
	}
	fault := text("fault-" + step.name)
	if fault == "exit" {
		return fmt.Errorf("%w: could not parse", errStandIn)
	}
	return p.write(step, program.folder, assets, values, fault)
}

func (p podman) flags(tag, known string) []string {
	text, err := os.ReadFile(filepath.Join(recorded, "flags.yaml"))
	var all map[string]struct{ Flags []string }
	if err == nil && yaml.Unmarshal(text, &all) == nil {
		if tag == "" {
			tag = "cluster-version-operator"
		}
		if of, is := all[tag]; is {
			var names []string
			for _, f := range of.Flags {
				name, _, _ := strings.Cut(f, " ")
				names = append(names, name)
			}
			return names
		}
	}
	flags := strings.Fields(known)
	if dropped, err := os.ReadFile(filepath.Join(p.state, "unknown-flag")); err == nil {
		flags = slices.DeleteFunc(flags, func(f string) bool { return f == string(dropped) })
	}
	return flags
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// write checks the inputs and writes the outputs where the flags say.
func (p podman) write(s step, folder, assets string, values map[string]string, fault string) error {
	output := values["asset-output-dir"] + values["output-dir"] + values["dest-dir"]
	for name, value := range values {
		if strings.HasPrefix(value, assets) && !strings.HasPrefix(value, output) {
			if _, err := os.Stat(value); err != nil {
				return fmt.Errorf("%w: --%s: %w", errStandIn, name, err)
			}
		}
	}
	if dir := values["rendered-manifest-files"]; dir != "" {
		gate, err := os.ReadFile(filepath.Join(dir, "99_feature-gate.yaml"))
		if err != nil || !strings.Contains(string(gate), testVersion) {
			return fmt.Errorf("%w: unable to determine features: missing desired version %q", errStandIn, testVersion)
		}
	}
	if strings.HasPrefix(values["operand-kubernetes-version"], "v") {
		return fmt.Errorf("%w: could not parse --operand-kubernetes-version: Invalid character(s) found in major number \"v1\"", errStandIn)
	}
	if config, err := os.ReadFile(values["cluster-configmap-file"]); err == nil && strings.Contains(string(config), "192.0.2.0") {
		return fmt.Errorf("%w: machineNetwork CIDR is reserved and unsupported: \"192.0.2.0\"", errStandIn)
	}
	if fault == "nothing" {
		return nil
	}
	for _, name := range s.must {
		target := filepath.Join(output, name)
		if filepath.Ext(name) == "" && name != "config" && name != "cpc-config" {
			target = filepath.Join(target, s.name+".yaml")
		}
		if name == apiInput+"/99_feature-gate.yaml" || strings.HasSuffix(name, "config") && folder != "" {
			continue
		}
		if err := put(target, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+s.name+"}\n"); err != nil {
			return err
		}
	}
	for _, name := range []string{"config-output-file", "cpc-config-output-file"} {
		if file := values[name]; file != "" {
			if err := put(file, "kind: Config\n"); err != nil {
				return err
			}
		}
	}
	if s.name == "api-render" {
		gate := filepath.Join(values["rendered-manifest-dir"], "99_feature-gate.yaml")
		if _, err := os.Stat(gate); err != nil {
			return fmt.Errorf("%w: no FeatureGates found", errStandIn)
		}
		if err := put(gate, `{"apiVersion":"config.openshift.io/v1","kind":"FeatureGate","metadata":{"name":"cluster"},"spec":{},"status":{"featureGates":[{"version":"`+testVersion+`"}]}}`); err != nil {
			return err
		}
	}
	switch fault {
	case "empty key":
		return put(filepath.Join(output, manifestDir, "secret-a.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ndata:\n  tls.crt: YQ==\n  tls.key: \n")
	case "other object":
		return put(filepath.Join(output, manifestDir, "again.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: api-render, labels: {a: b}}\n")
	case "other file":
		return put(filepath.Join(output, manifestDir, "cluster-config.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
	}
	return replay(filepath.Join(recorded, folder), output, folder)
}

// replay copies the recorded files of a render.
func replay(from, output, folder string) error {
	if _, err := os.Stat(from); err != nil || folder == "" {
		return nil //nolint:nilerr // the small outputs are enough
	}
	return fs.WalkDir(os.DirFS(from), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "rewritten.yaml") {
			return err
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if name == "config.yaml" || name == "cpc-config.yaml" {
			name = strings.TrimSuffix(name, ".yaml")
		}
		return put(filepath.Join(output, name), string(content))
	})
}

func put(name, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600))
}

// imageReferences has all tags that the renders need, and one version of Kubernetes.
func imageReferences(t *testing.T, without string) string {
	t.Helper()
	type tag map[string]any
	var tags []tag
	names := []string{"etcd", "hyperkube", "cluster-policy-controller"}
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if name == without || name == "" {
			continue
		}
		of := tag{"name": name, "from": tag{"kind": "DockerImage", "name": fmt.Sprintf("quay.io/example/%s@sha256:%064d", name, i)}}
		if name == "hyperkube" {
			of["annotations"] = tag{"io.openshift.build.versions": "a=1.2.3,kubernetes=v1.36.2"}
		}
		tags = append(tags, of)
	}
	text := fixture.Must(json.Marshal(tag{"kind": "ImageStream", "spec": tag{"tags": tags}}))
	return string(text)
}
