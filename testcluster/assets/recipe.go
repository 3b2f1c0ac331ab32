// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// recipeVersion changes the key when this package changes the content of the folder.
const recipeVersion = "2"

// stageFolders are the folders of kwok's stages for a simulated kubelet: nodes become and stay Ready, pods run, those
// of Jobs complete, and deleted ones end.
var stageFolders = []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"}

type recipe struct {
	product   string   // Kubernetes or Open Cluster Management
	source    string   // folder of module testcluster/kube or testcluster/ocm
	kwok      string   // folder of module tools/kwok
	programs  []string // package paths, from the tool lines
	version   string   // of the product, such as v1.35.2
	versions  versions
	key       string // name of the folder
	simulates bool
	with      *together
	env       []string // of the go command
	// alwaysBuilt means that no download is used.
	alwaysBuilt bool
}

// versions are those of the programs, such as v1.35.2.
type versions struct{ kubernetes, etcd, kwok string }

// kwokProgram is in a module of its own, because it needs other Kubernetes libraries.
const kwokProgram = "sigs.k8s.io/kwok/cmd/kwok"

func isKwok(pkg string) bool { return pkg == kwokProgram }

// onNodes are the tools of testcluster/kube that a real node has and an embedded cluster has not. They are built
// separately, so that embedded clusters do not wait for them.
var onNodes = []string{"k8s.io/kubernetes/cmd/kube-proxy", "k8s.io/kubernetes/cmd/kubeadm", "k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes/cmd/kubelet"}

// suite is the package of Kubernetes' end-to-end tests, the only tool line that is no command.
const suite = "k8s.io/kubernetes/test/e2e"

func isSuite(pkg string) bool { return pkg == suite }

func ofNode(tool string) bool { return slices.Contains(onNodes, tool) }

// ofSuite are the tools for Kubernetes' tests.
func ofSuite(tool string) bool {
	return isSuite(tool) || tool == "k8s.io/kubernetes/test/images/agnhost" || tool == "github.com/onsi/ginkgo/v2/ginkgo"
}

func ofControlPlane(tool string) bool { return !ofNode(tool) && !ofSuite(tool) }

const ocm = "open-cluster-management.io/ocm"

// ofOCM are the tools of testcluster/ocm.
func ofOCM(tool string) bool { return strings.HasPrefix(tool, ocm+"/") }

// NodeKey returns the Kubernetes version of a node, such as v1.35.2, and a digest of the parts of a node's image that
// Ensure and EnsureNode return. It builds nothing.
func NodeKey(ctx context.Context) (version, key string, err error) {
	node, err := kubeRecipe(ctx, ofNode)
	if err != nil {
		return "", "", err
	}
	control, err := kubeRecipe(ctx, ofControlPlane)
	return node.version, control.key + " " + node.key, err
}

// SuiteKey returns the Kubernetes version of EnsureSuite, and its digest. It builds nothing.
func SuiteKey(ctx context.Context) (version, key string, err error) {
	r, err := kubeRecipe(ctx, ofSuite)
	return r.version, r.key, err
}

// kubeRecipe is readRecipe for the clone's testcluster/kube.
func kubeRecipe(ctx context.Context, wanted func(tool string) bool) (recipe, error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return recipe{}, err
	}
	return readRecipe(ctx, source, wanted)
}

