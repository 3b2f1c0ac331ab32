// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/install/node"
)

type planted struct {
	text string
	// secrets are parts of the text that must be replaced.
	secrets []string
	kind    Kind
}

const before, after = "kubelet started pod etcd-cp-1", "replicas: 3"

func plant(t testing.TB) map[string]planted {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	lines := strings.Split(strings.TrimSpace(block), "\n")
	body := lines[1 : len(lines)-1]
	kind := func(kind string) string { return strings.ReplaceAll(block, "PRIVATE", kind+"PRIVATE") }
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	journal := func(s string) string {
		var out []string
		for line := range strings.Lines(s) {
			out = append(out, "Nov 25 09:00:00 cp-1 bootkube.sh[123]: "+line)
		}
		return strings.Join(out, "")
	}
	quoted, err := json.Marshal("apiVersion: v1\n" + block)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write([]byte(block))
	_ = zip.Close()
	jwt := "eyJhbGciOiJSUzI1NiIsImtpZCI6IkEifQ.eyJzdWIiOiJzeXN0ZW06YWRtaW4ifQ.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"
	wrapped := b64(block)
	var wrap []string
	for i := 0; i < len(wrapped); i += 76 {
		wrap = append(wrap, wrapped[i:min(i+76, len(wrapped))])
	}
	return map[string]planted{
		"PEM":                     {block, body, PrivateKey},
		"RSA PEM":                 {kind("RSA "), body, PrivateKey},
		"EC PEM":                  {kind("EC "), body, PrivateKey},
		"encrypted PEM":           {kind("ENCRYPTED "), body, PrivateKey},
		"OpenSSH PEM":             {kind("OPENSSH "), body, PrivateKey},
		"PEM in a journal":        {journal(block), body, PrivateKey},
		"PEM in YAML":             {"tls.key: |\n  " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n  "), body, PrivateKey},
		"PEM in JSON":             {`{"a":` + string(quoted) + `}`, body, PrivateKey},
		"PEM without its end":     {strings.Join(lines[:3], "\n"), body[:2], PrivateKey},
		"PEM without beginning":   {strings.Join(lines[2:], "\n"), body[1:], PrivateKey},
		"base64 of PEM":           {"  tls.key: " + b64(block), []string{b64(block)[40:]}, PrivateKey},
		"base64, wrapped":         {strings.Join(wrap, "\n"), wrap, PrivateKey},
		"base64, after a letter":  {`x\n` + b64(block), []string{b64(block)[40:]}, PrivateKey},
		"gzip in a data URL":      {`"source": "data:;base64,` + base64.StdEncoding.EncodeToString(zipped.Bytes()) + `"`, []string{base64.StdEncoding.EncodeToString(zipped.Bytes())[20:]}, PrivateKey},
		"percent-encoded":         {`"source": "data:,` + url.PathEscape(block) + `"`, []string{url.PathEscape(body[0])}, PrivateKey},
		"kubeconfig":              {"- name: admin\n  user:\n    client-key-data: c2hvcnQta2V5", []string{"c2hvcnQta2V5"}, Password},
		"kubeconfig in base64":    {"kubeconfig: " + b64("users:\n- user:\n    client-key-data: c2hvcnQta2V5\n"), []string{b64("users:\n- user:\n    client")[:30]}, Password},
		"JWT":                     {"got " + jwt + " for the kubelet", []string{"eyJzdWIi", "c2lnbmF0"}, Token},
		"bearer":                  {`curl -H "Authorization: Bearer abc123DEF456"`, []string{"abc123DEF456"}, Token},
		"bearer without a header": {`sent bearer a1b2c3d4e5f6 to it`, []string{"a1b2c3d4e5f6"}, Token},
		"OAuth token":             {`user sha256~0123456789abcdefghijABCDEFGHIJ0123456789abc logged in`, []string{"0123456789abcdefghij"}, Token},
		"token field":             {"token: hunter", []string{"hunter"}, Password},
		"token in JSON":           {`{"token":"hunter","a":1}`, []string{"hunter"}, Password},
		"token in JSON in JSON":   {`{"x":"{\"token\":\"hunter\",\"a\":1}"}`, []string{"hunter"}, Password},
		"token as a flag":         {"kubelet --bootstrap-token=abcdef.0123456789 --v=2", []string{"abcdef.0123456789"}, Password},
		"token as an argument":    {"tool --token hunter2 --v 2", []string{"hunter2"}, Password},
		"token as a block":        {"token: |\n  hunter2\n  hunter3", []string{"hunter2", "hunter3"}, Token},
		"variable":                {"DB_PASSWORD=hunter2", []string{"hunter2"}, Password},
		"variable of a pod":       {`{"name":"DB_PASSWORD","value":"hunter2"}`, []string{"hunter2"}, Password},
		"variable of a pod, YAML": {"- name: DB_PASSWORD\n  value: hunter2", []string{"hunter2"}, Password},
		"pull secret":             {`{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIy","email":"a@example.com"}}}`, []string{"dXNlcjpodW50ZXIy"}, PullSecret},
		"pull secret in base64":   {".dockerconfigjson: " + b64(`{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIy"}}}`), []string{b64(`{"auths":{"quay.io":`)[:20]}, PullSecret},
		"basic":                   {"Proxy-Authorization: Basic dXNlcjpodW50ZXIy", []string{"dXNlcjpodW50ZXIy"}, Token},
		"password hash":           {"core:$6$rounds5000$abcdefghijklmnop.qrstuvwxyz:19000:0", []string{"abcdefghijklmnop"}, PasswordHash},
		"bcrypt":                  {"kubeadmin: $2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy", []string{"N9qo8uLOickgx"}, PasswordHash},
		"password of kubeadmin":   {"login with kubeadmin and aBcD2-fGhI3-kLmN4-pQrS5 now", []string{"fGhI3"}, Password},
		"proxy":                   {"HTTPS_PROXY=http://user:hunter2@proxy.example.com:3128", []string{"hunter2"}, URLCredentials},
		"proxy without a scheme":  {"https_proxy=user:hunter2@proxy.example.com:3128", []string{"hunter2"}, URLCredentials},
		"proxy in a unit":         {`DefaultEnvironment="HTTP_PROXY=http://user:hunt%%40er@proxy.example.com"`, []string{"hunt%%40er"}, URLCredentials},
		"token in a URL":          {"clone https://ghp0123@example.com/repo", []string{"ghp0123"}, URLCredentials},
		"Secret, JSON":            {`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"x":"aHVudGVy"},"type":"Opaque"}`, []string{"aHVudGVy"}, SecretData},
		"Secret, JSON in JSON":    {`{"last":"{\"kind\":\"Secret\",\"data\":{\"x\":\"aHVudGVy\"}}"}`, []string{"aHVudGVy"}, SecretData},
		"Secrets of kubectl, JSON": {"{\n  \"kind\": \"List\",\n  \"items\": [\n    {\n      \"data\": {\n        \"x\": \"aHVudGVy\"\n      },\n      \"kind\": \"Secret\"\n    }\n  ]\n}",
			[]string{"aHVudGVy"}, SecretData},
		"list of the API":                  {`{"kind":"SecretList","items":[{"metadata":{"name":"s"},"data":{"x":"aHVudGVy"}}]}`, []string{"aHVudGVy"}, SecretData},
		"Secret, YAML":                     {"apiVersion: v1\ndata:\n  x: aHVudGVy\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  y: |\n    plain", []string{"aHVudGVy", "plain"}, SecretData},
		"Secrets of kubectl, YAML":         {"items:\n- apiVersion: v1\n  data:\n    x: aHVudGVy\n  kind: Secret\n  metadata:\n    name: s\nkind: List", []string{"aHVudGVy"}, SecretData},
		"password with spaces":             {"password: correct horse battery", []string{"horse", "battery"}, Password},
		"password with spaces, exported":   {"export DB_PASSWORD=correct horse", []string{"correct", "horse"}, Password},
		"pass":                             {"env DB_PASS=hunter2 MYSQL_PWD=hunter3", []string{"hunter2", "hunter3"}, Password},
		"curl -u":                          {"+ curl -sk -u admin:hunter2 https://example.com", []string{"hunter2"}, Password},
		"curl --user":                      {`curl --user "admin:hunter2" https://example.com`, []string{"hunter2"}, Password},
		"proxy, @ in the password":         {"http_proxy=http://user:a@b@proxy.example.com:3128", []string{"a@b"}, URLCredentials},
		"proxy without scheme, @":          {"HTTPS_PROXY=user:a@b@proxy.example.com:3128", []string{"a@b"}, URLCredentials},
		"token of kubeadm":                 {"joined with abcdef.0123456789abcdef today", []string{"0123456789abcdef"}, Token},
		"token of GitHub":                  {"cloning with ghp_" + strings.Repeat("aB3", 12), []string{"aB3aB3"}, Token},
		"fine-grained token of GitHub":     {"with github_pat_" + strings.Repeat("aB3", 12), []string{"aB3aB3"}, Token},
		"key in DER, base64":               {"read " + base64.StdEncoding.EncodeToString(der), []string{base64.StdEncoding.EncodeToString(der)[8:40]}, PrivateKey},
		"key in DER, base64, with the URL": {"read " + base64.RawURLEncoding.EncodeToString(der), []string{base64.RawURLEncoding.EncodeToString(der)[8:40]}, PrivateKey},
		"key in DER, hexadecimal":          {"read " + hex.EncodeToString(der), []string{hex.EncodeToString(der)[8:40]}, PrivateKey},
		"key in PEM, hexadecimal":          {"read " + strings.ToUpper(hex.EncodeToString([]byte(block))), []string{strings.ToUpper(hex.EncodeToString([]byte(block)))[8:40]}, PrivateKey},
		"UTF-16":                           {"file " + b64(utf16le(block)), []string{b64(utf16le(block))[8:40]}, PrivateKey},
		"auth on the next line":            {"{\"quay.io\": {\"auth\":\n    \"" + b64("me:hunter2") + "\"}}", []string{b64("me:hunter2")}, Password},
		"password on the next line":        {"{\"password\":\n    \"hunter2 and more\"}", []string{"hunter2"}, Password},
		"Secret, YAML, in a journal":       {journal("data:\n  x: aHVudGVy\nkind: Secret\n"), []string{"aHVudGVy"}, SecretData},
	}
}

// Every secret is replaced, other lines are kept, and a second run replaces nothing (R-BIP-23).
func TestRedact(t *testing.T) {
	for name, p := range plant(t) {
		t.Run(name, func(t *testing.T) {
			text := before + "\n---\n" + p.text + "\n---\n" + after + "\n"
			for _, s := range p.secrets {
				if !strings.Contains(text, s) {
					t.Fatalf("%q is not in the text: the test is wrong", s)
				}
			}
			clean, kinds := Redact(t.Context(), []byte(text))
			for _, s := range p.secrets {
				if strings.Contains(string(clean), s) {
					t.Errorf("%q is still in\n%s", s, clean)
				}
			}
			if !slices.Contains(kinds, p.kind) {
				t.Errorf("kinds %v, want %s", kinds, p.kind)
			}
			for _, want := range []string{before + "\n", "\n" + after + "\n"} {
				if !strings.Contains(string(clean), want) {
					t.Errorf("%q is gone from\n%s", want, clean)
				}
			}
			if a, b := strings.Count(text, "\n"), bytes.Count(clean, []byte("\n")); a != b {
				t.Errorf("%d lines became %d", a, b)
			}
			if again, kinds := Redact(t.Context(), clean); len(kinds) > 0 {
				t.Errorf("found again: %v: %s", kinds, cmp.Diff(string(clean), string(again)))
			}
		})
	}
}

func utf16le(s string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

// bomb is a line of which each level of base64 and gzip is small, and all levels together are large.
func bomb(t *testing.T, levels, size int) []byte {
	t.Helper()
	text := bytes.Repeat([]byte("harmless words "), size/15)
	for range levels {
		var zipped bytes.Buffer
		w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = []byte(base64.StdEncoding.EncodeToString(zipped.Bytes()) + "\n")
	}
	return text
}

// The work for a text is limited by its size. An encoding of which not all can be checked is replaced.
func TestRedactNestedEncodings(t *testing.T) {
	text := bytes.Repeat(bomb(t, 2, 8<<20), 100)
	left := budgetFactor*len(text) + budgetBase
	budget := left
	r := &redactor{ended: func() bool { return false }, left: &left}
	clean := r.redact(text)
	if left > 0 || budget-left > 2*budget+1 {
		t.Errorf("%d bytes were decoded for %d, want about the budget of %d", budget-left, len(text), budget)
	}
	if !slices.Contains(r.found, Unchecked) || !bytes.Contains(clean, []byte(placeholder)) {
		t.Errorf("found %v", slices.Compact(r.found))
	}
	small := bomb(t, 2, 1<<10)
	if clean, kinds := Redact(t.Context(), small); len(kinds) > 0 || !bytes.Equal(clean, small) {
		t.Errorf("harmless text in nested encodings: %v", kinds)
	}
}

// After the end of the context nothing of the text is left but its number of lines.
func TestRedactInterrupted(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if clean, kinds := Redact(ctx, []byte("a\npassword: hunter2\nb\n")); string(clean) != placeholder+"\n\n\n" || !slices.Equal(kinds, []Kind{Unchecked}) {
		t.Errorf("%q, %v", clean, kinds)
	}
}

// Other text is kept.
func TestHarmless(t *testing.T) {
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: bytes.Repeat([]byte("certificate"), 40)}))
	for _, text := range []string{
		certificate,
		"ca.crt: " + base64.StdEncoding.EncodeToString([]byte(certificate)),
		"automountServiceAccountToken: true",
		"tokenExpirationSeconds: 3600",
		`failed to fetch token: serviceaccounts "default" not found`,
		"image: quay.io/openshift-release-dev/ocp-release@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"see https://docs.example.com:8443/a@b", "uid: 5f3b2a10-2f6c-4b1e-9c7d-0123456789ab",
		"secretName: router-certs-default", "volumes:\n- name: token\n  projected: {}", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDummyDummyDummyDummyDummyDummyDummyDumm core",
		"data:\n  x: y\nkind: ConfigMap\n---\nkind: Secret\nmetadata:\n  name: s",
		"NO_PROXY=.cluster.local,10.0.0.0/16", "bypass: none of it", "config.authentication.k8s.io", "abcdef.abcdefghijklmnop",
		"digest " + strings.Repeat("0123456789abcdef", 8), "curl -fsSL -o out https://example.com:8443/a", "$1 and ${2} of a script", "kube-aaaaa-bbbbb-ccccc-ddddd",
	} {
		if clean, kinds := Redact(t.Context(), []byte(text)); string(clean) != text {
			t.Errorf("%v: %s", kinds, cmp.Diff(text, string(clean)))
		}
	}
}

