// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v2"
)

// ErrConfig is returned for a missing or unsupported configuration.
var ErrConfig = errors.New("cannot connect to the API server")

// serviceAccount is where a pod has the credentials of its service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config is the address of an API server with credentials.
type Config struct {
	Server string
	// CA are the authorities of the server's certificate in PEM form.
	CA []byte
	// Token or TokenFile is a bearer token. The file is read for every request: the kubelet replaces it.
	Token, TokenFile string
	// Certificate and Key are of a client certificate in PEM form.
	Certificate, Key []byte
	// Namespace is that of the pod or of the context.
	Namespace string
}

// InCluster returns the configuration of a pod.
func InCluster() (Config, error) { return inCluster(serviceAccount) }

func inCluster(folder string) (Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Config{}, fmt.Errorf("%w: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set; outside of a pod use --kubeconfig", ErrConfig)
	}
	ca, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	namespace, err := os.ReadFile(filepath.Join(folder, "namespace"))
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return Config{Server: "https://" + net.JoinHostPort(host, port), CA: ca, TokenFile: filepath.Join(folder, "token"), Namespace: string(namespace)}, nil
}

type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster   string `yaml:"cluster"`
			User      string `yaml:"user"`
			Namespace string `yaml:"namespace"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string `yaml:"name"`
		Cluster struct {
			Server string `yaml:"server"`
			CA     string `yaml:"certificate-authority"`
			CAData string `yaml:"certificate-authority-data"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string `yaml:"name"`
		User struct {
			Token           string `yaml:"token"`
			TokenFile       string `yaml:"tokenFile"`
			Certificate     string `yaml:"client-certificate"`
			CertificateData string `yaml:"client-certificate-data"`
			Key             string `yaml:"client-key"`
			KeyData         string `yaml:"client-key-data"`
			Exec            any    `yaml:"exec"`
		} `yaml:"user"`
	} `yaml:"users"`
}

// FromKubeconfig returns the configuration of a kubeconfig's current context, with a token or a client certificate.
// Credentials of programs are not supported.
func FromKubeconfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var file kubeconfig
	if err := yaml.Unmarshal(text, &file); err != nil {
		return Config{}, fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
	}
	config, err := file.config(filepath.Dir(path))
	if err != nil {
		return Config{}, fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
	}
	return config, nil
}

var (
	errNoContext = errors.New("the current context, its cluster or its user does not exist")
	errExec      = errors.New("credentials of a program (exec) are not supported; use a token or a client certificate")
)

func (k *kubeconfig) config(folder string) (config Config, err error) {
	var cluster, user string
	for _, c := range k.Contexts {
		if c.Name == k.CurrentContext {
			cluster, user, config.Namespace = c.Context.Cluster, c.Context.User, c.Context.Namespace
		}
	}
	found := 0
	for _, c := range k.Clusters {
		if c.Name == cluster && c.Cluster.Server != "" {
			found++
			config.Server = c.Cluster.Server
			if config.CA, err = bytesOf(folder, c.Cluster.CA, c.Cluster.CAData); err != nil {
				return Config{}, err
			}
		}
	}
	for _, u := range k.Users {
		if u.Name != user {
			continue
		}
		found++
		if u.User.Exec != nil {
			return Config{}, errExec
		}
		config.Token = u.User.Token
		if u.User.TokenFile != "" {
			config.TokenFile = absolute(folder, u.User.TokenFile)
		}
		if config.Certificate, err = bytesOf(folder, u.User.Certificate, u.User.CertificateData); err != nil {
			return Config{}, err
		}
		if config.Key, err = bytesOf(folder, u.User.Key, u.User.KeyData); err != nil {
			return Config{}, err
		}
	}
	if found != 2 {
		return Config{}, errNoContext
	}
	return config, nil
}

func absolute(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// bytesOf returns the data, which precedes the file.
func bytesOf(folder, file, data string) ([]byte, error) {
	switch {
	case data != "":
		return base64.StdEncoding.DecodeString(data)
	case file != "":
		return os.ReadFile(absolute(folder, file))
	}
	return nil, nil
}
