// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planted is a text with secrets.
type planted struct {
	text    string
	secrets []string
}

// Lines that must be kept, around each text.
const before, after = "kubelet started pod etcd-cp-1\n---\n", "\n---\nreplicas: 3\n"

// plant returns the texts of which all kinds of files are made. The secrets in the literals are in «».
func plant() []planted {
	var der []byte
	for i := range byte(4) {
		sum := sha512.Sum512([]byte{i})
		der = append(der, sum[:]...)
	}
	block := strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	lines := strings.Split(block, "\n")
	for i := range lines[2:] {
		lines[i+1] = "«" + lines[i+1] + "»"
	}
	key := strings.Join(lines, "\n")
	each := func(prefix, s string) string { return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) }
	encoded := func(s string) string {
		s = base64.StdEncoding.EncodeToString([]byte(s))
		return s[:4] + "«" + s[4:] + "»"
	}
	wrapped := regexp.MustCompile(`.{76}|.+$`).ReplaceAllString(base64.StdEncoding.EncodeToString([]byte(block)), "«$0»\n")
	const journal, secret = "Nov 25 09:00:00 cp-1 bootkube.sh[123]: ", "data:\n  x: «aHVudGVy»\nkind: Secret\nstringData:\n  y: |\n    «plain-text»"
	var all []planted
	for _, text := range []string{
		// Private keys.
		key, strings.ReplaceAll(key, "PRIVATE", "RSA PRIVATE"), each(journal, key), "tls.key: |\n" + each("  ", key), `{"a":"x\n` + strings.ReplaceAll(key, "\n", `\n`) + `\n"}`,
		strings.Join(lines[:3], "\n"), "-----BEGIN PRIVATE KEY-----\n«MC4CAQAwBQYDK2Vw»\n«BCIEIAABAgME»\n", strings.Join(lines[2:], "\n"), "tls.key: " + encoded(block), `x\n` + encoded(block), wrapped,
		"read " + encoded(string(der)), "read «" + base64.RawURLEncoding.EncodeToString(der) + "»", "read «" + hex.EncodeToString(der) + "»",
		`"source": "data:,«` + url.PathEscape(block) + "»", `"source": "data:text/plain;charset=utf-8;base64,«aHVudGVy»"`,
		// Kubeconfigs, pull secrets and Secrets.
		"users:\n- user:\n    client-key-data: «c2hvcnQta2V5»", "kubeconfig: " + encoded("users:\n- user:\n    client-key-data: c2hvcnQta2V5\n"),
		`{"auths":{"quay.io":{"auth":"«dXNlcjpodW50ZXIy»","email":"a@example.com"}}}`, ".dockerconfigjson: " + encoded(`{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIy"}}}`),
		secret, each(journal, secret), "items:\n- apiVersion: v1\n  data:\n    x: «aHVudGVy»\n  kind: Secret\nkind: List", `{"last":"{\"kind\":\"Secret\",\"data\":{\"x\":\"«aHVudGVy»\"}}"}`,
		"{\n  \"items\": [\n    {\n      \"data\": {\n        \"x\": \"«aHVudGVy»\"\n      },\n      \"kind\": \"Secret\"\n    }\n  ]\n}",
		`{"kind":"SecretList","items":[{"metadata":{"name":"s"},"data":{"x":"«aHVudGVy»"}}]}`,
		// Fields, variables and flags.
		"token: «hunter2»", `{"token":"«hunter2»","a":1}`, `{"x":"{\"token\":\"«hunter2»\",\"a\":1}"}`, "token: |\n  «hunter2»\n\n  «hunter3»", each(journal, "token: |\n  «hunter2»\n\n  «hunter3»"), "sent the token: «hunter2»",
		"kubelet --bootstrap-token=«abcdef.0123456789» --v=2", "tool --token «hunter2» --v 2", `["--token", "«hunter2»"]`,
		"DB_PASSWORD=«hunter2»", `Environment="A=b" "DB_PASSWORD=«hunter2»"`, "export DB_PASSWORD=«correct» «horse»", "env DB_PASS=«hunter2» A=«b-after-it»", "MYSQL_PWD=«hunter3»",
		`{"name":"DB_PASSWORD","value":"«hunter2»"}`, "{\n \"name\": \"DB_PASSWORD\",\n \"value\": \"«hunter2»\"\n}", "- name: DB_PASSWORD\n  value: «hunter2»",
		"password: «correct» «horse» «battery»", "{\"password\":\n    \"«hunter2» and more\"}", "aws_secret_access_key = «hunter2»", `apiKey: '«hunter2»'`, "client-secret: «hunter2»", "--passphrase=«hunter2»",
		// Credentials in URLs and headers, and of curl.
		"HTTPS_PROXY=http://«user:hunter2»@proxy.example.com:3128", "http_proxy=http://user:«a@b»@proxy.example.com", "https_proxy=user:«hunter2»@proxy.example.com",
		`DefaultEnvironment="HTTP_PROXY=http://user:«hunt%%40er»@proxy.example.com"`, "clone https://«ghp0123»@example.com/repo", "+ curl -sk -u admin:«hunter2» https://a",
		`curl --user "admin:«hunter2»" https://a`, `curl -H "Authorization: Bearer «abcDEF»"`, "sent bearer «a1b2c3d4e5f6» to it", "Proxy-Authorization: Basic «dXNlcjpodW50ZXIy»",
		"sent basic «dXNlcjpodW50ZXIy»", "Cookie: openshift-session=«hunter2»",
		// Tokens and hashes by their form.
		"got «eyJhbGciOiJSUzI1NiIsImtpZCI6IkEifQ».«eyJzdWIiOiJzeXN0ZW06YWRtaW4ifQ».«c2lnbmF0dXJlLW9mLXRoZS10b2tlbg» for it", "user «sha256~0123456789abcdefghij» logged in",
		"joined with «abcdef.0123456789abcdef» today", "with «ghp_" + strings.Repeat("aB3", 10) + "»", "with «github_pat_" + strings.Repeat("aB", 10) + "»", "with «glpat-" + strings.Repeat("a", 20) + "»",
		"with «xoxb-0123456789»", "with «AKIAIOSFODNN7EXAMPLE»", "kubeadmin and «aBcD2-fGhI3-kLmN4-pQrS5»", "core:«$6$rounds5000$abcdefghijklmnop.qrstuvwxyz»:19000:0",
		"admin: «$2a$10$N9qo8uLOickgx2ZMRZoMyeIj»",
	} {
		var secrets []string
		for _, m := range regexp.MustCompile(`«(.*?)»`).FindAllStringSubmatch(text, -1) {
			secrets = append(secrets, m[1][:min(len(m[1]), 16)], m[1][max(len(m[1])-16, 0):]) // no part may be left
		}
		all = append(all, planted{before + strings.NewReplacer("«", "", "»", "").Replace(text) + after, secrets})
	}
	return all
}

