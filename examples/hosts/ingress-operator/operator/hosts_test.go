// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solonode/sno/examples/hosts/ingress-operator/operator"
	"github.com/solonode/sno/patch/patchtest"
)

// shared is the API server of all tests. Without kube-apiserver and etcd they fail with a reference to `make
// kube-assets`.
var shared = patchtest.NewShared(patchtest.Options{
	CRDs: []string{patchtest.Infrastructures, patchtest.Ingresses, patchtest.IngressControllers},
})

func TestMain(m *testing.M) {
	code := shared.Main(m)
	if folder, err := built(); err == nil {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, "removing the built host:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

type host struct {
	name  string
	start func(t *testing.T, config *rest.Config, flags ...string)
}

func hosts() []host {
	return []host{{"controller-runtime", startHere}, {"library-go", startLibraryGo}}
}

func startHere(t *testing.T, config *rest.Config, arguments ...string) {
	t.Helper()
	options := operator.DefaultOptions()
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	options.BindFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- operator.Run(ctx, config, options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the host failed: %v", err)
		}
	})
}

// libraryGoHost is another module with its own versions, so it is built there and run as a process.
const libraryGoHost = "../../ingress-operator-library-go"

var (
	binaryMu     sync.Mutex
	binaryFolder string
)

var errNotBuilt = errors.New("not built")

func built() (string, error) {
	binaryMu.Lock()
	defer binaryMu.Unlock()
	if binaryFolder == "" {
		return "", errNotBuilt
	}
	return binaryFolder, nil
}

func libraryGoBinary(t *testing.T) string {
	t.Helper()
	binaryMu.Lock()
	defer binaryMu.Unlock()
	if binaryFolder == "" {
		folder, err := os.MkdirTemp("", "sno-hosts-")
		if err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "host"), ".")
		build.Dir = libraryGoHost
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the library-go host: %v\n%s", errors.Join(err, os.RemoveAll(folder)), out)
		}
		binaryFolder = folder
	}
	return filepath.Join(binaryFolder, "host")
}

func startLibraryGo(t *testing.T, config *rest.Config, arguments ...string) {
	t.Helper()
	binary := libraryGoBinary(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := clientcmdapi.NewConfig()
	content.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	content.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	content.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*content, kubeconfig); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(context.WithoutCancel(t.Context()), binary, append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	var output bytes.Buffer
	process.Stdout, process.Stderr = &output, &output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := process.Process.Signal(syscall.SIGTERM)
		if err := errors.Join(err, process.Wait()); err != nil {
			t.Errorf("the host did not end well: %v", err)
		}
		if t.Failed() {
			const tail = 4000
			t.Logf("the output of the host ends with:\n%s", output.Bytes()[max(0, output.Len()-tail):])
		}
	})
}
