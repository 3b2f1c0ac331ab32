// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// build builds the recipe's programs into a folder.
func build(ctx context.Context, r recipe, dir, why string, progress io.Writer) error {
	fmt.Fprintf(progress, "Building %s %s from source (%s), minutes when Go's build cache is empty. Reason: %s\n",
		r.product, r.version, strings.Join(r.names(), ", "), why)
	started := time.Now()
	into := dir + string(filepath.Separator)
	// One command, so that some programs are linked while others are compiled.
	plain := slices.DeleteFunc(slices.Clone(r.programs), func(pkg string) bool { return isSuite(pkg) || isKwok(pkg) })
	if r.with != nil {
		plain = append(plain, r.with.own.Packages...)
	}
	if len(plain) > 0 {
		if err := compile(ctx, r, []string{"build"}, into, progress, plain...); err != nil {
			return err
		}
	}
	if slices.Contains(r.programs, kwokProgram) {
		alone := r
		alone.source, alone.env = r.kwok, []string{"GOWORK=off"}
		if err := compile(ctx, alone, []string{"build"}, into, progress, kwokProgram); err != nil {
			return err
		}
	}
	if slices.Contains(r.programs, suite) {
		// vet would take minutes for code of another module.
		if err := compile(ctx, r, []string{"test", "-c", "-vet=off"}, filepath.Join(dir, programName(suite)), progress, suite); err != nil {
			return err
		}
	}
	for _, pkg := range r.programs {
		if name, built := programName(pkg), builtName(pkg); name != built && !isSuite(pkg) {
			if err := os.Rename(filepath.Join(dir, built), filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("name what was built of %s: %w", pkg, err)
			}
		}
	}
	if err := r.with.move(dir); err != nil {
		return err
	}
	fmt.Fprintf(progress, "Built %s %s in %s\n", r.product, r.version, time.Since(started).Round(time.Second))
	return nil
}

// move moves own programs out of the folder of Kubernetes' programs.
func (t *together) move(from string) error {
	if t == nil {
		return nil
	}
	for _, pkg := range t.own.Packages {
		if err := os.Rename(filepath.Join(from, path.Base(pkg)), filepath.Join(t.own.Dir, path.Base(pkg))); err != nil {
			return fmt.Errorf("put the built program in place: %w", err)
		}
	}
	t.built = true
	return nil
}

const reportEvery = 5 * time.Second

// compile runs a go command that builds packages into a file, or into a folder whose path ends in a separator.
func compile(ctx context.Context, r recipe, subcommand []string, output string, progress io.Writer, packages ...string) error {
	env := append([]string{"CGO_ENABLED=0", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}, r.env...)
	args := slices.Concat(subcommand, []string{"-v", "-mod=readonly", "-buildvcs=false", "-trimpath"}, linkerFlags(r.version), []string{"-o", output}, packages)
	cmd := command(ctx, r.source, env, args...)
	what := strings.Join(packages, " ")
	// SIGINT makes the go command remove its own temporary folder.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: is Go installed and on PATH? %w", what, err)
	}
	complaints := follow(stderr, progress)
	err = cmd.Wait()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", what, ctx.Err())
	}
	if err != nil {
		return explain(fmt.Errorf("build %s: %w:\n%s", what, err, strings.Join(complaints, "\n")), r.source)
	}
	return nil
}

// follow reads the go command's standard error to its end, reports progress, and returns the lines that are neither
// package names nor downloads: the errors.
func follow(stderr io.Reader, progress io.Writer) (complaints []string) {
	started, packages := time.Now(), 0
	reported := started
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
		case strings.ContainsAny(line, " \t"):
			complaints = append(complaints, line)
		default:
			packages++
		}
		if now := time.Now(); now.Sub(reported) >= reportEvery {
			reported = now
			fmt.Fprintf(progress, "  %s (%d packages compiled, %s)\n", line, packages, now.Sub(started).Round(time.Second))
		}
	}
	return complaints
}

// copyStages copies kwok's stages from the module that kwok is built from, so that their versions match.
func copyStages(ctx context.Context, r recipe, dir string) error {
	module, err := moduleFolder(ctx, r.kwok, []string{"GOWORK=off"}, "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of simulation stages: %w", err)
	}
	for _, folder := range stageFolders {
		files, err := filepath.Glob(filepath.Join(module, "kustomize", "stage", filepath.FromSlash(folder), "*.yaml"))
		if err != nil {
			return fmt.Errorf("list simulation stages: %w", err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read a simulation stage: %w", err)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
				return fmt.Errorf("write a simulation stage: %w", err)
			}
		}
		if len(files) == 0 {
			return fmt.Errorf("this version of sigs.k8s.io/kwok has no simulation stages in kustomize/stage/%s", folder)
		}
	}
	return nil
}