// readRecipe returns the recipe for the wanted tools of testcluster/kube or testcluster/ocm, whose folder is source,
// and of tools/kwok.
func readRecipe(ctx context.Context, source string, wanted func(tool string) bool) (recipe, error) {
	r := recipe{source: source, kwok: filepath.Join(filepath.Dir(filepath.Dir(source)), "tools", "kwok")}
	parts := []string{recipeVersion}
	for _, folder := range []string{r.source, r.kwok} {
		if folder == r.kwok && !wanted(kwokProgram) {
			continue
		}
		file, text, err := readModule(folder)
		if err != nil {
			return recipe{}, err
		}
		parts = append(parts, text...)
		for _, tool := range file.Tool {
			if wanted(tool.Path) {
				r.programs = append(r.programs, tool.Path)
				r.simulates = r.simulates || isKwok(tool.Path)
				r.alwaysBuilt = r.alwaysBuilt || isSuite(tool.Path)
			}
		}
		for _, require := range file.Require {
			switch require.Mod.Path {
			case "k8s.io/kubernetes":
				r.product, r.version, r.versions.kubernetes = "Kubernetes", require.Mod.Version, require.Mod.Version
			case ocm:
				r.product, r.version, r.alwaysBuilt, r.env = "Open Cluster Management", require.Mod.Version, true, []string{"GOWORK=off"}
			case "go.etcd.io/etcd/server/v3":
				r.versions.etcd = require.Mod.Version
			case "sigs.k8s.io/kwok":
				r.versions.kwok = require.Mod.Version
			}
		}
	}
	if !semver.IsValid(r.version) {
		return recipe{}, fmt.Errorf("%s does not require k8s.io/kubernetes or %s at a version", filepath.Join(source, "go.mod"), ocm)
	}
	goVersion, err := goCommand(ctx, source, nil, "env", "GOVERSION")
	if err != nil {
		return recipe{}, err
	}
	parts = append(parts, strings.TrimSpace(goVersion), runtime.GOOS, runtime.GOARCH, strings.Join(stageFolders, " "), strings.Join(r.programs, " "))
	r.key = r.version + "-" + Digest(parts...)[:16]
	return r, nil
}

// Digest returns a digest of texts, in hexadecimal digits, for the name of what is made of them.
func Digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// readModule returns the go.mod of a module, and its text and that of its go.sum.
func readModule(folder string) (*modfile.File, []string, error) {
	path := filepath.Join(folder, "go.mod")
	mod, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoSource, err)
	}
	sum, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("read the checksums of %s: %w", path, err)
	}
	file, err := modfile.Parse(path, mod, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("parse: %w", err)
	}
	return file, []string{string(mod), string(sum)}, nil
}

// programName is the file name of a built program. etcd's main package is called server; envtest requires the name
// etcd.
func programName(pkg string) string {
	if strings.HasPrefix(pkg, "go.etcd.io/etcd/server/") {
		return "etcd"
	}
	if isSuite(pkg) {
		return path.Base(pkg) + ".test"
	}
	return path.Base(pkg)
}

// builtName is the go command's name: the last element of the path that is no major version.
func builtName(pkg string) string {
	if base := path.Base(pkg); !majorVersion.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(pkg))
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// names are the file names of the programs.
func (r recipe) names() []string {
	var names []string
	for _, pkg := range r.programs {
		names = append(names, programName(pkg))
	}
	return names
}

// linkerFlags stamps the Kubernetes version into programs of Kubernetes, without which clients would get v0.0.0-master,
// and drops symbols of all programs to save 150 MB.
func linkerFlags(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(semver.Canonical(version), "v"), ".", 3)
	const stamp = " -X k8s.io/component-base/version."
	flags := "-s -w" +
		stamp + "gitVersion=" + version +
		stamp + "gitMajor=" + parts[0] +
		stamp + "gitMinor=" + parts[1] +
		stamp + "gitTreeState=clean"
	return []string{"-ldflags=-s -w", "-ldflags=k8s.io/kubernetes/...=" + flags}
}

// ErrModuleUnavailable is returned when the module proxy does not have a module version.
var ErrModuleUnavailable = errors.New("module version unavailable")

var moduleFailure = regexp.MustCompile(`(?m)(?:^|\s)([A-Za-z0-9][\w.~/-]*\.[\w.~/-]+)@(v[\w.+-]+): (.+)$`)

// explain adds what to do to an error of the go command in a folder about a module version or checksum. Other errors
// are unchanged.
func explain(err error, folder string) error {
	if strings.Contains(err.Error(), "missing go.sum entry") {
		return fmt.Errorf("%w: the checksums do not fit the versions, run GOWORK=off go mod tidy -e in %s: %w", ErrModuleUnavailable, folder, err)
	}
	match := moduleFailure.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	return fmt.Errorf("%w: module %s at version %s: %s. Check that the version exists and that GOPROXY, GONOSUMDB and the network reach "+
		"a proxy that has it, or change the version in %s", ErrModuleUnavailable, match[1], match[2], match[3], filepath.Join(folder, "go.mod"))
}
