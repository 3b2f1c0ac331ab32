package machineconfig

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// ignitionVersion is understood by every machine-config operator since 4.7.
	ignitionVersion = "3.2.0"
	// logindFile is a drop-in of systemd's logind. The kubelet writes one of its own, 99-kubelet.conf, when logind allows less than it
	// asks for; a file of another name is not taken for a change of what the machine config brought.
	logindFile = "/etc/systemd/logind.conf.d/90-sno-graceful-shutdown.conf"
	// readableByAll is 0644. JSON has no octal numbers.
	readableByAll = 0o644
)

// ignition are those fields of an Ignition config that are used here.
type ignition struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
}

type ignitionFile struct {
	Path      string           `json:"path"`
	Mode      int              `json:"mode"`
	Overwrite bool             `json:"overwrite"`
	Contents  ignitionContents `json:"contents"`
}

type ignitionContents struct {
	Source string `json:"source"`
}

// logindConfig lets logind hold up a shutdown for as long as the kubelet asks, as an Ignition config.
func logindConfig(delay time.Duration) ([]byte, error) {
	text := fmt.Sprintf("[Login]\nInhibitDelayMaxSec=%d\n", int64(delay/time.Second))
	var config ignition
	config.Ignition.Version = ignitionVersion
	config.Storage.Files = []ignitionFile{{
		Path: logindFile, Mode: readableByAll, Overwrite: true,
		Contents: ignitionContents{Source: "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(text))},
	}}
	return json.Marshal(config) //nolint:wrapcheck // the caller knows what it was for
}
