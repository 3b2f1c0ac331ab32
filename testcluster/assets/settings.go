// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"
)

// Environment variables. Those with an address have a public server as their default, and may name a mirror of the same
// layout.
const (
	// ModeEnv is auto (the default), download or build.
	ModeEnv = "SNO_ASSETS"
	// EnvtestIndexEnv is the address of envtest's index of releases, whose links are used unchanged.
	EnvtestIndexEnv = "SNO_ENVTEST_INDEX"
	// KubernetesReleasesEnv is the address above release/VERSION/bin/OS/ARCH/PROGRAM and PROGRAM.sha256.
	KubernetesReleasesEnv = "SNO_KUBERNETES_RELEASES"
	// EtcdReleasesEnv is the address above VERSION/etcd-VERSION-OS-ARCH.tar.gz and VERSION/SHA256SUMS.
	EtcdReleasesEnv = "SNO_ETCD_RELEASES"
	// KwokReleasesEnv is the address above VERSION/kwok-OS-ARCH.
	KwokReleasesEnv = "SNO_KWOK_RELEASES"
	// KwokSumEnv is the SHA-256 of kwok, for versions and platforms without one in this package.
	KwokSumEnv = "SNO_KWOK_SHA256"
	// GivenEnv names a folder with programs, as envtest has it.
	GivenEnv = "KUBEBUILDER_ASSETS"
)

type mode string

const (
	modeAuto     mode = "auto"     // download, and build what cannot be downloaded
	modeDownload mode = "download" // never build
	modeBuild    mode = "build"    // never download, and ignore what was downloaded
)

// ErrSetting is returned for a wrong value of an environment variable.
var ErrSetting = errors.New("wrong setting")

const (
	// firstByteTime limits the time from a request to the first byte of its answer.
	firstByteTime = 5 * time.Second
	// In each stallTime a body must grow by leastGrowth.
	stallTime   = 15 * time.Second
	leastGrowth = 16 << 10
)

type settings struct {
	mode                            mode
	envtest, kubernetes, etcd, kwok string // addresses
	kwokSum                         string
	os, arch                        string
	firstByte, stall                time.Duration
}

func readSettings(getenv func(string) string) (settings, error) {
	s := settings{
		mode: mode(getenv(ModeEnv)), kwokSum: strings.ToLower(getenv(KwokSumEnv)),
		os: runtime.GOOS, arch: runtime.GOARCH, firstByte: firstByteTime, stall: stallTime,
	}
	switch s.mode {
	case "":
		s.mode = modeAuto
	case modeAuto, modeDownload, modeBuild:
	default:
		return settings{}, fmt.Errorf("%w: %s=%s: it must be %s, %s or %s", ErrSetting, ModeEnv, s.mode, modeAuto, modeDownload, modeBuild)
	}
	if s.kwokSum != "" && !sha256Sum.is(s.kwokSum) {
		return settings{}, fmt.Errorf("%w: %s=%s: it must have %d hexadecimal digits", ErrSetting, KwokSumEnv, s.kwokSum, sha256Sum.digits)
	}
	for _, address := range []struct {
		name, usual string
		value       *string
	}{
		{EnvtestIndexEnv, "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml", &s.envtest},
		{KubernetesReleasesEnv, "https://dl.k8s.io", &s.kubernetes},
		{EtcdReleasesEnv, "https://github.com/etcd-io/etcd/releases/download", &s.etcd},
		{KwokReleasesEnv, "https://github.com/kubernetes-sigs/kwok/releases/download", &s.kwok},
	} {
		*address.value = strings.TrimSuffix(getenv(address.name), "/")
		if *address.value == "" {
			*address.value = address.usual
		}
		if u, err := url.Parse(*address.value); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			// The value may contain a password.
			return settings{}, fmt.Errorf("%w: %s: it must be an address such as %s", ErrSetting, address.name, address.usual)
		}
	}
	return s, nil
}
