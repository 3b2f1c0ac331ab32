package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Leak is a secret that was found.
type Leak struct {
	// Path is the name of the file, and the paths inside of archives, with slashes.
	Path string
	// Line begins at 1.
	Line int
	Kind Kind
}

// String returns one line.
func (l Leak) String() string { return fmt.Sprintf("%s:%d: %s", l.Path, l.Line, l.Kind) }

// ErrTooLarge is in the error about an archive that is larger than what is searched.
var ErrTooLarge = errors.New("larger than what is searched")

// largest is how much of a file is searched after it was decompressed.
const largest = 1 << 30

// Scan finds secrets in a text, and in archives: gzip and tar, also inside of each other. It finds what Redact replaces, and files that
// are secret by their name.
func Scan(r io.Reader, name string) ([]Leak, error) {
	text, err := io.ReadAll(io.LimitReader(r, largest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(text) > largest:
		return nil, fmt.Errorf("%s: %w", name, ErrTooLarge)
	}
	if isGzip(text) {
		unzipped, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return Scan(unzipped, name)
	}
	if isTar(text) {
		return scanTar(text, name)
	}
	found := &redactor{}
	found.redact(text)
	var leaks []Leak
	for _, f := range found.found {
		leaks = append(leaks, Leak{name, f.line, f.kind})
	}
	slices.SortStableFunc(leaks, func(a, b Leak) int { return a.Line - b.Line })
	return slices.Compact(leaks), nil
}

func scanTar(text []byte, name string) ([]Leak, error) {
	var leaks []Leak
	archive := tar.NewReader(bytes.NewReader(text))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return leaks, nil
		}
		if err != nil {
			return leaks, fmt.Errorf("%s: %w", name, err)
		}
		member := path.Join(name, header.Name)
		if kind := secretByName(header.Name); kind != "" && header.Typeflag == tar.TypeReg {
			leaks = append(leaks, Leak{member, 1, kind})
		}
		inside, err := Scan(archive, member)
		leaks = append(leaks, inside...)
		if err != nil {
			return leaks, err
		}
	}
}

// secretByName returns what a file holds whose name says that it is secret, or nothing. secrets-names.txt has names only.
func secretByName(name string) Kind {
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		switch {
		case part == "secrets-names.txt":
		case strings.HasSuffix(part, ".key"), part == "id_rsa", part == "id_ecdsa", part == "id_ed25519":
			return PrivateKey
		case strings.Contains(part, "kubeconfig"), part == ".kube":
			return Token
		case strings.Contains(part, "pull-secret"), part == ".docker", part == ".dockerconfigjson":
			return PullSecret
		case strings.Contains(part, "secret"):
			return SecretData
		case strings.Contains(part, "password"), part == "shadow", part == "htpasswd":
			return Password
		case strings.HasSuffix(part, ".ign"), strings.HasSuffix(part, ".db"):
			return SecretData // an Ignition config or a database has all of them
		}
	}
	return ""
}

func isGzip(text []byte) bool { return bytes.HasPrefix(text, []byte{0x1f, 0x8b}) }

func isTar(text []byte) bool { return len(text) > 262 && string(text[257:262]) == "ustar" }

// gunzip decompresses as much as it can.
func gunzip(text []byte) ([]byte, bool) {
	if !isGzip(text) {
		return nil, false
	}
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, false
	}
	unzipped, _ := io.ReadAll(io.LimitReader(reader, 16<<20))
	return unzipped, true
}
