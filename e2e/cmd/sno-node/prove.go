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

// prove brings up both control planes in turn until the bounds are held or one is faulty, at most as often as there are rounds.
func prove(ctx context.Context, o options) (err error) {
	began := time.Now()
	say := func(format string, args ...any) {
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
	ours := &controlplane.Render{Program: render, Approve: approve, Version: version, Encryption: "aescbc", Folder: filepath.Join(folder, "rendered")}
	var all controlplane.Comparison
	for round := 1; round <= o.rounds; round++ {
		// What an earlier round kept is in the way.
		if round > 1 && o.keep {
			if err := nodemachine.Delete(ctx, o.machine()); err != nil {
				return err //nolint:wrapcheck // complete
			}
		}
		var r controlplane.Round
		say("Round %d of at most %d: kubeadm", round, o.rounds)
		if r.Kubeadm, err = o.up(ctx, controlplane.Kubeadm(version), image, false, false); err != nil {
			return err
		}
		say("Round %d of at most %d: sno-render", round, o.rounds)
		if r.Rendered, err = o.up(ctx, ours.Method(), image, true, o.keep); err != nil {
			return err
		}
		r.Rendering = ours.Cost
		if all = append(all, r); all.Err() != nil || len(all.Missed()) == 0 {
			break
		}
	}
	say("Done")
	return o.conclude(all)
}

// up brings up a control plane on a new machine, has it show what it must, and removes the machine whatever comes, unless it is to be kept.
func (o options) up(ctx context.Context, way controlplane.Method, image string, encrypted, keep bool) (shown controlplane.Result, err error) {
	config := o.machine()
	config.Image = image
	n, start, err := way.BringUp(ctx, config)
	if err == nil {
		shown, err = n.Verify(ctx, start, encrypted)
	}
	if n == nil {
		return shown, err
	}
	if err != nil && ctx.Err() == nil && o.out != "" {
		err = errors.Join(err, n.Logs(ctx, filepath.Join(o.out, "artifacts", way.Name)))
	}
	if keep {
		fmt.Fprintf(o.progress, "The machine stays: docker exec %s kubectl get pods --all-namespaces; remove it with -name %s -delete\n", o.name, o.name)
		return shown, err
	}
	return shown, errors.Join(err, n.Delete())
}

// conclude shows what was measured and writes it where it is wanted, whether or not the bounds are held.
func (o options) conclude(all controlplane.Comparison) error {
	rows := all.Rows()
	if err := errors.Join(all.Print(os.Stdout), blank(), bench.Print(os.Stdout, rows)); err != nil {
		return fmt.Errorf("show the figures: %w", err)
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

// record writes the figures into the folder and the document that were named.
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
	return os.WriteFile(o.write, after, 0o644) //nolint:gosec,wrapcheck // a document; says it all
}
