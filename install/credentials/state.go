// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/manifests"
)

// Dir is the folder of the state in the folder of an installation. It has private keys.
const Dir = "sno-install-state"

const (
	identityFile   = "identity.json"
	kubeconfigFile = "kubeconfig"
	passwordFile   = "kubeadmin-password"
	manifestDir    = "manifests"
	statusCAFile   = "status-ca.crt"
	statusCertFile = "status.crt"
	statusKeyFile  = "status.key"
)

// MaxAge is the maximum age of certificates in a folder that is used again (U-INS-19).
const MaxAge = 24 * time.Hour

var (
	// ErrState is in the error of state that cannot be read.
	ErrState = errors.New("unusable state of an earlier run; use a new folder")
	// ErrTooOld is in the error of state with certificates that have ended, or are older than MaxAge.
	ErrTooOld = errors.New("certificates of an earlier run are too old; use a new folder")
	// ErrOtherCluster is in the error of another cluster's state.
	ErrOtherCluster = errors.New("the folder has the state of another cluster; use a new folder")
)

// State is the identity and the credentials of a cluster.
type State struct {
	// ClusterID is the ID of ClusterVersion, InfraID the prefix of the names of infrastructure.
	ClusterID, InfraID string
	// Kubeconfig is the administrator's, with the API server's DNS name.
	Kubeconfig []byte
	Password   string
	// Manifests are the Secrets and ConfigMaps with keys and CAs, as input of sno-render, or of a release's renders.
	Manifests []files.File
	// Bootstrap are the files of tls/ and auth/, in profile openshift.
	Bootstrap []files.File
	// StatusCA is the authority of the machine's status endpoint, with its certificate and key (package monitor).
	StatusCA, StatusCert, StatusKey []byte

	profile inputs.Profile
	domain  string
}

// identity identifies the cluster of the state.
type identity struct {
	ClusterID string         `json:"clusterID"`
	InfraID   string         `json:"infraID"`
	Domain    string         `json:"domain"`
	Profile   inputs.Profile `json:"profile"`
}

// Options of New.
type Options struct {
	Profile inputs.Profile
	// Name is the cluster's name, and Domain its DNS domain.
	Name, Domain string
	Validity     time.Duration
	Now          time.Time
	// ServiceNetwork is for profile openshift.
	ServiceNetwork []netip.Prefix
}

// New makes the state of a new cluster, and writes nothing.
func New(ctx context.Context, o Options) (*State, error) {
	s := &State{ClusterID: uuid.NewString(), InfraID: infraID(o.Name), profile: o.Profile, domain: o.Domain}
	var err error
	if s.StatusCA, s.StatusCert, s.StatusKey, err = statusServer(o); err != nil {
		return nil, err
	}
	if o.Profile == inputs.OpenShift {
		return s, s.ofRelease(ctx, o)
	}
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.InfrastructureStatus{
		APIServerURL: "https://api." + o.Domain + ":6443", APIServerInternalURL: "https://api-int." + o.Domain + ":6443",
	}}
	access, kubeconfig, err := render.AdminKubeconfig(ctx, infrastructure, o.Validity)
	if err != nil {
		return nil, fmt.Errorf("make the credentials: %w", err)
	}
	s.Kubeconfig = kubeconfig
	return s, s.addManifests(access)
}

// ofRelease makes what the renders of a release read, and what they do not make themselves.
func (s *State) ofRelease(ctx context.Context, o Options) error {
	objects, authority, server, key, err := machineConfigServer(o)
	if err != nil {
		return err
	}
	made, err := BootstrapFiles(ctx, BootstrapOptions{
		Domain: o.Domain, ServiceNetwork: o.ServiceNetwork, Now: o.Now, RootCA: authority, Server: server, ServerKey: key,
	})
	if err != nil {
		return err
	}
	for _, f := range made {
		if f.Path == AdminKubeconfig {
			s.Kubeconfig = f.Content
		} else {
			s.Bootstrap = append(s.Bootstrap, f)
		}
	}
	slices.SortFunc(s.Bootstrap, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	admin, password, err := kubeadmin()
	if err != nil {
		return err
	}
	s.Password = password
	return s.addManifests(append(objects, admin))
}

func (s *State) addManifests(objects []runtime.Object) error {
	for _, object := range objects {
		f, err := manifestOf(object)
		if err != nil {
			return err
		}
		s.Manifests = append(s.Manifests, f)
	}
	slices.SortFunc(s.Manifests, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// alphabet has no vowels, so that there are no words, and no digits and letters that look alike.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

func random(n int, alphabet string) string {
	text := make([]byte, 0, n)
	buffer := make([]byte, 1)
	for len(text) < n {
		_, _ = rand.Read(buffer) // it does not fail
		// Values above the largest multiple are skipped, so that all characters are equally likely.
		if int(buffer[0]) < 256/len(alphabet)*len(alphabet) {
			text = append(text, alphabet[int(buffer[0])%len(alphabet)])
		}
	}
	return string(text)
}

// infraID returns the name with five random characters, as openshift-install does: at most 27 characters, 21 of the
// name.
func infraID(name string) string {
	return strings.TrimRight(name[:min(len(name), 21)], "-") + "-" + random(5, alphabet)
}

// kubeadmin returns the Secret of user kubeadmin for the OAuth server, and the password.
func kubeadmin() (*corev1.Secret, string, error) {
	groups := make([]string, 4)
	for i := range groups {
		groups[i] = random(5, "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789")
	}
	password := strings.Join(groups, "-")
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return nil, "", fmt.Errorf("hash of kubeadmin's password: %w", err)
	}
	return secret("kube-system", "kubeadmin", corev1.SecretTypeOpaque, map[string][]byte{"kubeadmin": hash}), password, nil
}

func secret(namespace, name string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: kind, Data: data,
	}
}

func manifestOf(object runtime.Object) (files.File, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return files.File{}, fmt.Errorf("%w: %T", ErrState, object)
	}
	meta.SetUID("")
	meta.SetResourceVersion("")
	meta.SetManagedFields(nil)
	meta.SetGeneration(0)
	kind := "secret"
	if configMap, is := object.(*corev1.ConfigMap); is {
		kind, configMap.TypeMeta = "configmap", metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	}
	if s, is := object.(*corev1.Secret); is {
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	}
	return manifests.File(fmt.Sprintf("credentials_%s_%s_%s.yaml", kind, meta.GetNamespace(), meta.GetName()), object)
}

