// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/join"
	"github.com/solonode/sno/install/phase"
)

const (
	// Port of the endpoint on the machine, beside those of the machine-config server.
	Port = 22625
	// Path of the endpoint.
	Path = "/status"
)

// Read returns the statuses in status files, without secrets. Files that do not exist yet are skipped.
func Read(names ...string) ([]phase.Status, error) {
	var all []phase.Status
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var s phase.Status
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("the status in %s: %w", name, err)
		}
		redact(&s.Error)
		for i := range s.Phases {
			redact(&s.Phases[i].Error)
			redact(&s.Phases[i].WaitingFor)
		}
		all = append(all, s)
	}
	return all, nil
}

func redact(text *string) { *text = string(gather.Redact([]byte(*text))) }

// Serve answers GET requests for Path with what read returns, until the context ends. Everybody may read it.
func Serve(ctx context.Context, l net.Listener, certificate tls.Certificate, read func() ([]phase.Status, error)) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) {
		all, err := read()
		var text []byte
		if err == nil {
			text, err = json.Marshal(all)
		}
		if err != nil {
			http.Error(w, "the status cannot be read", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // a client that went away
	})
	server := &http.Server{
		Handler: mux, ReadTimeout: requestLimit, WriteTimeout: requestLimit, MaxHeaderBytes: 1 << 13, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(l, "", ""); ctx.Err() == nil {
		return fmt.Errorf("serve the status: %w", err)
	}
	return nil
}

// requestLimit limits one request.
const requestLimit = 10 * time.Second

// Name of the ConfigMap with the statuses, in kube-system.
const Name = "sno-install"

// Values of its key "status".
const (
	Installing = "installing"
	Complete   = "complete"
)

// ErrNotAvailable is in the error of a cluster whose operators have not finished.
var ErrNotAvailable = errors.New("ClusterVersion is not available")

// Available returns nil if ClusterVersion is available, or the cluster has no such kind or object: the live system
// applies that of a release, and where there is none, no cluster-version-operator runs.
func Available(ctx context.Context, client kubernetes.Interface) error {
	text, err := client.Discovery().RESTClient().Get().AbsPath("/apis/config.openshift.io/v1/clusterversions").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil
	}
	var list configv1.ClusterVersionList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return fmt.Errorf("read ClusterVersion: %w", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	message := ""
	for _, version := range list.Items {
		for _, c := range version.Status.Conditions {
			switch {
			case c.Type == configv1.OperatorAvailable && c.Status == configv1.ConditionTrue:
				return nil
			case c.Type == configv1.OperatorProgressing || c.Type == "Failing" && c.Status == configv1.ConditionTrue:
				message += fmt.Sprintf("%s: %s; ", c.Type, c.Message)
			}
		}
	}
	return fmt.Errorf("%w: %s", ErrNotAvailable, message)
}

// now returns which phase of the last command is not done, and what it waits for or why it has failed.
func now(all []phase.Status) (text, message string) {
	if len(all) == 0 {
		return "", ""
	}
	last := all[len(all)-1]
	for i, p := range last.Phases {
		if p.State != phase.Done {
			return fmt.Sprintf("%s: phase %s (%d of %d)", last.Command, p.Name, i+1, len(last.Phases)), cmp.Or(p.Error, p.WaitingFor)
		}
	}
	return last.Command, ""
}

// Publish writes the statuses to the cluster, each below its command. Below "status" is Installing or Complete, below
// "phase" and "message" what a hub shows of a cluster that is being installed.
func Publish(ctx context.Context, client kubernetes.Interface, all []phase.Status, status string) error {
	data := map[string]string{"status": status}
	if status == Installing {
		data["phase"], data["message"] = now(all)
	}
	for _, s := range all {
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return fmt.Errorf("status of %s: %w", s.Command, err)
		}
		data[s.Command] = string(text)
	}
	m := corev1ac.ConfigMap(Name, metav1.NamespaceSystem).WithData(data)
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Apply(ctx, m, metav1.ApplyOptions{FieldManager: join.FieldManager})
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, Name, err)
	}
	return nil
}
