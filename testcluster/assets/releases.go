// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// algorithm is that of a checksum.
type algorithm struct {
	name   string
	digits int
	new    func() hash.Hash
}

var (
	sha256Sum = algorithm{"SHA-256", hex.EncodedLen(sha256.Size), sha256.New}
	sha512Sum = algorithm{"SHA-512", hex.EncodedLen(sha512.Size), sha512.New}
)

func (a algorithm) is(sum string) bool {
	_, err := hex.DecodeString(sum)
	return err == nil && len(sum) == a.digits
}

// release is a file with a program.
type release struct {
	address   string
	algorithm algorithm
	sum       string
	// member is the base name of the program in an archive. Without it the file is the program.
	member string
}

// publisher offers a program.
type publisher struct {
	// document is the address of the document with the checksum. Without it this package has the checksum.
	document string
	find     func(document []byte) (release, error)
}

// errNotPublished is returned if a publisher has no such version or platform.
var errNotPublished = errors.New("not published")

// publishers returns those of a program in the order in which they are tried: none for a program that nobody publishes.
func publishers(program string, v versions, s settings) []publisher {
	switch program {
	case "etcd":
		return []publisher{inEnvtest(program, v, s), ofEtcd(v, s)}
	case "kube-apiserver", "kubectl":
		return []publisher{inEnvtest(program, v, s), ofKubernetes(program, v, s)}
	case "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubeadm", "kubelet":
		return []publisher{ofKubernetes(program, v, s)}
	case "kwok":
		return []publisher{ofKwok(v, s)}
	}
	return nil
}

// inEnvtest is the archive of envtest, in the index format of setup-envtest. The module of setup-envtest is not used:
// it requires a newer k8s.io/apimachinery than Kubernetes has here, and its client has no time limits.
func inEnvtest(program string, v versions, s settings) publisher {
	name := fmt.Sprintf("envtest-%s-%s-%s.tar.gz", v.kubernetes, s.os, s.arch)
	return publisher{document: s.envtest, find: func(document []byte) (release, error) {
		if isHTML(document) {
			return release{}, errHTML
		}
		var index struct {
			Releases map[string]map[string]struct{ Hash, SelfLink string }
		}
		if err := yaml.Unmarshal(document, &index); err != nil || len(index.Releases) == 0 {
			return release{}, errors.New("the index of envtest is not readable")
		}
		archive, ok := index.Releases[v.kubernetes][name]
		if !ok {
			return release{}, fmt.Errorf("%w: envtest has no %s", errNotPublished, name)
		}
		if !sha512Sum.is(archive.Hash) {
			return release{}, fmt.Errorf("the index of envtest has no SHA-512 of %s", name)
		}
		return release{address: archive.SelfLink, algorithm: sha512Sum, sum: archive.Hash, member: program}, nil
	}}
}

func ofKubernetes(program string, v versions, s settings) publisher {
	address := strings.Join([]string{s.kubernetes, "release", v.kubernetes, "bin", s.os, s.arch, program}, "/")
	return publisher{document: address + ".sha256", find: func(document []byte) (release, error) {
		// The file has nothing but the sum, in mirrors that sha256sum has filled also the name of the program.
		fields := strings.Fields(string(document))
		if isHTML(document) {
			return release{}, errHTML
		}
		if len(fields) == 0 || !sha256Sum.is(fields[0]) {
			return release{}, fmt.Errorf("no SHA-256 in %s.sha256", program)
		}
		return release{address: address, algorithm: sha256Sum, sum: fields[0]}, nil
	}}
}

// ofEtcd is the release of etcd itself, for versions that envtest lacks. It has no .tar.gz for other systems than
// Linux.
func ofEtcd(v versions, s settings) publisher {
	name := fmt.Sprintf("etcd-%s-%s-%s.tar.gz", v.etcd, s.os, s.arch)
	folder := s.etcd + "/" + v.etcd
	return publisher{document: folder + "/SHA256SUMS", find: func(document []byte) (release, error) {
		if isHTML(document) {
			return release{}, errHTML
		}
		for line := range strings.Lines(string(document)) {
			fields := strings.Fields(line)
			if len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == name && sha256Sum.is(fields[0]) {
				return release{address: folder + "/" + name, algorithm: sha256Sum, sum: fields[0], member: "etcd"}, nil
			}
		}
		return release{}, fmt.Errorf("no SHA-256 of %s in SHA256SUMS", name)
	}}
}

// kwokSums are the SHA-256 of kwok, whose releases have no file with checksums. They are those of packages that are
// made from the release's files, on which a Nix expression and a PKGBUILD agree (darwin: a Nix expression and a list of
// tools). A wrong one would make kwok be built.
var kwokSums = map[string]string{
	"v0.8.0/linux/amd64":  "f5a4385a2ae1b9dd7f8acae18e002a75c0ebba124ae9d7259aa8dadb50711f46",
	"v0.8.0/linux/arm64":  "628f7d277860f524a2a775c217adcc58828e7b59ab0933680315784f1b8b0e37",
	"v0.8.0/darwin/arm64": "69a064ec98d37844d9d742b5b28ff57825659a983ccc3e208daa6948b94d64ba",
}

func ofKwok(v versions, s settings) publisher {
	return publisher{find: func([]byte) (release, error) {
		sum := s.kwokSum
		if sum == "" {
			sum = kwokSums[strings.Join([]string{v.kwok, s.os, s.arch}, "/")]
		}
		if sum == "" {
			return release{}, fmt.Errorf("%w: testcluster/assets has no SHA-256 of kwok %s for %s/%s", errNotPublished, v.kwok, s.os, s.arch)
		}
		return release{address: fmt.Sprintf("%s/%s/kwok-%s-%s", s.kwok, v.kwok, s.os, s.arch), algorithm: sha256Sum, sum: sum}, nil
	}}
}

var errHTML = errors.New("the answer is an HTML page")

func isHTML(content []byte) bool {
	content = bytes.ToLower(bytes.TrimSpace(content[:min(len(content), 512)]))
	return bytes.HasPrefix(content, []byte("<!doctype html")) || bytes.HasPrefix(content, []byte("<html"))
}

// verify returns an error unless content of the sum may be used. The content's first bytes are for the error.
func (r release) verify(sum string, head []byte) error {
	switch {
	case strings.EqualFold(sum, r.sum):
		return nil
	case isHTML(head):
		return errHTML
	default:
		return fmt.Errorf("wrong checksum of %s: its %s is %s, not %s", path.Base(r.address), r.algorithm.name, sum, r.sum)
	}
}

// headBytes are enough for verify and checkExecutable.
const headBytes = 512

// checkExecutable returns an error unless a file with these first bytes is a program for the platform.
func checkExecutable(head []byte, os, arch string) error {
	var machine, want any
	switch {
	case len(head) < 20:
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)) && os == "linux":
		machine = elf.Machine(binary.LittleEndian.Uint16(head[18:])) // all platforms of the releases are little endian, or s390x
		want = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64}[arch]
		if arch == "s390x" {
			machine, want = elf.Machine(binary.BigEndian.Uint16(head[18:])), elf.EM_S390
		}
	case binary.LittleEndian.Uint32(head) == macho.Magic64 && os == "darwin":
		machine = macho.Cpu(binary.LittleEndian.Uint32(head[4:]))
		want = map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[arch]
	}
	switch {
	case machine == nil:
		return fmt.Errorf("not a program for %s", os)
	case machine != want:
		return fmt.Errorf("a program for %v, not for %s", machine, arch)
	}
	return nil
}
