// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/install/apply"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const startLong = `Apply all manifests of a new control plane. Namespaces and definitions of resources come first.

What may succeed later, such as an object whose definition is not served yet, is retried until --limit. What the API server refuses is not
retried, and does not stop the others. The command fails if any manifest failed, and names each with its file, object, field and reason.
A second run continues: what was applied is not changed, and what another client has changed since is kept.`

func newStart(out, errs io.Writer) *cobra.Command {
	var kubeconfig, rendered, status string
	var folders, pods []string
	var limit time.Duration
	c := &cobra.Command{
		Use: "start --kubeconfig FILE --rendered FOLDER --manifests FOLDER", Short: "Apply all manifests, or fail and name those that failed", Long: startLong, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if kubeconfig == "" || rendered == "" && len(folders) == 0 {
				return fmt.Errorf("--kubeconfig, and --rendered or --manifests are needed; %w", errUsage)
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("--kubeconfig: %w; %w", err, errInput)
			}
			o := apply.Options{Config: config, RequiredPods: pods, Interval: time.Second}
			add := func(name string, isRendered bool) error {
				if info, err := os.Stat(name); err != nil || !info.IsDir() {
					return fmt.Errorf("there is no folder %s; %w", name, errInput)
				}
				o.Folders = append(o.Folders, apply.Folder{Name: name, FS: os.DirFS(name), Rendered: isRendered})
				return nil
			}
			// Of an object in several folders, the first counts.
			if rendered != "" {
				if err := add(rendered, true); err != nil {
					return err
				}
			}
			for _, folder := range folders {
				if err := add(folder, false); err != nil {
					return err
				}
			}
			var report apply.Report
			err = phases(c, status, []phase.Phase{{
				Name: "apply-manifests", Limit: limit,
				Run: func(ctx context.Context, p *phase.Progress) (err error) {
					report, err = apply.Run(ctx, o, p)
					return err
				},
			}}, errs)
			for _, kept := range report.Kept {
				fmt.Fprintln(out, "kept, since another client has changed it:", kept)
			}
			if err == nil {
				fmt.Fprintf(out, "%d objects and statuses are applied\n", report.Applied)
			}
			return err
		},
	}
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the administrator")
	c.Flags().StringVar(&rendered, "rendered", "", "folder manifests of the output of sno-render")
	c.Flags().StringArrayVar(&folders, "manifests", nil, "folder of other manifests; may be repeated")
	c.Flags().StringArrayVar(&pods, "required-pods", nil, "pods to wait for, as NAMESPACE/PREFIX; none by default")
	c.Flags().DurationVar(&limit, "limit", time.Hour, "time limit")
	c.Flags().StringVar(&status, "status-dir", "/"+node.StatusDir, "folder of the status file")
	return c
}
