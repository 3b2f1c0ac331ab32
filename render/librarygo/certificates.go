// SPDX-License-Identifier: Apache-2.0

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

// ErrCertificate is returned for an incomplete Certificate.
var ErrCertificate = errors.New("a certificate needs a signer, a bundle, a target, and one of client, hosts and CA")

// Certificate describes a certificate, its signer and its bundle. Several may share a signer and a bundle.
type Certificate struct {
	// Signer is the Secret of the CA, Bundle the ConfigMap of CAs, Target the Secret of the certificate.
	Signer, Bundle, Target store.Object
	// A certificate expires no later than its signer. A signer is renewed after 60 % of SignerValidity and a
	// certificate after 80 % of Validity, so that clients trust the new signer before it signs anything.
	SignerValidity, Validity time.Duration

	// Client is the user of a client certificate: common name and organizations.
	Client *user.DefaultInfo
	// Hosts returns names and addresses of a serving certificate; with Client, it is for both usages.
	Hosts func() ([]string, error)
	// CA is the name of an intermediate CA.
	CA string

	// Component and Description become annotations: owner, one for all certificates of a signer, and purpose.
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

// addClientUsage adds client usage to a serving certificate.
func (c Certificate) addClientUsage(certificate *x509.Certificate) error {
	certificate.Subject = pkix.Name{CommonName: c.Client.GetName(), Organization: c.Client.GetGroups()}
	certificate.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	return nil
}

// CertRotation returns the loop that makes the certificates and renews those that are due (R-REN-10). Certificates with
// a common Secret or bundle are made in order, others in parallel, because keys take most of the time of a render. With
// GOMAXPROCS 1 all are made in order, so that the same random numbers give the same keys.
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
					// The runner does not recover from panics in other goroutines.
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

// groupBySharedObjects returns groups of certificates without common objects, in the given order.
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

func (c Certificate) shares(other Certificate) bool {
	return c.Bundle == other.Bundle || c.Signer == other.Signer || c.Signer == other.Target || c.Target == other.Signer || c.Target == other.Target
}

func (c Certificate) controller(s *store.Session) (certrotation.CertRotationController, error) {
	creator, err := c.creator()
	if err != nil {
		return certrotation.CertRotationController{}, err
	}
	client := s.Kube().CoreV1()
	// Signers and bundles are shared, so they have no description of one certificate.
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
			// library-go renews at 80 % in any case.
			Validity: c.Validity, Refresh: c.Validity,
			CertCreator:           creator,
			AdditionalAnnotations: annotations,
			Lister:                secrets{client: client}, Client: client, EventRecorder: recorder(s),
		},
	}, nil
}
