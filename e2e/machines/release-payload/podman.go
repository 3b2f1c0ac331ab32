// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// state has the payload's release-metadata and image-references, and a folder with recorded outputs of real renders.
// File calls has the output folder of each render when it begins and when it has ended.
const state = "/opt/payload/"

var errUsage = errors.New("unusable")

// renders are those of the payload's images by the last part of their names, with the folder of what is recorded of
// each, and its flags if they are not recorded.
var renders = map[string]struct{ folder, flags string }{
	"cluster-config-api":                       {"01-api", ""},
	"cluster-authentication-operator":          {"02-auth-api", "asset-output-dir rendered-manifest-dir"},
	"cluster-config-operator":                  {"", "cluster-infrastructure-input-file cloud-provider-config-output-file config-output-file asset-input-dir asset-output-dir"},
	"cluster-version-operator":                 {"04-cvo", ""},
	"cluster-etcd-operator":                    {"05-etcd", ""},
	"cluster-kube-apiserver-operator":          {"06-kube-apiserver", ""},
	"cluster-kube-controller-manager-operator": {"07-kube-controller-manager", ""},
	"cluster-kube-scheduler-operator":          {"08-kube-scheduler", ""},
	"cluster-ingress-operator":                 {"09-ingress", "prefix output-dir"},
	"cluster-node-tuning-operator":             {"", "asset-input-dir asset-output-dir"},
	"machine-config-operator":                  {"11-machine-config", ""},
	"cloud-credential-operator":                {"12-cloud-credential", "dest-dir manifests-dir cloud-credential-operator-image"},
}

// podman is `podman run`. The images are not there: a render writes what was recorded, for this machine's name,
// addresses, domain and images.
func podman(_ context.Context, arguments []string) error {
	values := map[string]string{}
	if len(arguments) == 0 || arguments[0] != "run" {
		return fmt.Errorf("%w: podman %q", errUsage, arguments)
	}
	for arguments = arguments[1:]; len(arguments) > 1 && strings.HasPrefix(arguments[0], "--"); arguments = arguments[1:] {
		name, value, inline := strings.Cut(arguments[0], "=")
		switch name {
		case "--name", "--volume", "--authfile", "--user", "--entrypoint":
			if !inline {
				arguments = arguments[1:]
				value = arguments[0]
			}
			values[name] = value
		case "--quiet", "--rm", "--replace", "--net":
		default:
			return fmt.Errorf("%w: unknown flag: %s", errUsage, name)
		}
	}
	if _, err := os.Stat(values["--authfile"]); err != nil {
		return err
	}
	repository, _, digest := strings.Cut(arguments[0], "@sha256:")
	render, known := renders[path.Base(repository)]
	command := arguments[1:]
	switch {
	case !digest || !known:
		return fmt.Errorf("%w: no image %s", errUsage, arguments[0])
	case values["--entrypoint"] == "cat":
		text, err := os.ReadFile(state + filepath.Base(command[0]))
		if err == nil {
			_, err = os.Stdout.Write(text)
		}
		return err
	}
	flags := strings.Fields(render.flags)
	if len(flags) == 0 {
		var err error
		if flags, err = recordedFlags(path.Base(repository)); err != nil {
			return err
		}
	}
	if command[len(command)-1] == "--help" {
		_, err := fmt.Fprintf(os.Stdout, "Flags:\n  --%s string\n", strings.Join(flags, " string\n  --"))
		return err
	}
	volume, _, _ := strings.Cut(values["--volume"], ":")
	r := run{assets: volume, flags: map[string]string{}}
	for _, argument := range command {
		if flag, value, is := strings.Cut(argument, "="); is {
			flag = strings.TrimPrefix(flag, "--")
			if !slices.Contains(flags, flag) {
				return fmt.Errorf("%w: unknown flag: --%s", errUsage, flag)
			}
			r.flags[flag] = strings.Replace(value, "/assets", volume, 1)
		}
	}
	r.output = r.flags["asset-output-dir"] + r.flags["output-dir"] + r.flags["dest-dir"]
	name, _, _ := strings.Cut(strings.TrimPrefix(r.output, volume+"/"), ".part")
	if err := record("begin " + name); err != nil {
		return err
	}
	if err := errors.Join(r.inputs(), r.write(render.folder)); err != nil {
		return err
	}
	return record("end " + name)
}

func recordedFlags(tag string) ([]string, error) {
	var all map[string]struct{ Flags []string }
	if err := read(state+"recorded/flags.yaml", &all); err != nil {
		return nil, err
	}
	var names []string
	for _, flag := range all[tag].Flags {
		names = append(names, strings.Fields(flag)[0])
	}
	return names, nil
}

func record(line string) error {
	f, err := os.OpenFile(state+"calls", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Sync(), f.Close())
}

// run is one run of a render.
type run struct {
	assets, output string
	flags          map[string]string
}