func archive(t *testing.T, members map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range members {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func programs(t *testing.T, journal string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"systemctl":  `case "$1" in list-units) echo "  UNIT LOAD ACTIVE SUB"; echo "* bad.service loaded failed failed Bad";; *) echo "$@";; esac`,
		"journalctl": `echo "journal $*"; cat ` + filepath.Join(dir, "journal"),
		"ip":         `echo "ip $*"`,
		"crictl": `case "$1" in ps) echo '{"containers":[{"id":"c1","metadata":{"name":"etcd"}},{"id":"../../x","metadata":{"name":"a/b"}}]}';;
			*) echo "crictl $*"; cat ` + filepath.Join(dir, "journal") + `;; esac`,
		"podman": `echo "no such storage" >&2; exit 7`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "journal"), []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func unpacked(t *testing.T, text []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		all[header.Name] = string(content)
	}
}

// The bundle of a live system with every secret in a journal, an asset and a file with a secret name has none of them.
// Other lines are kept, and failures are noted. The node's bundle includes that of the live system (R-BIP-23).
func TestBundle(t *testing.T) {
	root, secrets, journal := t.TempDir(), plant(t), ""
	put(t, root, node.LiveSettings, "profile: kubernetes\n")
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		text := before + "\n---\n" + secrets[name].text + "\n---\n" + after + "\n"
		journal += text
		put(t, root, node.LiveDir+"/assets/"+strings.ReplaceAll(name, " ", "-")+".txt", text)
	}
	for _, name := range []string{"auth/kubeconfig", "tls/a.key", "manifests/pull-secret.yaml", "master.ign", "etcd-snapshot.db", "secrets/a.txt"} {
		put(t, root, node.LiveDir+"/"+name, "planted-by-name")
	}
	put(t, root, node.LiveDir+"/etcd-bootstrap/manifests/a.yaml", "planted-by-name") // manifests/ has it too
	for name, kind := range map[string]string{"a.yaml": "kind: Secret\n", "b.json": "{\n  \"kind\": \"MachineConfig\"}\n"} {
		put(t, root, node.LiveDir+"/manifests/"+name, kind+"x: planted-by-name\n")
	}
	put(t, root, "etc/resolv.conf", "nameserver 192.0.2.1\n")
	put(t, root, node.StatusDir+"/bootstrap-in-place.json", `{"state":"Running"}`)
	o := Options{Root: root, ID: "bootstrap", Programs: programs(t, journal)}
	file := filepath.Join(root, node.LogBundle)
	if err := File(t.Context(), file, o); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	check := func(top string, want ...string) map[string]string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := unpacked(t, text)
		for name, content := range all {
			if _, kinds := Redact(t.Context(), []byte(content)); len(kinds) > 0 || secretByName(name) != "" {
				t.Errorf("%s has secrets: %v", name, kinds)
			}
			for kind, p := range secrets {
				for _, s := range p.secrets {
					if len(s) > 5 && s != "hunter" && strings.Contains(content, s) {
						t.Errorf("%s has the secret of %q", name, kind)
					}
				}
			}
			if strings.Contains(content, "planted-by-name") || !strings.HasPrefix(name, top+"/") {
				t.Errorf("%s is in the bundle", name)
			}
		}
		for _, name := range want {
			if _, ok := all[top+"/"+name]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
		return all
	}
	all := check("log-bundle-bootstrap", "gather.log", "failed-units.txt", "unit-status/bad.service.txt", "unit-status/bad.service.log",
		"bootstrap/journals/bootkube.log", "bootstrap/journals/kubelet.log", "bootstrap/containers/etcd-c1.log", "bootstrap/containers/etcd-c1.inspect",
		"bootstrap/network/ip-addr.txt", "bootstrap/network/ip-route.txt", "bootstrap/network/resolv.conf",
		"bootstrap/status/bootstrap-in-place.json",
		"rendered-assets/openshift/sno-install.yaml")
	if got := strings.Count(all["log-bundle-bootstrap/bootstrap/journals/bootkube.log"], before); got != len(secrets) {
		t.Errorf("%d of %d harmless lines are left", got, len(secrets))
	}
	log := all["log-bundle-bootstrap/gather.log"]
	for _, want := range []string{"podman ps --all --format=json: exit status 7: no such storage", "tls/a.key: omitted", "secrets: omitted", "resources: omitted", "auth/kubeconfig: omitted", "manifests/b.json: omitted"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in\n%s", want, log)
		}
	}

	if err := os.RemoveAll(filepath.Join(root, node.LiveDir)); err != nil {
		t.Fatal(err)
	}
	put(t, root, "proc/sys/kernel/hostname", "cp-1\n")
	file = filepath.Join(root, "node.tar.gz")
	o.ID = "2"
	if err := File(t.Context(), file, o); err != nil {
		t.Fatal(err)
	}
	check("log-bundle-2", "log-bundle-bootstrap/bootstrap/journals/bootkube.log", "control-plane/cp-1/failed-units.txt",
		"control-plane/cp-1/journals/post-reboot.log", "control-plane/cp-1/containers/etcd-c1.log", "control-plane/cp-1/network/ip-addr.txt",
		"control-plane/cp-1/network/hostname.txt")

	for content, want := range map[string]string{"": "not found, so the bundle has the logs of the node only", "\x1f\x8b": "is damaged"} {
		if err := os.Remove(filepath.Join(root, node.LogBundle)); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			put(t, root, node.LogBundle, content)
		}
		if err := File(t.Context(), file, o); err != nil {
			t.Fatal(err)
		}
		if log := check("log-bundle-2", "control-plane/cp-1/failed-units.txt")["log-bundle-2/gather.log"]; !strings.Contains(log, want) {
			t.Errorf("%q is not in\n%s", want, log)
		}
		if content == "" {
			put(t, root, node.LogBundle, "")
		}
	}
}

