// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/e2e/kubelets"
	"github.com/solonode/sno/testcluster/embedded"
)

var errSuite = errors.New("the conformance suite failed")

// modules runs all controllers on the node, and the conformance suite's static and scheduled tiers. The controllers
// stay, and the stand-in operators run until the context ends.
func modules(ctx context.Context, m *Machine) error {
	config, err := m.client()
	if err != nil {
		return err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // OpenShift's labels are deprecated ones
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	signer, err := kube.CoreV1().Secrets("openshift-kube-apiserver-operator").Get(ctx, "admin-kubeconfig-signer", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the signer of administrators: %w", err)
	}
	e, err := kubelets.Attach(ctx, kubelets.Installed{
		Existing: embedded.Existing{Config: config, CACert: signer.Data["tls.crt"], CAKey: signer.Data["tls.key"], Progress: m.Config.Progress},
		Scenario: "none-sno", Provider: "sno-install", Node: hostname, Images: m.node.Containerd(),
	})
	if err != nil {
		return err //nolint:wrapcheck // names the object
	}
	if err := e.WaitSettled(ctx); err != nil {
		return errors.Join(err, e.Logs(filepath.Join(m.Folder, "logs-operators")))
	}
	m.logf("  all controllers have settled")
	folder := m.site.path("conformance")
	if code := e.RunSuite(ctx, "--tiers", string(catalogue.Static)+","+string(catalogue.Scheduled), "-o", folder, "--artifacts", filepath.Join(folder, "artifacts")); code != 0 {
		return fmt.Errorf("%w: exit code %d, results in %s", errSuite, code, folder)
	}
	return nil
}
