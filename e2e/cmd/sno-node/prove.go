// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/controlplane"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
	"github.com/solonode/sno/testcluster/nodemachine"
)

// prove runs rounds with both control planes until the bounds are met, one is faulty, or the maximum is reached.
func prove(ctx context.Context, o options) (err error) {
	began := time.Now()
	logf := func(format string, args ...any) {
		fmt.Fprintf(o.progress, "== %s (%s)\n", fmt.Sprintf(format, args...), time.Since(began).Round(time.Second))
	}
	e, err := engine.Find(ctx)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	render, err := programs.Build(ctx, programs.Render, o.progress)
	if err != nil {
		return err
	}
	approve, err := programs.Build(ctx, programs.Approve, o.progress)
	if err != nil {
		return err
	}
	image, version, err := nodeimage.Ensure(ctx, e, o.progress)
	if err != nil {
		return err //nolint:wrapcheck // complete
	}
	folder, err := os.MkdirTemp("", "sno-node-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	rendered := &controlplane.Render{Program: render, Approve: approve, Version: version, Encryption: "aescbc", Folder: filepath.Join(folder, "rendered")}
	var all controlplane.Comparison
	for round := 1; round <= o.rounds; round++ {
		// The machine of an earlier round has to be removed.
		if round > 1 && o.keep {
			if err := nodemachine.Delete(ctx, o.machine()); err != nil {
				return err //nolint:wrapcheck // complete
			}
		}
		var r controlplane.Round
		logf("Round %d of at most %d: kubeadm", round, o.rounds)
		if r.Kubeadm, err = o.up(ctx, controlplane.Kubeadm(version), image, false, false); err != nil {
			return err
		}
		logf("Round %d of at most %d: sno-render", round, o.rounds)
		if r.Rendered, err = o.up(ctx, rendered.Method(), image, true, o.keep); err != nil {
			return err
		}
		r.Rendering = rendered.Cost
		if all = append(all, r); all.Err() != nil || len(all.Missed()) == 0 {
			break
		}
	}
	logf("Done")
	return o.conclude(all)
}

// up starts a control plane on a new machine, verifies it, and removes the machine in any case, unless it is to be
// kept.
func (o options) up(ctx context.Context, way controlplane.Method, image string, encrypted, keep bool) (result controlplane.Result, err error) {
	config := o.machine()
	config.Image = image
	n, start, err := way.BringUp(ctx, config)
	if err == nil {
		result, err = n.Verify(ctx, start, encrypted)
	}
	if n == nil {
		return result, err
	}
	if err != nil && ctx.Err() == nil && o.out != "" {
		err = errors.Join(err, n.Logs(ctx, filepath.Join(o.out, "artifacts", way.Name)))
	}
	if keep {
		fmt.Fprintf(o.progress, "The machine is kept: docker exec %s kubectl get pods --all-namespaces; remove it with -name %s -delete\n", o.name, o.name)
		return result, err
	}
	return result, errors.Join(err, n.Delete())
}

// conclude prints the measurements and writes them to the folder and the document, whether or not the bounds are met.
func (o options) conclude(all controlplane.Comparison) error {
	rows := all.Rows()
	if err := errors.Join(all.Print(os.Stdout), blank(), bench.Print(os.Stdout, rows)); err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	if err := o.record(all, rows); err != nil {
		return err
	}
	return all.Err() //nolint:wrapcheck // complete
}

func blank() error {
	_, err := fmt.Fprintln(os.Stdout)
	return err
}

// record writes the figures to the folder and the document.
func (o options) record(all controlplane.Comparison, rows []bench.Row) error {
	if o.out != "" {
		text, err := json.MarshalIndent(map[string]any{"rounds": all, "rows": rows}, "", "  ")
		if err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
		if err := os.WriteFile(filepath.Join(o.out, "node.json"), append(text, '\n'), 0o644); err != nil { //nolint:gosec // nothing in it is secret
			return fmt.Errorf("write the figures: %w", err)
		}
	}
	if o.write == "" {
		return nil
	}
	before, err := os.ReadFile(o.write)
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	after, err := bench.RealKubelets.Document(before, rows, bench.Machine(), true)
	if err != nil {
		return fmt.Errorf("write the figures into %s: %w", o.write, err)
	}
	return os.WriteFile(o.write, after, 0o644) //nolint:gosec,wrapcheck // a document; complete
}