// inputs returns an error for a path that is not there.
func (r run) inputs() error {
	var errs []error
	for flag, value := range r.flags {
		if strings.HasPrefix(value, r.assets) && !strings.HasPrefix(value, r.output) {
			if _, err := os.Stat(value); err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (r run) write(folder string) error {
	if file := r.flags["config-output-file"]; file != "" && folder == "" {
		return put(file, nil)
	}
	if folder == "" {
		return nil
	}
	adapt, err := r.adapt()
	if err != nil {
		return err
	}
	from := state + "recorded/" + folder
	err = fs.WalkDir(os.DirFS(from), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		to := filepath.Join(r.output, adapt(name))
		switch name {
		case "bootstrap/manifests/machineconfigcontroller-pull-secret.yaml": // the name was changed by the recording
			to = strings.TrimSuffix(to, ".yaml")
		case "99_feature-gate.rewritten.yaml":
			to = filepath.Join(r.flags["rendered-manifest-dir"], "99_feature-gate.yaml")
		case "config.yaml":
			to = r.flags["config-output-file"]
		case "cpc-config.yaml":
			to = r.flags["cpc-config-output-file"]
		}
		return put(to, []byte(adapt(string(content))))
	})
	if err == nil && folder == "05-etcd" {
		err = r.etcdCertificates()
	}
	return err
}

// read decodes a file of YAML or JSON.
func read(name string, into any) error {
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func put(name string, content []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, content, 0o600))
}

// certificateFields are those of the ControllerConfig by the flag with their file.
var certificateFields = map[string]*regexp.Regexp{
	"kube-ca": regexp.MustCompile(`(kubeAPIServerServingCAData: )\S+`), "root-ca": regexp.MustCompile(`(rootCAData: )\S+`),
}

// adapt returns a function that puts what is this machine's in the place of what was recorded.
func (r run) adapt() (func(string) string, error) {
	address, err := ownAddress()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	encode := base64.RawStdEncoding.EncodeToString
	pairs := []string{"master-0", host, "192.168.126.10", address, encode([]byte("192.168.126.10")), encode([]byte(address))}
	for _, field := range []struct{ manifest, name string }{{"cluster-dns-02-config.yml", "baseDomain"}, {"cluster-network-02-config.yml", "serviceNetwork"}} {
		for _, folder := range []string{state + "recorded/inputs/manifests", r.assets + "/manifests"} {
			var object struct{ Spec map[string]any }
			if err := read(filepath.Join(folder, field.manifest), &object); err != nil {
				return nil, err
			}
			pairs = append(pairs, strings.Trim(fmt.Sprint(object.Spec[field.name]), "[]"))
		}
	}
	was, err := images(state + "recorded/inputs/image-references.json")
	if err != nil {
		return nil, err
	}
	now, err := images(state + "image-references")
	if err != nil {
		return nil, err
	}
	for tag, image := range was {
		pairs = append(pairs, image, now[tag])
	}
	text := strings.NewReplacer(append(pairs, recordedRelease, now["cluster-version-operator"])...)
	return func(of string) string {
		for flag, field := range certificateFields {
			if content, err := os.ReadFile(r.flags[flag]); err == nil {
				of = field.ReplaceAllString(of, "${1}"+base64.StdEncoding.EncodeToString(content))
			}
		}
		return text.Replace(of)
	}, nil
}

const recordedRelease = "quay.io/openshift-release-dev/ocp-release@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// images returns the images of a file image-references by tag.
func images(file string) (map[string]string, error) {
	var stream struct {
		Spec struct {
			Tags []struct {
				Name string
				From struct{ Name string }
			}
		}
	}
	if err := read(file, &stream); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, tag := range stream.Spec.Tags {
		all[tag.Name] = tag.From.Name
	}
	return all, nil
}

func ownAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("%w: the machine has no address", errUsage))
}

// etcdCertificates makes what etcd's pod and its client read. Recorded keys are not there.
func (r run) etcdCertificates() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	address, err := ownAddress()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "etcd-signer"}, NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	signer, ca, _, err := sign(template, nil, nil)
	if err != nil {
		return err
	}
	member := filepath.Join(r.output, "etc-kubernetes/static-pod-resources/etcd-member")
	errs := []error{put(member+"/ca.crt", ca), put(r.output+"/tls/etcd-ca-bundle.crt", ca)}
	for _, file := range []string{member + "/etcd-all-certs/etcd-peer-" + host, member + "/etcd-all-certs/etcd-serving-" + host, r.output + "/tls/etcd-client"} {
		_, certificate, key, err := sign(&x509.Certificate{
			Subject: pkix.Name{CommonName: "etcd"}, NotAfter: template.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(address), net.ParseIP("127.0.0.1"), net.ParseIP("::1")},
		}, template, signer)
		errs = append(errs, err, put(file+".crt", certificate), put(file+".key", key))
	}
	return errors.Join(errs...)
}

// sign returns the key of a new certificate, and both in PEM. It is self-signed without a parent.
func sign(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (key *ecdsa.PrivateKey, certificate, private []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, nil, err
	}
	if parent == nil {
		parent, by = template, key
	}
	template.SerialNumber, template.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Minute)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), err
}