// Open returns the state in the folder of an installation, or nil. If certificates are too old for a bootstrap phase,
// the error is ErrTooOld and names each with its end.
func Open(dir string, o Options) (*State, error) {
	at := filepath.Join(dir, Dir)
	text, err := os.ReadFile(filepath.Join(at, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	var id identity
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&id); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrState, filepath.Join(at, identityFile), err)
	}
	if id.Domain != o.Domain || id.Profile != o.Profile {
		return nil, fmt.Errorf("%s: %w: it is of %s with profile %s, not of %s with profile %s", at, ErrOtherCluster, id.Domain, id.Profile, o.Domain, o.Profile)
	}
	s := &State{ClusterID: id.ClusterID, InfraID: id.InfraID, profile: id.Profile, domain: id.Domain}
	var errs []error
	read := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(at, name))
		if err != nil {
			errs = append(errs, err)
		}
		return content
	}
	s.Kubeconfig = read(kubeconfigFile)
	s.StatusCA, s.StatusCert, s.StatusKey = read(statusCAFile), read(statusCertFile), read(statusKeyFile)
	if id.Profile == inputs.OpenShift {
		s.Password = string(read(passwordFile))
	}
	entries, err := os.ReadDir(filepath.Join(at, manifestDir))
	errs = append(errs, err)
	for _, entry := range entries {
		s.Manifests = append(s.Manifests, files.File{Path: entry.Name(), Mode: 0o600, Content: read(filepath.Join(manifestDir, entry.Name()))})
	}
	if id.Profile == inputs.OpenShift {
		for _, folder := range []string{"auth", "tls"} {
			entries, err := os.ReadDir(filepath.Join(at, folder))
			errs = append(errs, err)
			for _, entry := range entries {
				name := folder + "/" + entry.Name()
				s.Bootstrap = append(s.Bootstrap, files.File{Path: name, Mode: 0o600, Content: read(name)})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if _, err := clientcmd.Load(s.Kubeconfig); err != nil || len(s.Kubeconfig) == 0 {
		return nil, fmt.Errorf("%w: %s: %w", ErrState, filepath.Join(at, kubeconfigFile), err)
	}
	return s, s.checkAge(at, o.Now)
}

// Files returns the files that Open reads.
func (s *State) Files() ([]files.File, error) {
	text, err := json.MarshalIndent(identity{s.ClusterID, s.InfraID, s.domain, s.profile}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	list := []files.File{
		{Path: identityFile, Mode: 0o600, Content: append(text, '\n')},
		{Path: kubeconfigFile, Mode: 0o600, Content: s.Kubeconfig},
		{Path: statusCAFile, Mode: 0o600, Content: s.StatusCA},
		{Path: statusCertFile, Mode: 0o600, Content: s.StatusCert},
		{Path: statusKeyFile, Mode: 0o600, Content: s.StatusKey},
	}
	if s.Password != "" {
		list = append(list, files.File{Path: passwordFile, Mode: 0o600, Content: []byte(s.Password)})
	}
	for _, f := range s.Manifests {
		list = append(list, files.File{Path: manifestDir + "/" + f.Path, Mode: 0o600, Content: f.Content})
	}
	return append(list, s.Bootstrap...), nil
}

// Metadata returns metadata.json, which tools of openshift-install read.
func (s *State) Metadata(name string) ([]byte, error) {
	text, err := json.Marshal(map[string]any{"clusterName": name, "clusterID": s.ClusterID, "infraID": s.InfraID, "none": map[string]any{}})
	if err != nil {
		return nil, fmt.Errorf("write metadata.json: %w", err)
	}
	return append(text, '\n'), nil
}
