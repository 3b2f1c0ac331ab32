package outside

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// authorityNamespace, authorityName and authorityKey are where OpenShift keeps the certificates of whoever signs for kubelets now or
	// did lately. The stock approver verifies kubelets by the same.
	authorityNamespace, authorityName, authorityKey = "openshift-config-managed", "csr-controller-ca", "ca-bundle.crt"
)

// errAuthority is returned where it is not known who signs for kubelets.
var errAuthority = errors.New("cannot verify kubelets")

// readAuthority is who signs for kubelets: what is in the file, or without one what OpenShift publishes. It is nil on a cluster that
// publishes none: then nothing is proven by calling a kubelet. The CA of the API server is not taken instead, since it may have
// signed for others, and who has its certificates has nothing to do with kubelets.
func readAuthority(ctx context.Context, file string, maps corev1client.ConfigMapsGetter) (*x509.CertPool, error) {
	var bundle []byte
	where := "--kubelet-ca=" + file
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errAuthority, where, err)
		}
		bundle = text
	} else {
		where = "ConfigMap " + authorityNamespace + "/" + authorityName
		published, err := maps.ConfigMaps(authorityNamespace).Get(ctx, authorityName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errAuthority, where, err)
		}
		bundle = []byte(published.Data[authorityKey])
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%w: %s holds no certificate in PEM form", errAuthority, where)
	}
	return pool, nil
}
