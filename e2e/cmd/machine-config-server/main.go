// SPDX-License-Identifier: Apache-2.0

// Command machine-config-server is the stand-in of package machineconfigserver.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/solonode/sno/e2e/machineconfigserver"
)

func main() {
	address := flag.String("address", ":22623", "address to serve at")
	certificate := flag.String("certificate", "/etc/ssl/mcs/tls.crt", "certificate of the server")
	key := flag.String("key", "/etc/ssl/mcs/tls.key", "its key")
	pools := flag.String("pools", "/etc/mcs/pools", "folder with POOL.ign for each pool")
	kubeconfig := flag.String("kubeconfig", "/etc/mcs/bootstrap/lb-int.kubeconfig", "kubeconfig for the first requests of kubelets")
	flag.Parse()
	server := &http.Server{
		Addr: *address, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		Handler: machineconfigserver.Server{Pools: os.DirFS(*pools), Kubeconfig: *kubeconfig}.Handler(),
	}
	fmt.Fprintln(os.Stderr, "machine-config-server:", server.ListenAndServeTLS(*certificate, *key))
	os.Exit(1)
}