// leaked returns the secrets that are in a text.
func (p planted) leaked(text string) []string {
	return slices.DeleteFunc(slices.Clone(p.secrets), func(s string) bool { return !strings.Contains(text, s) })
}

// Every secret is replaced, other lines are kept, and a second run replaces nothing (R-BIP-23).
func TestRedact(t *testing.T) {
	for _, p := range plant() {
		clean := string(Redact([]byte(p.text)))
		if leaked := p.leaked(clean); len(leaked) > 0 {
			t.Errorf("%q is in\n%s", leaked, clean)
		}
		if !strings.HasPrefix(clean, before) || !strings.HasSuffix(clean, after) || strings.Count(clean, "\n") != strings.Count(p.text, "\n") {
			t.Errorf("lines are gone from\n%s", clean)
		}
		if diff := cmp.Diff(clean, string(Redact([]byte(clean)))); diff != "" {
			t.Errorf("found again: %s", diff)
		}
	}
}

// Other text is kept.
func TestHarmless(t *testing.T) {
	for _, text := range []string{
		"automountServiceAccountToken: true", "tokenExpirationSeconds: 3600", "secretName: router-certs-default", "volumes:\n- name: token\n  projected: {}",
		`failed to fetch token: serviceaccounts "default" not found`, `failed to list *v1.Secret: secrets is forbidden: User "system:node:cp-1"`,
		"image: quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("0123456789abcdef", 4), "digest " + strings.Repeat("0123456789abcdef", 8),
		"see https://docs.example.com:8443/a@b", "uid: 5f3b2a10-2f6c-4b1e-9c7d-0123456789ab", "data:\n  x: y\nkind: ConfigMap",
		"NO_PROXY=.cluster.local,10.0.0.0/16", "bypass: none of it", "config.authentication.k8s.io", "env: TOKEN=$(TOKEN) TOKEN=${TOKEN}",
		"curl -fsSL -o out https://example.com:8443/a", "$1 and ${2} of a script", "kube-aaaaa-bbbbb-ccccc-ddddd",
		"k8s_POD_etcd-cp-1_openshift-etcd_5f3b2a102f6c4b1e9c7d0123456789ab_0",
	} {
		if clean := Redact([]byte(text)); string(clean) != text {
			t.Error(cmp.Diff(text, string(clean)))
		}
	}
}

// What is beyond the budget is replaced without a search.
func TestBudget(t *testing.T) {
	if got, want := string(redact([]byte("a\nb: c\nd\n"), 7)), "a\nb: c\n"+placeholder+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// No text around a secret hides it, and the number of lines stays.
func FuzzRedact(f *testing.F) {
	secrets := plant()
	f.Add("kind: Secret\ntoken: |", "  x: y\nPRIVATE KEY")
	f.Add("-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("QUFB", 20), "%2B\\n\"{")
	f.Fuzz(func(t *testing.T, above, below string) {
		for _, p := range secrets {
			text := above + "\n" + p.text + below
			clean := string(Redact([]byte(text)))
			if leaked := p.leaked(clean); len(leaked) > len(p.leaked(above+below)) || strings.Count(clean, "\n") != strings.Count(text, "\n") {
				t.Errorf("%q is in, or lines are missing from\n%s", leaked, clean)
			}
		}
	})
}
