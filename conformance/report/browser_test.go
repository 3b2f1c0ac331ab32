// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var samplePageFile = flag.String("page", "", "file for the sample page")

const browserTime = 2 * time.Minute

// probe is added to a page and records what is visible after loading.
const probe = `
const errors = [];
addEventListener("error", (e) => errors.push(String(e.message)));
addEventListener("securitypolicyviolation", (e) => errors.push("blocked: " + e.violatedDirective));
addEventListener("load", () => {
  const seen = (e) => e.getBoundingClientRect().height > 0;
  const open = [...document.querySelectorAll(".detail")].filter(seen);
  const facts = {
    errors: errors.join("; "),
    cells: document.querySelectorAll("a.cell").length,
    open: open.map((e) => e.id).join(" "),
    current: [...document.querySelectorAll("[aria-current]")].map((e) => e.dataset.opens).join(" "),
    lines: open.flatMap((e) => [...e.querySelectorAll(".evidence tbody tr")]).filter(seen).length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    clipped: [...document.querySelectorAll("a.cell, .matrix th span")].filter((e) => e.scrollWidth > e.clientWidth + 1).length,
  };
  PRESS
  for (const [name, value] of Object.entries(facts)) document.body.dataset[name] = value;
});
`

func browse(t *testing.T, page []byte, fragment string, width int, press string) map[string]string {
	t.Helper()
	program := browser(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "page.html")
	// The page's own policy stays, and allows the probe too.
	script := strings.Replace(probe, "PRESS", press, 1)
	hash := sha256.Sum256([]byte(script))
	page = bytes.Replace(page, []byte("script-src "), []byte("script-src 'sha256-"+html.EscapeString(base64.StdEncoding.EncodeToString(hash[:]))+"' "), 1)
	page = bytes.Replace(page, []byte("</head>"), []byte("<script>"+script+"</script></head>"), 1)
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return dataset(t, dump(t, program, file, fragment, width))
}

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: the HTML page needs chromium or google-chrome on the PATH")
	return ""
}

func dump(t *testing.T, program, file, fragment string, width int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	defer cancel()
	address := url.URL{Scheme: "file", Path: file, Fragment: fragment}
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+filepath.Join(filepath.Dir(file), "profile"), fmt.Sprintf("--window-size=%d,1100", width), "--dump-dom", address.String())
	command.Stderr = &stderr
	command.WaitDelay = time.Second
	dom, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, stderr.String())
	}
	return string(dom)
}

var (
	bodyTag   = regexp.MustCompile(`<body[^>]*>`)
	attribute = regexp.MustCompile(`data-([a-z]+)="([^"]*)"`)
)

func dataset(t *testing.T, dom string) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for _, m := range attribute.FindAllStringSubmatch(bodyTag.FindString(dom), -1) {
		facts[m[1]] = html.UnescapeString(m[2])
	}
	if len(facts) == 0 {
		t.Fatalf("the probe recorded nothing:\n%.2000s", dom)
	}
	return facts
}