// The newest lines are kept, omissions are noted, and no bundle is larger than its limit.
func TestLimit(t *testing.T) {
	root := t.TempDir()
	put(t, root, node.LiveSettings, "profile: kubernetes\n")
	var journal strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&journal, "line %d %x\n", i, i*i*i)
	}
	o := Options{Root: root, ID: "1", Programs: programs(t, journal.String())}
	bundle := func(limit int64) (map[string]string, int, error) {
		o.Limit = limit
		var out bytes.Buffer
		err := Bundle(t.Context(), &out, o)
		if err != nil {
			return nil, 0, err
		}
		return unpacked(t, out.Bytes()), out.Len(), nil
	}
	_, whole, err := bundle(0)
	if err != nil || whole < 12<<10 {
		t.Fatalf("%d bytes, %v: the test needs a larger bundle", whole, err)
	}
	for _, limit := range []int64{8 << 10, 4 << 10} {
		all, size, err := bundle(limit)
		if err != nil || int64(size) > limit {
			t.Fatalf("%d bytes, limit %d: %v", size, limit, err)
		}
		text := all["log-bundle-1/bootstrap/journals/bootkube.log"]
		if !strings.HasSuffix(text, fmt.Sprintf("line 1499 %x\n", 1499*1499*1499)) || strings.Contains(text, "line 0 ") || !strings.HasPrefix(text, "line ") {
			t.Errorf("limit %d: kept %.30q ... of %d bytes", limit, text, len(text))
		}
		if want := "bootkube.log: the oldest "; !strings.Contains(all["log-bundle-1/gather.log"], want) {
			t.Errorf("limit %d: no %q in the notes", limit, want)
		}
	}
	if _, _, err := bundle(100); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, id := range []string{"", "../x", "a/b", ".", "a b", "$(id)"} {
		if err := Bundle(t.Context(), io.Discard, Options{ID: id}); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v", id, err)
		}
	}
	dir := t.TempDir()
	put(t, dir, "file", "")
	if err := File(t.Context(), filepath.Join(dir, "file", "x"), Options{ID: "1"}); err == nil {
		t.Error("no error without a folder")
	}
}

// No text around a secret hides it, and the number of lines stays.
func FuzzRedact(f *testing.F) {
	secrets := plant(f)
	f.Add("", "")
	f.Add("token: |", "  more")
	f.Add("kind: Secret\ndata:", "  x: y\nPRIVATE KEY")
	f.Add("-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("QUFB", 20), "%2B\\n\"{")
	f.Fuzz(func(t *testing.T, above, below string) {
		for name, p := range secrets {
			text := above + "\n---\n" + p.text + "\n---\n" + below
			clean, _ := Redact(t.Context(), []byte(text))
			if a, b := strings.Count(text, "\n"), bytes.Count(clean, []byte("\n")); a != b {
				t.Errorf("%s: %d lines became %d", name, a, b)
			}
			for _, s := range p.secrets {
				if strings.Contains(string(clean), s) && !strings.Contains(above+below, s) {
					t.Errorf("%s: %q is still in\n%s", name, s, clean)
				}
			}
		}
	})
}
