package librarygo

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/openshift/library-go/pkg/crypto"
	"github.com/openshift/library-go/pkg/operator/certrotation"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// ErrCertificate is in the error of a certificate that is not declared in full.
var ErrCertificate = errors.New("a certificate needs a signer, a bundle, a target, and one of client, hosts and CA")

// Certificate describes a certificate, the signer that signs it, and the bundle by which others trust the signer. Several
// certificates may share a signer and a bundle.
type Certificate struct {
	// Signer is the Secret of the signing CA, Bundle the ConfigMap with the CAs (key ca-bundle.crt), Target the Secret of the
	// certificate (keys tls.crt, tls.key).
	Signer, Bundle, Target store.Object
	// SignerValidity and Validity are how long they last; a certificate never lasts longer than its signer. A signer is renewed when 60 % of that
	// have passed, and a certificate when 80 % have: in between everybody learns to trust the new signer before it has signed anything.
	SignerValidity, Validity time.Duration

	// Client is whom a client certificate is for: common name and organizations.
	Client *user.DefaultInfo
	// Hosts returns the names and addresses that a serving certificate is for. With Client as well the certificate is good for
	// both, as etcd's are.
	Hosts func() ([]string, error)
	// CA is the name of a CA that the signer signs.
	CA string

	// Component and Description become annotations: who owns the certificate, its signer and its bundle, and what the certificate is
	// for. Certificates of one signer have one owner.
	Component, Description string
}

func (c Certificate) creator() (certrotation.TargetCertCreator, error) {
	switch {
	case c.Signer.Name == "" || c.Bundle.Name == "" || c.Target.Name == "" || c.SignerValidity <= 0 || c.Validity <= 0:
		return nil, fmt.Errorf("%s: %w", c.Target, ErrCertificate)
	case c.Hosts != nil && c.CA == "":
		hosts, err := c.Hosts()
		if err != nil {
			return nil, fmt.Errorf("hosts of %s: %w", c.Target, err)
		}
		rotation := &certrotation.ServingRotation{Hostnames: func() []string { return hosts }}
		if c.Client != nil {
			rotation.CertificateExtensionFn = []crypto.CertificateExtensionFunc{c.addClientUsage}
		}
		return rotation, nil
	case c.Client != nil && c.CA == "":
		return &certrotation.ClientRotation{UserInfo: c.Client}, nil
	case c.CA != "" && c.Client == nil && c.Hosts == nil:
		return &certrotation.SignerRotation{SignerName: c.CA}, nil
	default:
		return nil, fmt.Errorf("%s: %w", c.Target, ErrCertificate)
	}
}

// alsoClient makes a serving certificate good for a client.
func (c Certificate) addClientUsage(certificate *x509.Certificate) error {
	certificate.Subject = pkix.Name{CommonName: c.Client.GetName(), Organization: c.Client.GetGroups()}
	certificate.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	return nil
}

// CertRotation returns the loop that makes the certificates, and renews those that are due (R-REN-10). It writes nothing else, and
// nothing while none is due. Certificates that share a signer or a bundle, or of which one signs another, are made in their order;
// others at the same time, on all processors, since keys are most of what a render takes. With GOMAXPROCS at 1 all are made in
// their order, and the same random numbers give the same keys.
func CertRotation(name string, certificates ...Certificate) loop.Loop {
	l := loop.Loop{Name: name}
	for _, c := range certificates {
		l.Writes = append(l.Writes, store.Secrets(c.Signer.Namespace, c.Signer.Name)...)
		l.Writes = append(l.Writes, store.ConfigMaps(c.Bundle.Namespace, c.Bundle.Name)...)
		l.Writes = append(l.Writes, store.Secrets(c.Target.Namespace, c.Target.Name)...)
	}
	l.New = func(s *store.Session) (loop.Sync, error) {
		var groups [][]certrotation.CertRotationController
		for _, dependent := range groupBySharedObjects(certificates) {
			var group []certrotation.CertRotationController
			for _, c := range dependent {
				controller, err := c.controller(s)
				if err != nil {
					return nil, err
				}
				group = append(group, controller)
			}
			groups = append(groups, group)
		}
		return func(ctx context.Context) error {
			workers, ctx := errgroup.WithContext(ctx)
			workers.SetLimit(runtime.GOMAXPROCS(0))
			for _, group := range groups {
				workers.Go(func() (err error) {
					// The runner recovers only from what panics in its own goroutine.
					defer func() {
						if p := recover(); p != nil {
							err = fmt.Errorf("%w: %v\n%s", loop.ErrPanicked, p, debug.Stack())
						}
					}()
					for _, controller := range group {
						if err := controller.SyncWorker(ctx); err != nil {
							return fmt.Errorf("certificate %s: %w", controller.Name, err)
						}
					}
					return nil
				})
			}
			return workers.Wait()
		}, nil
	}
	return l
}

// independent returns groups of certificates that have no object in common, each in the given order.
func groupBySharedObjects(certificates []Certificate) [][]Certificate {
	var groups [][]Certificate
	for _, c := range certificates {
		joined := []Certificate{}
		var apart [][]Certificate
		for _, group := range groups {
			if slices.ContainsFunc(group, c.shares) {
				joined = append(joined, group...)
			} else {
				apart = append(apart, group)
			}
		}
		groups = append(apart, append(joined, c))
	}
	return groups
}

// shares reports whether two certificates have a Secret or a bundle in common.
func (c Certificate) shares(other Certificate) bool {
	return c.Bundle == other.Bundle || c.Signer == other.Signer || c.Signer == other.Target || c.Target == other.Signer || c.Target == other.Target
}

func (c Certificate) controller(s *store.Session) (certrotation.CertRotationController, error) {
	creator, err := c.creator()
	if err != nil {
		return certrotation.CertRotationController{}, err
	}
	client := s.Kube().CoreV1()
	// Signers and bundles are shared, so nothing of one certificate may be written on them.
	shared := certrotation.AdditionalAnnotations{JiraComponent: c.Component}
	annotations := certrotation.AdditionalAnnotations{JiraComponent: c.Component, Description: c.Description}
	return certrotation.CertRotationController{
		Name: c.Target.String(),
		RotatedSigningCASecret: certrotation.RotatedSigningCASecret{
			Namespace: c.Signer.Namespace, Name: c.Signer.Name,
			Validity: c.SignerValidity, Refresh: c.SignerValidity / 5 * 3,
			AdditionalAnnotations: shared,
			Lister:                secrets{client: client}, Client: client, EventRecorder: recorder(s),
		},
		CABundleConfigMap: certrotation.CABundleConfigMap{
			Namespace: c.Bundle.Namespace, Name: c.Bundle.Name,
			AdditionalAnnotations: shared,
			Lister:                configMaps{client: client}, Client: client, EventRecorder: recorder(s),
		},
		RotatedSelfSignedCertKeySecret: certrotation.RotatedSelfSignedCertKeySecret{
			Namespace: c.Target.Namespace, Name: c.Target.Name,
			// A refresh time of its own would only come earlier than 80 %.
			Validity: c.Validity, Refresh: c.Validity,
			CertCreator:           creator,
			AdditionalAnnotations: annotations,
			Lister:                secrets{client: client}, Client: client, EventRecorder: recorder(s),
		},
	}, nil
}
