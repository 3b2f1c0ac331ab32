// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"time"

	"sigs.k8s.io/yaml"
)

const answerTimeout = 5 * time.Second

type config struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server   string `json:"server"`
			ProxyURL string `json:"proxy-url"`
		} `json:"cluster"`
	} `json:"clusters"`
}

// Diagnose returns a fault of the file in one line, or an empty string. It connects to the server of the current
// context unless there is a proxy.
func Diagnose(ctx context.Context, file string) string {
	info, err := os.Stat(file)
	switch {
	case file == "":
		return "KUBECONFIG is empty: name the kubeconfig of a cluster, or omit KUBECONFIG= for embedded clusters"
	case errors.Is(err, fs.ErrNotExist):
		return "KUBECONFIG " + file + ": there is no such file"
	case err != nil:
		return fmt.Sprintf("KUBECONFIG %s: %v", file, errors.Unwrap(err))
	case info.IsDir():
		return "KUBECONFIG " + file + " is a directory: name the kubeconfig in it"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Sprintf("KUBECONFIG %s: %v", file, errors.Unwrap(err))
	}
	var c config
	if err := yaml.Unmarshal(text, &c); err != nil {
		return "KUBECONFIG " + file + " is no kubeconfig: it is not YAML that has clusters and contexts"
	}
	server, proxied := c.server()
	if server == "" {
		return fmt.Sprintf("KUBECONFIG %s: its current-context %q has no server: choose one with `kubectl config use-context`", file, c.CurrentContext)
	}
	if proxied || os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" {
		return ""
	}
	if err := connect(ctx, server); err != nil {
		return fmt.Sprintf("KUBECONFIG %s: its server %s cannot be reached: %v", file, server, err)
	}
	return ""
}

func (c config) server() (server string, proxied bool) {
	for _, named := range c.Contexts {
		if named.Name != c.CurrentContext {
			continue
		}
		for _, cluster := range c.Clusters {
			if cluster.Name == named.Context.Cluster {
				return cluster.Cluster.Server, cluster.Cluster.ProxyURL != ""
			}
		}
	}
	return "", false
}

func connect(ctx context.Context, server string) error {
	at, err := url.Parse(server)
	if err != nil || at.Hostname() == "" {
		return errors.New("it is not an address")
	}
	port := at.Port()
	if port == "" {
		port = "443"
		if at.Scheme == "http" {
			port = "80"
		}
	}
	dialer := net.Dialer{Timeout: answerTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	if err != nil {
		var failed *net.OpError
		if errors.As(err, &failed) {
			return failed.Err
		}
		return err
	}
	return connection.Close()
}
