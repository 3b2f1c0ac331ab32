// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rotate"
)

const longRotate = `rotate runs the control loops again over the output of an earlier sno-render, and renews the certificates that have expired or of
which 80 % of the validity have passed. Certificates that are not valid yet were made by a clock that was ahead: they are renewed
if a time server sets the clock now, or with --clock-is-right; otherwise nothing is. The folder is replaced. With --root the files that
changed are written to the node, each atomically: processes reload certificates that they watch, and the kubelet restarts a static pod
whose revision has changed. The objects that changed are printed: apply their manifests when the API server is ready.`

const clockIsRight = "clock-is-right"

type rotateOptions struct {
	dir, root    string
	clockIsRight bool
	verbose      bool
}

func newRotate(out, errs io.Writer) *cobra.Command {
	var o rotateOptions
	c := &cobra.Command{
		Use:   "rotate --dir FOLDER",
		Short: "Renew the certificates that are due, in place",
		Long:  longRotate,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed(clockIsRight) {
				o.clockIsRight = synchronized()
			}
			return o.run(c.Context(), out, errs)
		},
	}
	c.Flags().StringVar(&o.dir, "dir", "", "output folder of sno-render")
	c.Flags().StringVar(&o.root, "root", "", "root of the node to which changed files are written, such as /")
	c.Flags().BoolVar(&o.clockIsRight, clockIsRight, false, "renew certificates that are not valid yet; without the flag only if a time server sets the clock")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each control loop")
	return c
}

func (o *rotateOptions) run(ctx context.Context, out, errs io.Writer) error {
	if o.dir == "" {
		return fmt.Errorf("--dir is required; %w", errUsage)
	}
	earlier, r, err := readEarlier(o.dir)
	if err != nil {
		return err
	}
	r.verbose, r.errs = o.verbose, errs
	if err := rotate.CheckClock(earlier.Objects, time.Now()); err != nil {
		if !o.clockIsRight {
			return fmt.Errorf("nothing was renewed: %w; set the clock, or confirm it by --%s", err, clockIsRight)
		}
		fmt.Fprintln(errs, "Renewing what is not valid yet:", err)
		if earlier.Objects, err = rotate.WithoutFuture(earlier.Objects, time.Now()); err != nil {
			return err
		}
	}
	s, err := r.read(inputs.ReadForRenewal)
	if err != nil {
		return err
	}
	result, err := r.render(ctx, s, earlier)
	if err != nil {
		return err
	}
	changed, err := rotate.Changes(earlier.Objects, result.Objects)
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		fmt.Fprintln(out, "Nothing is due.")
	} else if err := r.write(o.dir, result, files.Replace); err != nil {
		return err
	}
	for _, name := range changed {
		fmt.Fprintln(out, "  changed ", name)
	}
	if o.root != "" {
		// Even if nothing is due: an earlier run may have failed before this step.
		written, err := rotate.WriteChanged(o.root, result.Files)
		for _, name := range written {
			fmt.Fprintln(out, "  wrote   ", filepath.Join(o.root, filepath.FromSlash(name)))
		}
		if err != nil {
			return err
		}
	}
	return printNextRenewal(out, result)
}

func readEarlier(dir string) (*render.Result, *run, error) {
	encoded, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil {
		return nil, nil, fmt.Errorf("%s was not written by sno-render: %w", dir, err)
	}
	r := &run{}
	if err := yaml.UnmarshalStrict(encoded, &r.settings); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, settingsFile), err)
	}
	folder := os.DirFS(dir)
	if r.input, err = fs.Sub(folder, "input"); err != nil {
		return nil, nil, err
	}
	manifests, err := fs.Sub(folder, "manifests")
	if err != nil {
		return nil, nil, err
	}
	objects, err := export.Read(manifests)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, "manifests"), err)
	}
	return &render.Result{Objects: objects}, r, nil
}
