// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/solonode/sno/testcluster/crds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrCredentials is returned when the credentials of an existing cluster cannot sign certificates.
var ErrCredentials = errors.New("not a certificate authority with its key")

// Existing is a control plane that runs elsewhere.
type Existing struct {
	Config *rest.Config
	// CACert and CAKey sign client certificates, both PEM. CACert is also the CA of the server where Config has none.
	CACert, CAKey []byte
	ParentDir     string
	Keep          bool
	Progress      io.Writer
}

// Attach installs the CustomResourceDefinitions of DefaultCRDs on a control plane that runs elsewhere, and returns a
// Cluster for it. It has no components and no audit log, and its nodes are real. Stop ends only the programs that Run
// has started.
func Attach(ctx context.Context, e Existing) (*Cluster, error) {
	if e.Progress == nil {
		e.Progress = io.Discard
	}
	credentials, err := readCredentials(e.CACert, e.CAKey)
	if err != nil {
		return nil, err
	}
	if len(e.Config.CAData) > 0 {
		credentials.caPEM = e.Config.CAData
	}
	credentials.serverName = e.Config.ServerName
	folder, err := newFolder(e.ParentDir, e.Keep)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		folder: folder, dir: folder.path, url: e.Config.Host, credentials: credentials, admin: rest.CopyConfig(e.Config),
		progress: log.New(e.Progress, "", 0), started: time.Now(),
	}
	c.stop = sync.OnceValue(c.shutDown)
	if err := c.furnish(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("attach to the cluster at %s: %w", c.url, err), c.Stop())
	}
	context.AfterFunc(ctx, func() {
		// The context is done, so the error has no receiver; the next start removes the folder.
		_ = c.Stop()
	})
	return c, nil
}

func (c *Cluster) furnish(ctx context.Context) error {
	var err error
	if c.clientset, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := WriteKubeconfig(c.KubeconfigPath(), c.admin, metav1.NamespaceDefault); err != nil {
		return err
	}
	definitions, err := crds.Read(ctx, DefaultCRDs(), nil)
	if err != nil {
		return err
	}
	if err := installCRDs(ctx, c.admin, definitions); err != nil {
		return err
	}
	return c.makeClient()
}

func readCredentials(caCert, caKey []byte) (*credentials, error) {
	certificates, err := cert.ParseCertsPEM(caCert)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(caKey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: the key is a %T", ErrCredentials, key)
	}
	return &credentials{ca: &authority{certificate: certificates[0], key: signer}, caPEM: caCert}, nil
}
