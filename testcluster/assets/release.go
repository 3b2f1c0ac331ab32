// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Environment variables. Those with an address have a public server as their default, and may name a mirror of the same
// layout.
const (
	// ModeEnv is auto (the default), download or build.
	ModeEnv = "SNO_ASSETS"
	// KubernetesReleasesEnv is the address above release/VERSION/bin/OS/ARCH/PROGRAM and PROGRAM.sha256.
	KubernetesReleasesEnv = "SNO_KUBERNETES_RELEASES"
	// EtcdReleasesEnv is the address above VERSION/etcd-VERSION-OS-ARCH.tar.gz and VERSION/SHA256SUMS.
	EtcdReleasesEnv = "SNO_ETCD_RELEASES"
	// KwokReleasesEnv is the address above VERSION/kwok-OS-ARCH.
	KwokReleasesEnv = "SNO_KWOK_RELEASES"
)

type mode string

const (
	modeAuto     mode = "auto"     // download, and build what cannot be downloaded
	modeDownload mode = "download" // never build
	modeBuild    mode = "build"    // never download, and ignore what was downloaded
)

var (
	// ErrSetting is returned for a wrong value of an environment variable.
	ErrSetting = errors.New("wrong setting")
	// ErrNotDownloaded is returned in mode download for programs that cannot be downloaded.
	ErrNotDownloaded = errors.New("not downloaded")
)

func readMode() (mode, error) {
	switch m := mode(os.Getenv(ModeEnv)); m {
	case "":
		return modeAuto, nil
	case modeAuto, modeDownload, modeBuild:
		return m, nil
	default:
		return "", fmt.Errorf("%w: %s=%s: it must be %s, %s or %s", ErrSetting, ModeEnv, m, modeAuto, modeDownload, modeBuild)
	}
}

// kwokSums are the SHA-256 of kwok, whose releases have no file with checksums. They are those of packages that are
// made from the release's files, on which a Nix expression and a PKGBUILD agree (darwin: a Nix expression and a list of
// tools). A wrong one would make kwok be built.
var kwokSums = map[string]string{
	"v0.8.0/linux/amd64":  "f5a4385a2ae1b9dd7f8acae18e002a75c0ebba124ae9d7259aa8dadb50711f46",
	"v0.8.0/linux/arm64":  "628f7d277860f524a2a775c217adcc58828e7b59ab0933680315784f1b8b0e37",
	"v0.8.0/darwin/arm64": "69a064ec98d37844d9d742b5b28ff57825659a983ccc3e208daa6948b94d64ba",
}

// release is a published file: a program, or a .tar.gz with it.
type release struct {
	address string
	sums    string // address of the document with the SHA-256; empty if sum is known
	sum     string
}

// releaseOf returns where a program is published. An address is empty for one that nobody publishes.
func releaseOf(program string, v versions, platformOS, arch string) release {
	server := func(env, usual string) string {
		if mirror := strings.TrimSuffix(os.Getenv(env), "/"); mirror != "" {
			return mirror
		}
		return usual
	}
	switch program {
	case "etcd":
		folder := server(EtcdReleasesEnv, "https://github.com/etcd-io/etcd/releases/download") + "/" + v.etcd
		return release{address: fmt.Sprintf("%s/etcd-%s-%s-%s.tar.gz", folder, v.etcd, platformOS, arch), sums: folder + "/SHA256SUMS"}
	case "kwok":
		folder := server(KwokReleasesEnv, "https://github.com/kubernetes-sigs/kwok/releases/download") + "/" + v.kwok
		if sum := kwokSums[strings.Join([]string{v.kwok, platformOS, arch}, "/")]; sum != "" {
			return release{address: fmt.Sprintf("%s/kwok-%s-%s", folder, platformOS, arch), sum: sum}
		}
		return release{}
	default:
		servers := server(KubernetesReleasesEnv, "https://dl.k8s.io")
		address := strings.Join([]string{servers, "release", v.kubernetes, "bin", platformOS, arch, program}, "/")
		return release{address: address, sums: address + ".sha256"}
	}
}

// download puts the recipe's programs into a folder as far as they can be downloaded. It returns the origin of each,
// and in one line why the others are missing. All servers are asked at once, so that a machine without a network waits
// for the slowest of them only.
func (r recipe) download(ctx context.Context, folder string, progress io.Writer) (origins map[string]string, missing string, err error) {
	fmt.Fprintf(progress, "Downloading Kubernetes %s (once)\n", r.version)
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(progress, "  "+format+"\n", args...)
	}
	origins = map[string]string{}
	var failures []string
	var group sync.WaitGroup
	for _, name := range r.names() {
		group.Go(func() {
			release := releaseOf(name, r.versions, runtime.GOOS, runtime.GOARCH)
			origin, err := release.fetch(ctx, name, folder, say)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err.Error())
				return
			}
			origins[name] = origin
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, "", fmt.Errorf("download Kubernetes %s: %w", r.version, err)
	}
	slices.Sort(failures)
	return origins, strings.Join(slices.Compact(failures), "; "), nil
}

