// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/internal/fixture"
)

var now = time.Now().Truncate(time.Second)

func options(profile inputs.Profile) credentials.Options {
	return credentials.Options{Profile: profile, Name: "sno", Domain: "sno.example.com", Validity: inputs.DefaultValidity, Now: now}
}

func newState(t *testing.T, profile inputs.Profile) *credentials.State {
	t.Helper()
	return fixture.Must(credentials.New(t.Context(), options(profile)))
}

func save(t *testing.T, s *credentials.State) string {
	t.Helper()
	list := fixture.Must(s.Files())
	dir := t.TempDir()
	for _, f := range list {
		if f.Mode != 0o600 {
			t.Errorf("%s has mode %o", f.Path, f.Mode)
		}
	}
	fixture.NoError(t, files.Write(filepath.Join(dir, credentials.Dir), list))
	return dir
}

func secretOf(t *testing.T, s *credentials.State, file string) *corev1.Secret {
	t.Helper()
	for _, f := range s.Manifests {
		if f.Path == file {
			var secret corev1.Secret
			fixture.NoError(t, yaml.Unmarshal(f.Content, &secret))
			return &secret
		}
	}
	t.Fatalf("no %s", file)
	return nil
}

func TestNew(t *testing.T) {
	s := newState(t, inputs.OpenShift)
	if !regexp.MustCompile(`^sno-[a-z2-9]{5}$`).MatchString(s.InfraID) || len(s.ClusterID) != 36 {
		t.Errorf("IDs %s, %s", s.InfraID, s.ClusterID)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Kubeconfig)
	if err != nil || config.Host != "https://api.sno.example.com:6443" {
		t.Errorf("kubeconfig: %v, %+v", err, config)
	}
	hash := secretOf(t, s, "credentials_secret_kube-system_kubeadmin.yaml").Data["kubeadmin"]
	if err := bcrypt.CompareHashAndPassword(hash, []byte(s.Password)); err != nil || len(s.Password) != 23 {
		t.Errorf("password %s: %v", s.Password, err)
	}
	// The server's certificate is valid for the CA of workers.
	ca, end, err := s.WorkerCA(now)
	if err != nil || end.Before(now.Add(9*365*24*time.Hour)) {
		t.Fatalf("end %s, %v", end, err)
	}
	server := secretOf(t, s, "credentials_secret_openshift-machine-config-operator_machine-config-server-tls.yaml")
	pair := fixture.Must(tls.X509KeyPair(server.Data[corev1.TLSCertKey], server.Data[corev1.TLSPrivateKeyKey]))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "api-int.sno.example.com"}); err != nil {
		t.Error(err)
	}
	signer := secretOf(t, s, "credentials_secret_openshift-machine-config-operator_machine-config-server-ca.yaml")
	if signer.Annotations["auth.openshift.io/certificate-not-after"] != end.Format(time.RFC3339) {
		t.Errorf("annotations %v", signer.Annotations)
	}
	metadata := fixture.Must(s.Metadata("sno"))
	want := `{"clusterID":"` + s.ClusterID + `","clusterName":"sno","infraID":"` + s.InfraID + `","none":{}}` + "\n"
	fixture.Equal(t, "metadata.json", want, string(metadata))
	other := newState(t, inputs.OpenShift)
	if other.InfraID == s.InfraID || other.ClusterID == s.ClusterID || other.Password == s.Password {
		t.Error("two clusters have the same identity")
	}
}

