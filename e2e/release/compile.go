// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/programs"
)

// Target is what programs are compiled for.
type Target struct {
	// Root is the folder of a checkout.
	Root string
	Platform
	// Version is the version that the programs report; empty for none.
	Version string
	// Cache is the folder of the build cache; empty for the user's.
	Cache string
}

// Binary returns the name of a program's file.
func (t Target) Binary(p programs.Program) string {
	if t.OS == "windows" {
		return p.Name + ".exe"
	}
	return p.Name
}

const repository = "github.com/solonode/sno/"

// versioned are the packages with a variable linkedVersion. The linker ignores those that a program does not have.
var versioned = []string{"cli", "conformance/extension", "approver/approve", "render/command", "install/command"}

// Compile compiles static programs into a folder at once, without debug information, the path of the checkout and the
// state of git, which differ between machines. Variables of the environment that change the result are reset.
func Compile(ctx context.Context, folder string, t Target, all []programs.Program, progress io.Writer) error {
	flags := "-s -w -buildid="
	if t.Version != "" {
		for _, dir := range versioned {
			flags += " -X " + repository + dir + ".linkedVersion=" + t.Version
		}
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + flags, "-o", folder + string(filepath.Separator)}
	for _, p := range all {
		args = append(args, "./"+path.Join(p.Module, p.Package))
	}
	started := time.Now()
	logf(progress, "Building %d programs for %s (the first time takes some minutes)", len(all), t.Platform)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Architecture, "GOWORK="+filepath.Join(t.Root, "go.work"),
		"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	if t.Cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+t.Cache)
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs for %s (`go tool dist list` lists the platforms): %w\n%s", t.Platform, err, strings.TrimSpace(string(output)))
	}
	logf(progress, "Built the programs in %s", time.Since(started).Round(100*time.Millisecond))
	return nil
}
