// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/apimachinery/pkg/util/version"
)

// kubeconfigFile is where a machine gets the kubeconfig for its kubelet's first request.
const kubeconfigFile = "/etc/kubernetes/kubeconfig"

// server serves the configs of pools.
type server struct {
	// pools contains POOL.ign for each pool, of spec 3.2.
	pools fs.FS
	// kubeconfig is the file that is served as kubeconfigFile. It is read for each request.
	kubeconfig string
}

func (s server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/config/", s.config)
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s server) config(w http.ResponseWriter, r *http.Request) {
	pool, accept := path.Base(r.URL.Path), r.Header.Get("Accept")
	log := slog.With("pool", pool, "from", r.RemoteAddr, "userAgent", r.UserAgent(), "accept", accept)
	refuse := func(status int, err error) {
		log.Error("Refused", "status", status, "err", err)
		w.WriteHeader(status)
	}
	if err := accepted(accept); err != nil {
		refuse(http.StatusBadRequest, err)
		return
	}
	text, err := s.of(pool)
	if err != nil {
		refuse(http.StatusInternalServerError, err)
		return
	}
	log.Info("Served")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}

func (s server) of(pool string) ([]byte, error) {
	text, err := fs.ReadFile(s.pools, pool+".ign")
	if err != nil {
		return nil, fmt.Errorf("config of the pool: %w", err)
	}
	config, report, err := ignition.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("config of pool %s: %w: %s", pool, err, report)
	}
	kubeconfig, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig for kubelets: %w", err)
	}
	config.Storage.Files = append(config.Storage.Files, file(kubeconfigFile, 0o600, kubeconfig))
	return json.Marshal(config) //nolint:wrapcheck // it is one that was parsed
}

var errAccept = errors.New("the client accepts no config of spec 3.2")

// accepted returns an error unless an Accept header is from an Ignition that reads spec 3.2.
func accepted(header string) error {
	for one := range strings.SplitSeq(header, ",") {
		kind, parameters, err := mime.ParseMediaType(one)
		if err != nil || kind != "application/vnd.coreos.ignition+json" {
			continue
		}
		v, err := version.ParseSemantic(parameters["version"])
		if err == nil && v.AtLeast(version.MajorMinor(3, 2)) && v.LessThan(version.MajorMinor(4, 0)) {
			return nil
		}
	}
	return errAccept
}

// file returns a file of a config, with its permissions.
func file(path string, mode int, content []byte) types.File {
	source := dataurl.EncodeBytes(content)
	return types.File{Node: types.Node{Path: path}, FileEmbedded1: types.FileEmbedded1{Mode: &mode, Contents: types.Resource{Source: &source}}}
}
