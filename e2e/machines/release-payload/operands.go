// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"
)

var listedFlag = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)

// hyperkube runs a program of Kubernetes with the flags that it knows by its own help: those of an OpenShift config and
// the given ones. Modes of authorization and plug-ins that only OpenShift has are left out too, and feature gates: they
// are those of another version.
func hyperkube(ctx context.Context, arguments []string) error {
	program, err := exec.LookPath(arguments[0])
	if err != nil {
		return err
	}
	help, err := exec.CommandContext(ctx, program, "--help").Output()
	if err != nil {
		return err
	}
	known := func(name string) bool {
		return slices.ContainsFunc(listedFlag.FindAllSubmatch(help, -1), func(match [][]byte) bool { return string(match[1]) == name })
	}
	arguments = arguments[1:]
	if file, is := strings.CutPrefix(arguments[0], "--openshift-config="); is {
		configured, err := apiServerArguments(file)
		if err != nil {
			return err
		}
		arguments = append(configured, arguments[1:]...)
	}
	final := []string{filepath.Base(program)}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		switch {
		case !known(name), name == "feature-gates",
			name == "enable-admission-plugins" && strings.Contains(value, "/"),
			name == "authorization-mode" && value != "RBAC" && value != "Node":
			fmt.Fprintln(os.Stderr, "left out:", argument)
		default:
			final = append(final, argument)
		}
	}
	return syscall.Exec(program, final, os.Environ()) //nolint:gosec // it is what the pod names
}

// apiServerArguments are the flags of a KubeAPIServerConfig; other configs repeat the flags of their pod.
func apiServerArguments(file string) ([]string, error) {
	var config struct {
		APIServerArguments map[string][]string
		AuditConfig        struct{ PolicyConfiguration json.RawMessage }
		ServicesSubnet     string
		ServingInfo        struct {
			BindAddress       string
			NamedCertificates []struct {
				CertFile, KeyFile string
				Names             []string
			}
		}
	}
	if err := read(file, &config); err != nil || config.APIServerArguments == nil {
		return nil, err
	}
	var arguments []string
	for name, values := range config.APIServerArguments {
		for _, value := range values {
			arguments = append(arguments, "--"+name+"="+value)
		}
	}
	address, port, _ := strings.Cut(config.ServingInfo.BindAddress, ":")
	arguments = append(arguments, "--service-cluster-ip-range="+config.ServicesSubnet, "--bind-address="+address, "--secure-port="+port)
	for _, c := range config.ServingInfo.NamedCertificates {
		argument := "--tls-sni-cert-key=" + c.CertFile + "," + c.KeyFile
		if len(c.Names) > 0 {
			argument += ":" + strings.Join(c.Names, ",")
		}
		arguments = append(arguments, argument)
	}
	for _, policy := range config.APIServerArguments["audit-policy-file"] {
		if err := put(policy, config.AuditConfig.PolicyConfiguration); err != nil {
			return nil, err
		}
	}
	return arguments, nil
}

// serve serves until the context ends, by TLS if there is a certificate.
func serve(ctx context.Context, address, certificate, key string, handler http.HandlerFunc) error {
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if certificate == "" {
		return server.ListenAndServe()
	}
	return server.ListenAndServeTLS(certificate, key)
}

func insecureReadyz(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("insecure-readyz", flag.ContinueOnError)
	port, delegate := flags.String("insecure-port", "", ""), flags.String("delegate-url", "", "")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as the real one
	return serve(ctx, ":"+*port, "", "", func(w http.ResponseWriter, r *http.Request) {
		response, err := client.Get(*delegate) //nolint:noctx // it is local
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer response.Body.Close() //nolint:errcheck // it was only read
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	})
}

