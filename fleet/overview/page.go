// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

var (
	//go:embed page.html.tmpl
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"class": func(s State) string { return strings.ToLower(s.String()) },
		"utc": func(t *time.Time) string {
			if t == nil {
				return ""
			}
			return t.UTC().Format(time.DateTime)
		},
	}).Parse(pageText))
)

// WriteHTML writes the table as one self-contained page, which is read without a network. Without scripts it does not
// sort and filter.
func (t Table) WriteHTML(w io.Writer, title string, at time.Time) error {
	type tally struct {
		State  State
		Number int
	}
	hash := sha256.Sum256([]byte(pageScript))
	page := struct {
		Title, Policy string
		At            *time.Time
		Style         template.CSS
		Script        template.JS
		Tallies       []tally
		Rows          Table
	}{
		Title: title, At: &at, Style: template.CSS(pageStyle), Script: template.JS(pageScript), Rows: t,
		// The browser runs the embedded script and loads nothing.
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
	}
	numbers := map[State]int{}
	for _, row := range t {
		numbers[row.State]++
	}
	for s := Refused; s >= Settled; s-- {
		if numbers[s] > 0 {
			page.Tallies = append(page.Tallies, tally{s, numbers[s]})
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, page); err != nil {
		return fmt.Errorf("page %q: %w", title, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
