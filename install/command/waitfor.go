// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/install/monitor"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

const waitForLong = `Wait on another machine until an installation has reached a point, and print what it waits for. The folder --dir has auth/ with
kubeconfig and ` + statusCAFile + `. bootstrap-complete: the machine has restarted, and its own control plane answers.
install-complete: the operators have taken over, ClusterVersion is available, and only the removal of files is left.
Exit codes: 2 if the installation has stopped until a person changes its input, 3 at the time limit.`

func newWaitFor(out, errs io.Writer) *cobra.Command {
	parent := &cobra.Command{
		Use: "wait-for", Short: "Wait for an installation on another machine", Long: waitForLong, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, goal := range []string{monitor.BootstrapComplete, monitor.InstallComplete} {
		var dir, address string
		var limit time.Duration
		c := &cobra.Command{
			Use: goal + " --dir FOLDER", Short: "Wait for " + goal, Long: waitForLong, Args: noArguments,
			RunE: func(c *cobra.Command, _ []string) error {
				m, err := machineOf(dir, address)
				if err != nil {
					return unusable(err)
				}
				err = phase.Run(c.Context(), []phase.Phase{{
					Name: goal, Limit: limit, Run: func(ctx context.Context, p *phase.Progress) error { return m.Wait(ctx, goal, p) },
				}}, phase.Options{Command: c.Name(), Report: progress(errs)})
				if err == nil && goal == monitor.InstallComplete {
					summarize(out, dir, m.Name)
				}
				return err //nolint:wrapcheck // it names the goal
			},
		}
		c.Flags().StringVar(&dir, "dir", ".", "folder of the installation")
		c.Flags().StringVar(&address, "status-address", "", "host and port of the status; by default the host of the kubeconfig's server, port "+fmt.Sprint(monitor.Port))
		c.Flags().DurationVar(&limit, "limit", 2*time.Hour, "time limit")
		parent.AddCommand(c)
	}
	return parent
}

func machineOf(dir, address string) (monitor.Machine, error) {
	m := monitor.Machine{Address: address, Interval: 5 * interval, CA: x509.NewCertPool()}
	kubeconfig := filepath.Join(dir, kubeconfigFile)
	var err error
	if m.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return m, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	server, err := url.Parse(m.Config.Host)
	if err != nil {
		return m, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	m.Name = server.Hostname()
	if address == "" {
		m.Address = net.JoinHostPort(m.Name, fmt.Sprint(monitor.Port))
	}
	text, err := os.ReadFile(filepath.Join(dir, statusCAFile))
	if err == nil && !m.CA.AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s: %w: it has no certificate", statusCAFile, errFlag)
	}
	return m, err
}

func summarize(out io.Writer, dir, api string) {
	fmt.Fprintf(out, "The cluster is installed. To use it:\n  export KUBECONFIG=%s\n", filepath.Join(dir, kubeconfigFile))
	if password := filepath.Join(dir, passwordFile); fileExists(password) {
		fmt.Fprintf(out, "Console: https://console-openshift-console.apps.%s, user kubeadmin, password in %s\n", strings.TrimPrefix(api, "api."), password)
	}
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func newServeStatus() *cobra.Command {
	var m onMachine
	c := m.bind(&cobra.Command{
		Use: "serve-status", Short: "Show the status of the installation to other machines, from the live system",
		Long: "Serve the status of bootstrap-in-place, without secrets, by HTTPS with the certificate of the installation, for wait-for.",
		RunE: func(c *cobra.Command, _ []string) error {
			serve, err := m.statusServer(c.Context(), node.LiveSettings, node.NodeImageStatus, node.LiveStatus)
			if err != nil {
				return err
			}
			return serve(c.Context())
		},
	})
	c.Flags().StringVar(&m.listen, "listen", fmt.Sprintf(":%d", monitor.Port), "address and port to serve at")
	return c
}

// serve serves the status until the returned function is called. The phases go on without it.
func (o *onMachine) serve(ctx context.Context, errs io.Writer, settings string, files ...string) func() {
	ctx, stop := context.WithCancel(ctx)
	o.listen = fmt.Sprintf(":%d", monitor.Port)
	serve, err := o.statusServer(ctx, settings, files...)
	if err != nil {
		fmt.Fprintln(errs, "Other machines cannot read the status, and the phases go on:", err)
		return stop
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serve(ctx) // a listener that fails, which the phases do not need
	}()
	return func() {
		stop()
		<-ended
	}
}

// statusServer listens, and returns a function that serves the files.
func (o *onMachine) statusServer(ctx context.Context, settings string, files ...string) (func(context.Context) error, error) {
	s, err := node.Read(filepath.Join(o.root, settings))
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	pair, err := tls.X509KeyPair([]byte(s.StatusCertificate), []byte(s.StatusKey))
	if err != nil {
		return nil, fmt.Errorf("%s: the certificate of the status: %w: %w", settings, err, phase.ErrInput)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the address
	}
	for i, name := range files {
		files[i] = filepath.Join(o.root, name)
	}
	return func(ctx context.Context) error {
		return monitor.Serve(ctx, l, pair, func() ([]phase.Status, error) { return monitor.Read(files...) })
	}, nil
}
