// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solonode/sno/testcluster/assets"
)

// Program is a main package of the repository.
type Program struct {
	// Name is the name of its binary.
	Name string
	// Module is the folder of its module, relative to the repository's root, and Package the package in it. If the package
	// has another name, the program is a link to its binary, which acts by the name that it is called by.
	Module, Package string
}

// path is the import path of the package.
func (p Program) path() string { return path.Join(modulePrefix, p.Module, p.Package) }

const modulePrefix = "github.com/solonode/sno"

// The programs.
var (
	// The modules' controllers.
	IngressController       = controller("ingress")
	ConsoleController       = controller("console")
	AuthController          = controller("auth")
	EtcdGuardController     = controller("etcdguard")
	MachineConfigController = controller("machineconfig")

	// Approve is the approver module's outside tool.
	ApproverController = controller("approver")
	Approve            = Program{Name: "approve", Module: "approver", Package: "./cmd/approve"}

	// KubectlSNO is kubectl-sno, which is also all controllers in one process.
	KubectlSNO = Program{Name: "kubectl-sno", Module: "cli", Package: "./cmd/kubectl-sno"}

	// FleetController is the manager of a fleet, on its hub.
	FleetController = controller("fleet")

	Render = Program{Name: "sno-render", Module: "render", Package: "./cmd/sno-render"}

	// StaticPodOperators stands in for the operators of the control plane.
	StaticPodOperators = Program{Name: "static-pod-operators", Module: "render", Package: "./cmd/static-pod-operators"}

	Install = Program{Name: "sno-install", Module: "install", Package: "./cmd/sno-install"}

	SNOTests = Program{Name: "sno-tests", Module: "conformance", Package: "./cmd/sno-tests"}

	// Run is sno-run, which starts the clusters of people and of documents.
	Run = Program{Name: "sno-run", Module: "e2e", Package: "./cmd/sno-run"}

	// MachineConfigServer stands in for the machine-config server.
	MachineConfigServer = Program{Name: "machine-config-server", Module: "e2e", Package: "./machines/machine-config-server"}

	// ReleasePayload stands in for podman and the programs of a release payload.
	ReleasePayload = Program{Name: "release-payload", Module: "e2e", Package: "./machines/release-payload"}

	// WebServer is an example workload whose replicas return their names, or what a WebSocket sends.
	WebServer = Program{Name: "web-server", Module: "e2e", Package: "./cmd/web-server"}

	// Pause holds the namespaces of a pod.
	Pause = Program{Name: "pause", Module: "testcluster", Package: "./nodeimage/pause"}

	// IngressHost stands in for the ingress operator.
	IngressHost = standIn("ingress-operator")
	// ConsoleHost stands in for the console operator.
	ConsoleHost = standIn("console-operator")
	// AuthHost stands in for the authentication operator.
	AuthHost = standIn("authentication-operator")
	// ApproverHost stands in for the machine approver.
	ApproverHost = standIn("machine-approver")
	// OLMExample is an operator that OLM installs. It reads the Infrastructure object and nothing else of OpenShift.
	OLMExample = Program{Name: "olm-operator", Module: "examples/olm-operator"}
	// IngressExample is an ingress operator on library-go that vendors ingress.
	IngressExample = Program{Name: "ingress-operator-library-go", Module: "examples/ingress-operator-library-go"}
	// EtcdHost stands in for the etcd operator.
	EtcdHost = standIn("etcd-operator")
	// MachineConfigHost stands in for the machine-config operator.
	MachineConfigHost = standIn("machine-config-operator")
)

func controller(module string) Program {
	return Program{Name: module + "-controller", Module: module, Package: "./cmd/" + module + "-controller"}
}

func standIn(name string) Program {
	return Program{Name: name, Module: "testcluster/standin", Package: "./cmd/stand-in-operators"}
}

// Shipped returns the programs with images for clusters: kubectl-sno, which is all controllers in one process, every
// controller, and the manager of a fleet.
func Shipped() []Program {
	return []Program{
		KubectlSNO, IngressController, EtcdGuardController, MachineConfigController, ConsoleController, AuthController, ApproverController,
		FleetController,
	}
}

// Root returns the repository's root folder.
func Root(ctx context.Context) (string, error) {
	dir, err := assets.ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	return filepath.Dir(dir), nil
}

// built are the binaries of this process, whose sources do not change.
var built = struct {
	sync.Mutex
	binaries map[Program]string
	trusted  bool
}{binaries: map[Program]string{}}

// SkipUpToDateChecks makes Build use every existing binary. It is for a process whose parent has just built them all:
// the check takes a second each.
func SkipUpToDateChecks() {
	built.Lock()
	defer built.Unlock()
	built.trusted = true
}

// BuildAll builds programs, with those of Kubernetes that are missing, in one go command: faster than one after
// another.
func BuildAll(ctx context.Context, progress io.Writer, programs ...Program) error {
	built.Lock()
	defer built.Unlock()
	if built.trusted {
		return nil // Build does what is left
	}
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	own := assets.Own{}
	if own.Dir, err = binaries(root); err != nil {
		return err
	}
	for _, p := range programs {
		if !slices.Contains(own.Packages, p.path()) {
			own.Packages = append(own.Packages, p.path())
		}
	}
	if _, err := assets.EnsureWith(ctx, own, progress); err != nil {
		return fmt.Errorf("build the programs: %w", err)
	}
	for _, p := range programs {
		binary := filepath.Join(own.Dir, p.Name)
		if err := link(p, binary); err != nil {
			return err
		}
		built.binaries[p] = binary
	}
	return nil
}

// Build builds a program and returns the path of its binary. A program that is up to date is not linked again.
func Build(ctx context.Context, p Program, progress io.Writer) (string, error) {
	built.Lock()
	defer built.Unlock()
	if binary, ok := built.binaries[p]; ok {
		return binary, nil
	}
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	folder, err := binaries(root)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, p.Name)
	if _, err := os.Stat(binary); err != nil || !built.trusted {
		if err := compile(ctx, root, p, folder, progress); err != nil {
			return "", err
		}
	}
	built.binaries[p] = binary
	return binary, nil
}

// link makes the name of a program that is not that of its package.
func link(p Program, binary string) error {
	target := path.Base(p.path())
	if target == p.Name {
		return nil
	}
	if now, err := os.Readlink(binary); err == nil && now == target {
		return nil
	}
	if err := errors.Join(os.RemoveAll(binary), os.Symlink(target, binary)); err != nil {
		return fmt.Errorf("name %s: %w", p.Name, err)
	}
	return nil
}

// binaries makes the folder of a checkout: two of them may build at the same time.
func binaries(root string) (string, error) {
	cache, err := assets.CacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(root))
	folder := filepath.Join(cache, "programs", hex.EncodeToString(sum[:6]))
	return folder, assets.CheckoutFolder(folder, "*")
}

func compile(ctx context.Context, root string, p Program, folder string, progress io.Writer) error {
	_, _ = fmt.Fprintf(progress, "Building %s (the first time takes some minutes)\n", p.Name)
	started := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(folder, path.Base(p.path())), p.path())
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", p.Package, p.Module, err, strings.TrimSpace(string(output)))
	}
	_, _ = fmt.Fprintf(progress, "Built %s in %s\n", p.Name, time.Since(started).Round(100*time.Millisecond))
	return link(p, filepath.Join(folder, p.Name))
}