// A folder is used again while its certificates are not too old (U-INS-19).
func TestOpen(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.Kubernetes, inputs.OpenShift} {
		s := newState(t, profile)
		dir := save(t, s)
		again := fixture.Must(credentials.Open(dir, options(profile)))
		fixture.Equal(t, "", s, again, cmp.AllowUnexported(credentials.State{}))
		late := options(profile)
		late.Now = now.Add(25 * time.Hour)
		old, err := credentials.Open(dir, late)
		if !errors.Is(err, credentials.ErrTooOld) || old == nil {
			t.Fatalf("a day later: %v", err)
		}
		signer := map[inputs.Profile]string{
			inputs.Kubernetes: "manifests/credentials_secret_openshift-kube-apiserver-operator_admin-kubeconfig-signer.yaml",
			inputs.OpenShift:  "manifests/credentials_secret_openshift-machine-config-operator_machine-config-server-ca.yaml",
		}[profile]
		for _, name := range []string{signer, "sno-install-state/kubeconfig: "} {
			fixture.Fails(t, name, err, name)
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.Contains(line, "and ends at 20") {
				t.Errorf("no end: %s", line)
			}
		}
		late.Now = now.Add(11 * 365 * 24 * time.Hour)
		_, err = credentials.Open(dir, late)
		fixture.Fails(t, "ten years later", err, credentials.ErrTooOld, "it ended at 20")
		if profile == inputs.OpenShift {
			// Workers can be added until the CA ends (R-WRK-1).
			if _, _, err := old.WorkerCA(now.Add(25 * time.Hour)); err != nil {
				t.Error(err)
			}
			_, _, err := old.WorkerCA(late.Now)
			fixture.Fails(t, "ten years later", err, credentials.ErrTooOld)
		} else if _, _, err := old.WorkerCA(now); !errors.Is(err, credentials.ErrState) {
			t.Errorf("a CA in profile kubernetes: %v", err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	if s, err := credentials.Open(t.TempDir(), options(inputs.Kubernetes)); s != nil || err != nil {
		t.Errorf("an empty folder: %v, %v", s, err)
	}
	s := newState(t, inputs.Kubernetes)
	for name, test := range map[string]struct {
		change func(t *testing.T, at string)
		o      func(*credentials.Options)
		is     error
	}{
		"another domain":     {nil, func(o *credentials.Options) { o.Domain = "other.example.com" }, credentials.ErrOtherCluster},
		"another profile":    {nil, func(o *credentials.Options) { o.Profile = inputs.OpenShift }, credentials.ErrOtherCluster},
		"identity":           {write("identity.json", "{"), nil, credentials.ErrState},
		"later version":      {write("identity.json", `{"more":1}`), nil, credentials.ErrState},
		"kubeconfig":         {write("kubeconfig", "hello: [\n"), nil, credentials.ErrState},
		"no kubeconfig":      {func(t *testing.T, at string) { remove(t, filepath.Join(at, "kubeconfig")) }, nil, credentials.ErrState},
		"no manifests":       {func(t *testing.T, at string) { remove(t, filepath.Join(at, "manifests")) }, nil, credentials.ErrState},
		"older version":      {func(t *testing.T, at string) { remove(t, filepath.Join(at, "status-ca.crt")) }, nil, credentials.ErrState},
		"broken manifest":    {write("manifests/credentials_x.yaml", "kind: Secret\ndata: {tls.crt: aGVsbG8=}\n"), nil, credentials.ErrState},
		"invalid YAML":       {write("manifests/credentials_x.yaml", "a: ["), nil, credentials.ErrState},
		"empty kubeconfig":   {write("kubeconfig", ""), nil, credentials.ErrState},
		"kubeconfig, no key": {write("kubeconfig", "apiVersion: v1\nkind: Config\n"), nil, credentials.ErrState},
	} {
		t.Run(name, func(t *testing.T) {
			dir, o := save(t, s), options(inputs.Kubernetes)
			if test.change != nil {
				test.change(t, filepath.Join(dir, credentials.Dir))
			}
			if test.o != nil {
				test.o(&o)
			}
			_, err := credentials.Open(dir, o)
			fixture.Fails(t, "", err, test.is)
		})
	}
}

func write(name, text string) func(*testing.T, string) {
	return func(t *testing.T, at string) {
		t.Helper()
		fixture.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	fixture.NoError(t, os.RemoveAll(path))
}
