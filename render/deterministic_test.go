// SPDX-License-Identifier: Apache-2.0

//go:build go1.26

package render_test

import (
	"crypto/x509"
	"errors"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rotate"
)

// singleProcessor makes keys one after the other, so that each gets the same random numbers.
func singleProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// The same input, clock and random numbers give the same bytes (U-REN-6).
func TestDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("makes all keys twice")
	}
	singleProcessor(t)
	var runs [2]map[string]string
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 7)
			s, err := settings("one-node-encrypted", inputs.Kubernetes, 0)
			if err != nil {
				t.Fatal(err)
			}
			result, err := render.Run(t.Context(), s, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			runs[i] = content(t, result)
		})
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("two runs differ (-first +second):\n%s", diff)
	}
}

// A clock that was ahead has made certificates that are not valid after its correction. Loops find nothing due; so a
// renewal is refused, until the clock is known to be right: then exactly these are renewed.
func TestClockWasAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("makes all keys twice")
	}
	singleProcessor(t)
	var ahead *render.Result
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, 7)
		wait(year)
		s, err := settings("one-node", inputs.Kubernetes, year)
		if err != nil {
			t.Fatal(err)
		}
		if ahead, err = render.Run(t.Context(), s, render.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := rotate.CheckClock(ahead.Objects, time.Now()); err != nil {
			t.Errorf("before the correction: %v", err)
		}
		if err := rotate.CheckClock(ahead.Objects, time.Now().Add(-time.Minute)); err != nil {
			t.Errorf("after a correction by a minute: %v", err)
		}
	})
	// Each bubble begins at the same time, so here the clock was set back by a year.
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, 8)
		s, err := settings("one-node", inputs.Kubernetes, year)
		if err != nil {
			t.Fatal(err)
		}
		withoutFuture := func(objects []kruntime.Object) []kruntime.Object {
			out, err := rotate.WithoutFuture(objects, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		objects := writeAndRead(t, ahead.Objects)
		same, err := render.Renew(t.Context(), s, objects, render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := rotate.Changes(ahead.Objects, same.Objects); err != nil || len(changed) > 0 {
			t.Errorf("loops renew %v by themselves, %v: then CheckClock is not needed", changed, err)
		}
		if err := rotate.CheckClock(objects, time.Now()); !errors.Is(err, rotate.ErrClock) || !strings.Contains(err.Error(), "valid from 2000-12-3") {
			t.Errorf("error %v", err)
		}
		renewed, err := render.Renew(t.Context(), s, withoutFuture(objects), render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := rotate.CheckClock(renewed.Objects, time.Now()); err != nil {
			t.Errorf("after the renewal: %v", err)
		}
		checkValidUntil(t, renewed, time.Now().Add(year*9/10))
		again, err := render.Renew(t.Context(), s, withoutFuture(renewed.Objects), render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := rotate.Changes(renewed.Objects, again.Objects); err != nil || len(changed) > 0 {
			t.Errorf("changed once more: %v, %v", changed, err)
		}
	})
}

// Only due and expired certificates are renewed, and the bundles trust all certificates afterwards (R-REN-10). The
// bundles trust a signer before it signs: a certificate that is renewed after 80 % of its validity is trusted by
// the previous bundles, and an earlier CA is trusted until it expires, because it signed kubelets' certificates. The
// same holds for certificates of the input (U-INS-1), also expired ones (R-REN-10).
func TestRenewTrustFirst(t *testing.T) {
	if testing.Short() {
		t.Skip("makes most keys again and again")
	}
	singleProcessor(t)
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, 7)
		folder, _ := withAccess(t, year)
		result, err := render.Run(t.Context(), settingsOf(t, inputs.Read, folder), render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const signer, target, kubelets = "Secret openshift-kube-apiserver-operator/admin-kubeconfig-signer", "Secret openshift-kube-apiserver-operator/admin-kubeconfig-client",
			"Secret openshift-kube-controller-manager/csr-signer"
		for _, at := range []struct {
			after    time.Duration
			due, not []string
		}{
			{year * 55 / 100, nil, nil},
			{year * 10 / 100, []string{signer}, []string{target, kubelets}},
			{year * 10 / 100, nil, nil},
			{year * 10 / 100, []string{target, kubelets}, []string{signer}},
			{2 * year, []string{signer, target, kubelets}, nil},
			{time.Hour, nil, nil},
		} {
			wait(at.after)
			later, err := render.Renew(t.Context(), settingsOf(t, inputs.ReadForRenewal, folder), writeAndRead(t, result.Objects), render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			changed, err := rotate.Changes(result.Objects, later.Objects)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range at.due {
				if !slices.Contains(changed, name) {
					t.Errorf("%s later %s is not renewed: %v", at.after, name, changed)
				}
			}
			for _, name := range at.not {
				if slices.Contains(changed, name) {
					t.Errorf("%s later %s is renewed", at.after, name)
				}
			}
			if len(at.due) == 0 {
				if diff := cmp.Diff(content(t, result), content(t, later)); diff != "" || len(changed) > 0 {
					t.Errorf("%s later %v changed (-before +after):\n%s", at.after, changed, diff)
				}
			}
			if slices.Contains(at.due, target) {
				checkValidUntil(t, later, time.Now().Add(year*7/10))
			}
			if len(at.not) > 0 {
				for _, name := range changed {
					checkTrusted(t, result, later, name)
				}
				before := byName[*corev1.Secret](t, result.Objects, "openshift-kube-controller-manager", "csr-signer")
				bundle := byName[*corev1.ConfigMap](t, later.Objects, "openshift-kube-apiserver", "client-ca")
				if !strings.Contains(bundle.Data["ca-bundle.crt"], string(before.Data[corev1.TLSCertKey])) {
					t.Errorf("%s later the certificates of kubelets are not trusted", at.after)
				}
			}
			result = later
		}
	})
}

// checkTrusted checks that the bundles of the earlier result trust a renewed certificate, if a signer signed it.
func checkTrusted(t *testing.T, before, after *render.Result, name string) {
	t.Helper()
	namespace, name, _ := strings.Cut(strings.TrimPrefix(name, "Secret "), "/")
	i := slices.IndexFunc(after.Objects, func(o kruntime.Object) bool {
		s, is := o.(*corev1.Secret)
		return is && s.Namespace == namespace && s.Name == name && s.Labels[inputs.ManagedLabel] == "target"
	})
	if i < 0 {
		return
	}
	roots := x509.NewCertPool()
	for _, object := range before.Objects {
		if bundle, is := object.(*corev1.ConfigMap); is && bundle.Labels[inputs.ManagedLabel] == "ca-bundle" {
			roots.AppendCertsFromPEM([]byte(bundle.Data["ca-bundle.crt"]))
		}
	}
	// Its signer was trusted before.
	fixture.Verify(t, roots, fixture.Leaf(t, after.Objects[i].(*corev1.Secret).Data[corev1.TLSCertKey]), "", x509.ExtKeyUsageAny)
}

func wait(d time.Duration) { <-time.After(d) }

func writeAndRead(t *testing.T, objects []kruntime.Object) []kruntime.Object {
	t.Helper()
	manifests, err := export.Manifests(objects)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/manifests"
	if err := files.Write(dir, export.Files(manifests)); err != nil {
		t.Fatal(err)
	}
	read, err := export.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func checkValidUntil(t *testing.T, result *render.Result, until time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	for _, object := range result.Objects {
		if configMap, is := object.(*corev1.ConfigMap); is {
			roots.AppendCertsFromPEM([]byte(configMap.Data["ca-bundle.crt"]))
		}
	}
	checked := 0
	for _, object := range result.Objects {
		secret, is := object.(*corev1.Secret)
		if !is || secret.Type != corev1.SecretTypeTLS || regexp.MustCompile(`-\d+$`).MatchString(secret.Name) {
			continue
		}
		certificate := fixture.Leaf(t, secret.Data[corev1.TLSCertKey])
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: until, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			t.Errorf("%s/%s (%s to %s): %v", secret.Namespace, secret.Name, certificate.NotBefore.Format(time.DateOnly), certificate.NotAfter.Format(time.DateOnly), err)
		}
		checked++
	}
	if checked < 20 {
		t.Errorf("only %d certificates were checked", checked)
	}
}
