// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/patch"
)

var pageFile = flag.String("page", "", "file for the sample page")

func samplePage(t *testing.T) []byte {
	t.Helper()
	var spokes []*spoke
	for i := range 40 {
		s := newSpoke(t, fmt.Sprintf("east-%d", i), map[string]patch.Result{"ingress": inForce, "auth": inForce})
		switch {
		case i == 7:
			s = newSpoke(t, "east-7", map[string]patch.Result{"ingress": {State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: "<b>Owned</b> by a person"}})
		case i%13 == 0:
			s = newSpoke(t, s.cluster.Name, map[string]patch.Result{"ingress": rolling})
		}
		spokes = append(spokes, s)
	}
	var page bytes.Buffer
	if err := table(spokes...).WriteHTML(&page, "Fleet of hub-1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if *pageFile != "" {
		if err := os.WriteFile(*pageFile, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return page.Bytes()
}

// probe sorts and filters as a person does, and records what is visible.
const probe = `
const errors = [];
addEventListener("error", (e) => errors.push(String(e.message)));
addEventListener("securitypolicyviolation", (e) => errors.push("blocked: " + e.violatedDirective));
addEventListener("load", () => {
  const names = () => [...document.querySelectorAll("summary")].filter((e) => e.getBoundingClientRect().height > 0).map((e) => e.textContent);
  const some = () => { const all = names(); return all.length + ": " + all.slice(0, 3).join(" "); };
  const facts = { first: some() };
  const press = (name) => [...document.querySelectorAll("thead button")].find((e) => e.textContent === name).click();
  press("Cluster"); facts.sorted = some();
  press("Cluster"); facts.reversed = some();
  press("State"); press("State"); facts.worst = some();
  const form = document.forms[0], set = (name, value) => { form.elements[name].value = value; form.dispatchEvent(new Event("input")); };
  set("state", "Progressing"); facts.progressing = some();
  set("text", "east-3"); facts.both = some();
  facts.counted = form.querySelector("output").textContent;
  set("state", ""); set("text", "by a person"); facts.message = some();
  facts.closed = String(document.querySelector("tbody:not([hidden]) .modules").getBoundingClientRect().height);
  document.querySelector("tbody:not([hidden]) details").open = true;
  facts.open = String(document.querySelector("tbody:not([hidden]) .modules").getBoundingClientRect().height > 0 && document.querySelector("tbody:not([hidden]) .modules").textContent.includes("<b>Owned</b>"));
  facts.wide = String(document.documentElement.scrollWidth - document.documentElement.clientWidth);
  facts.errors = errors.join("; ");
  for (const [name, value] of Object.entries(facts)) document.body.dataset[name] = value;
});
`

func TestPageInABrowser(t *testing.T) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("NOT TESTED: the page needs chromium on the PATH")
	}
	hash := sha256.Sum256([]byte(probe))
	page := bytes.Replace(samplePage(t), []byte("script-src "), []byte("script-src 'sha256-"+html.EscapeString(base64.StdEncoding.EncodeToString(hash[:]))+"' "), 1)
	page = bytes.Replace(page, []byte("</head>"), []byte("<script>"+probe+"</script></head>"), 1)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+filepath.Join(filepath.Dir(file), "profile"), "--window-size=1200,900", "--dump-dom", "file://"+file)
	command.WaitDelay = time.Second
	dom, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`data-([a-z]+)="([^"]*)"`).FindAllStringSubmatch(regexp.MustCompile(`<body[^>]*>`).FindString(string(dom)), -1) {
		got[m[1]] = m[2]
	}
	want := map[string]string{
		"first": "40: east-7 east-0 east-13", "sorted": "40: east-0 east-1 east-2", "reversed": "40: east-39 east-38 east-37",
		"worst": "40: east-7 east-0 east-13", "progressing": "4: east-0 east-13 east-26", "both": "1: east-39", "counted": "1 of 40 clusters",
		"message": "1: east-7", "closed": "0", "open": "true", "wide": "0", "errors": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The page loads nothing, and texts of clusters are no markup.
func TestPage(t *testing.T) {
	page := string(samplePage(t))
	for _, not := range []string{"<b>Owned", "src=", "href=", "http:", "@import"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
	if n := strings.Count(page, "<tbody data-state="); n != 40 || !strings.Contains(page, "&lt;b&gt;Owned") {
		t.Errorf("%d rows", n)
	}
	if err := (overview.Table{}).WriteHTML(&bytes.Buffer{}, "Nothing", time.Now()); err != nil {
		t.Error(err)
	}
}