// fetch puts the program of a release into the folder, verified and with its name only when it is complete. It returns
// its host and SHA-256. Errors have the host of the address, but not the rest, which may contain a password.
func (r release) fetch(ctx context.Context, name, folder string, say func(string, ...any)) (origin string, err error) {
	if r.address == "" {
		return "", fmt.Errorf("testcluster/assets has no SHA-256 of %s for %s/%s", name, runtime.GOOS, runtime.GOARCH)
	}
	parsed, err := url.Parse(r.address)
	if err != nil || parsed.Host == "" {
		return "", fmt.Errorf("%w: the address of %s is not valid", ErrSetting, name)
	}
	host := parsed.Host
	defer func() {
		var wrapped *url.Error // contains the whole address
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		var offline *net.OpError // the same for all programs of the host
		if errors.As(err, &offline) {
			err = fmt.Errorf("%s: %w", host, offline.Err)
		} else if err != nil {
			err = fmt.Errorf("%s: %s: %w", host, path.Base(r.address), err)
		}
	}()
	started := time.Now()
	want := r.sum
	if r.sums != "" {
		var document bytes.Buffer
		if err := get(ctx, r.sums, &document, nil); err != nil {
			return "", err
		}
		if want = sumIn(document.String(), path.Base(r.address)); want == "" {
			return "", fmt.Errorf("no SHA-256 in %s, which begins with %.40q", path.Base(r.sums), document.String())
		}
	}
	work, err := os.MkdirTemp(folder, "."+name+"-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	file := filepath.Join(work, path.Base(r.address))
	sum, err := save(ctx, r.address, file, func(megabytes int64) { say("%s: %d MB", name, megabytes) })
	if err != nil {
		return "", err
	}
	if !strings.EqualFold(sum, want) {
		return "", fmt.Errorf("wrong checksum: its SHA-256 is %s, not %s", sum, want)
	}
	if strings.HasSuffix(file, ".tar.gz") {
		archive := file
		file = filepath.Join(work, name)
		if err := extract(archive, name, file); err != nil {
			return "", err
		}
	}
	if err := errors.Join(os.Chmod(file, 0o755), os.Rename(file, filepath.Join(folder, name))); err != nil {
		return "", err
	}
	say("%s: downloaded from %s in %s, SHA-256 %s", name, host, time.Since(started).Round(100*time.Millisecond), sum)
	return host + " " + sum, nil
}

// sumIn returns the SHA-256 of a file in a document that has lines of sums and names, or nothing but a sum.
func sumIn(document, file string) string {
	for line := range strings.Lines(document) {
		fields := strings.Fields(line)
		if len(fields) == 1 || len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			if sum, err := hex.DecodeString(fields[0]); err == nil && len(sum) == sha256.Size {
				return fields[0]
			}
		}
	}
	return ""
}

// save writes the content of an address into a file and returns its SHA-256.
func save(ctx context.Context, address, file string, report func(megabytes int64)) (string, error) {
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	err = get(ctx, address, io.MultiWriter(out, digest), report)
	return hex.EncodeToString(digest.Sum(nil)), errors.Join(err, out.Close())
}

// silence is how long a server may send nothing. A variable for tests.
var silence = 10 * time.Second

var client = &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("more than 5 redirects")
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errors.New("a redirect to an address without TLS")
	}
	return nil
}}

// get writes the content of an address to out, and reports its size every five seconds.
func get(ctx context.Context, address string, out io.Writer, report func(megabytes int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := &watched{silence: time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing received for %s", silence)) }), report: report}
	defer body.silence.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // it was only read
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s (%s)", response.Status, path.Base(address))
		}
		body.Reader, body.reported = response.Body, time.Now()
		_, err = io.Copy(out, body)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause // instead of what the client reports then
	}
	return err
}

// watched is a body that may not be silent for long.
type watched struct {
	io.Reader
	silence  *time.Timer
	report   func(megabytes int64)
	reported time.Time
	size     int64
}

func (w *watched) Read(p []byte) (int, error) {
	w.silence.Reset(silence)
	n, err := w.Reader.Read(p)
	w.silence.Stop() // a slow disk is not a silent server
	w.size += int64(n)
	if w.report != nil && time.Since(w.reported) >= reportEvery {
		w.reported = time.Now()
		w.report(w.size >> 20)
	}
	return n, err //nolint:wrapcheck // io.EOF
}

// extract writes the regular file with the base name of a .tar.gz.
func extract(archive, name, to string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("find %s in the archive: %w", name, err)
		}
		if header.Typeflag != tar.TypeReg || path.Base(header.Name) != name {
			continue
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, files)
		return errors.Join(err, out.Close())
	}
}

// describe returns the origins as one line, such as "downloaded from dl.k8s.io: kubelet sha256 12ab...; built from
// source: kwok", or nothing if all are built.
func describe(origins map[string]string, built []string) string {
	byHost := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(origins)) {
		host, sum, _ := strings.Cut(origins[name], " ")
		byHost[host] = append(byHost[host], name+" sha256 "+sum)
	}
	var parts []string
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		parts = append(parts, "downloaded from "+host+": "+strings.Join(byHost[host], ", "))
	}
	if len(parts) > 0 && len(built) > 0 {
		parts = append(parts, Built+": "+strings.Join(built, ", "))
	}
	return strings.Join(parts, "; ")
}