func policyController(ctx context.Context, arguments []string) error {
	var config struct {
		ServingInfo struct{ BindAddress, CertFile, KeyFile string }
	}
	if err := read(strings.TrimPrefix(arguments[1], "--config="), &config); err != nil {
		return err
	}
	s := config.ServingInfo
	return serve(ctx, s.BindAddress, s.CertFile, s.KeyFile, func(http.ResponseWriter, *http.Request) {})
}

// Folders of the bootstrap pod of the machine-config operator.
const (
	bootstrapManifests = "/etc/mcc/bootstrap/"
	serverFolder       = "/etc/mcs/bootstrap/"
)

// machineConfigController writes the config of pool master: a kubelet, and the MachineConfigs for masters.
func machineConfigController(context.Context, []string) error {
	var controller struct {
		Spec struct{ KubeAPIServerServingCAData []byte }
	}
	for _, name := range []string{"master.machineconfigpool.yaml", "image-references", "machineconfigcontroller-pull-secret"} {
		if _, err := os.Stat(bootstrapManifests + name); err != nil {
			return err
		}
	}
	if err := read(bootstrapManifests+"machineconfigcontroller-controllerconfig.yaml", &controller); err != nil {
		return err
	}
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	addFile(&config, "/etc/kubernetes/kubelet-ca.crt", controller.Spec.KubeAPIServerServingCAData)
	addFile(&config, "/etc/kubernetes/kubelet.conf", []byte(kubeletConfig))
	config.Systemd.Units = []types.Unit{{Name: "kubelet.service", Enabled: ptr.To(true), Contents: ptr.To(kubeletUnit)}}
	names, err := filepath.Glob(bootstrapManifests + "*openshift-machineconfig*")
	if err != nil {
		return err
	}
	for _, name := range names {
		var object struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Config json.RawMessage }
		}
		if err := read(name, &object); err != nil {
			return err
		}
		if object.Metadata.Labels["machineconfiguration.openshift.io/role"] != "master" {
			continue
		}
		more, report, err := v3_2.Parse(object.Spec.Config)
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, report.String())
		}
		config = v3_2.Merge(config, more)
	}
	text, err := json.Marshal(config)
	return errors.Join(err, put(serverFolder+"master.ign", text))
}

func addFile(config *types.Config, name string, content []byte) {
	source := dataurl.EncodeBytes(content)
	config.Storage.Files = append(config.Storage.Files, types.File{
		Node:          types.Node{Path: name, Overwrite: ptr.To(true)},
		FileEmbedded1: types.FileEmbedded1{Mode: ptr.To(0o600), Contents: types.Resource{Source: &source}},
	})
}

// machineConfigServer serves the config with the kubeconfig of kubelets.
func machineConfigServer(ctx context.Context, _ []string) error {
	return serve(ctx, ":22624", "", "", func(w http.ResponseWriter, r *http.Request) {
		var config types.Config
		text, err := os.ReadFile(serverFolder + "master.ign")
		if err == nil {
			err = json.Unmarshal(text, &config)
		}
		kubeconfig, kubeconfigErr := os.ReadFile("/etc/kubernetes/kubeconfig")
		if err = errors.Join(err, kubeconfigErr); err != nil || r.URL.Path != "/config/master" || !strings.Contains(r.Header.Get("Accept"), "version=3.2.0") {
			http.Error(w, fmt.Sprint(err), http.StatusNotFound)
			return
		}
		addFile(&config, "/etc/kubernetes/kubeconfig", kubeconfig)
		_ = json.NewEncoder(w).Encode(config)
	})
}

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
containerRuntimeEndpoint: unix:///var/run/crio/crio.sock
cgroupDriver: systemd
rotateCertificates: true
serverTLSBootstrap: true
clusterDomain: cluster.local
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: /etc/kubernetes/kubelet-ca.crt}}
`

const kubeletUnit = `[Unit]
Wants=network-online.target crio.service
After=network-online.target crio.service

[Service]
ExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf --config-dir=/etc/kubernetes/kubelet.conf.d \
  --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig --kubeconfig=/var/lib/kubelet/kubeconfig
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`
