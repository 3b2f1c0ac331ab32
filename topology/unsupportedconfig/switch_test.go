// SPDX-License-Identifier: Apache-2.0

package unsupportedconfig_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/topology/unsupportedconfig"
)

const key = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"

func TestRead(t *testing.T) {
	yes, no, none := unsupportedconfig.Switch{Present: true, Value: true}, unsupportedconfig.Switch{Present: true}, unsupportedconfig.Switch{}
	for name, test := range map[string]struct {
		raw  string
		want unsupportedconfig.Switch
	}{
		"no bytes":         {"", none},
		"white space":      {" \n\t", none},
		"JSON null":        {"null", none},
		"YAML null":        {"~", none},
		"a comment":        {"# nothing\n", none},
		"empty JSON":       {" {} ", none},
		"other JSON keys":  {`{"oauthConfig":{"a":[1]}}`, none},
		"other YAML keys":  {"oauthConfig:\n  a: [1]\n", none},
		"nested JSON":      {`{"oauthConfig":{"` + key + `":true}}`, none},
		"nested YAML":      {"oauthConfig:\n  " + key + ": true\n", none},
		"other spelling":   {`{"` + strings.ToLower(key) + `":true}`, none},
		"null as value":    {`{"` + key + `":null}`, none},
		"nothing as value": {key + ":\n", none},

		"JSON true":            {`{"` + key + `":true}`, yes},
		"JSON false":           {`{"` + key + `":false}`, no},
		"JSON among others":    {` { "a": {"` + key + `": false}, "` + key + `": true, "b": [] }` + "\n", yes},
		"JSON with tabs":       {"{\n\t\"" + key + "\":\ttrue\n}", yes},
		"YAML true":            {key + ": true", yes},
		"YAML false":           {key + ": false\n", no},
		"YAML 1.1 boolean":     {key + ": yes\n", yes},
		"YAML among others":    {"---\na: b\n" + key + ": true # why\n", yes},
		"YAML string true":     {key + `: "true"`, yes},
		"YAML string false":    {key + ": 'False'", no},
		"JSON string true":     {`{"` + key + `":"true"}`, yes},
		"JSON string TRUE":     {`{"` + key + `":"TRUE"}`, yes},
		"JSON string t":        {`{"` + key + `":"t"}`, yes},
		"JSON string 1":        {`{"` + key + `":"1"}`, yes},
		"JSON string 0":        {`{"` + key + `":"0"}`, no},
		"JSON string F":        {`{"` + key + `":"F"}`, no},
		"JSON escape":          {`{"` + key + `":"tru\u0065"}`, yes},
		"JSON escape in a key": {`{"\u0075` + key[1:] + `":true}`, yes},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := unsupportedconfig.Read([]byte(test.raw), key)
			if err != nil || got != test.want {
				t.Errorf("%+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	const document, field = "spec.unsupportedConfigOverrides: ", "spec.unsupportedConfigOverrides." + key + " is "
	for name, test := range map[string]struct{ raw, message string }{
		"half a document":      {`{"` + key + `":tr`, document},
		"unclosed":             {`{"` + key + `":true`, document},
		"no comma":             {`{"a":1 "` + key + `":true}`, document},
		"trailing comma":       {`{"` + key + `":true,}`, document},
		"broken elsewhere":     {`{"` + key + `":true,"a":nul}`, document},
		"braces without JSON":  {`{` + key + `: true}`, document},
		"something follows":    {`{"` + key + `":false}{"` + key + `":true}`, document},
		"number as key":        {`{1:true}`, document},
		"tab in YAML":          {"\t" + key + ": true", document},
		"two colons":           {key + ": true: false", document},
		"list":                 {`[{"` + key + `":true}]`, document + "not an object"},
		"text":                 {key, document + "not an object"},
		"JSON inside a string": {`"{\"` + key + `\":true}"`, document + "not an object"},
		"number":               {"1", document + "not an object"},
		"boolean":              {"true", document + "not an object"},
		"twice in JSON":        {`{"` + key + `":true,"` + key + `":false}`, "duplicate field"},
		"twice with an escape": {`{"` + key + `":true,"\u0075` + key[1:] + `":false}`, "duplicate field"},
		"twice in YAML":        {key + ": true\n" + key + ": false\n", "already set"},

		"string maybe":        {`{"` + key + `":"maybe"}`, field + `"maybe"; want true or false`},
		"string yes":          {`{"` + key + `":"yes"}`, field + `"yes"`},
		"empty string":        {`{"` + key + `":""}`, field + `""`},
		"string with a space": {`{"` + key + `":"true "}`, field + `"true "`},
		"mixed case":          {key + `: "tRuE"`, field + `"tRuE"`},
		"JSON number":         {`{"` + key + `":1}`, field + "1"},
		"JSON object":         {`{"` + key + `":{"enabled":true}}`, field + `{"enabled":true}`},
		"JSON list":           {`{"` + key + `":[true]}`, field + "[true]"},
		"YAML number":         {key + ": 0", field + "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := unsupportedconfig.Read([]byte(test.raw), key)
			if !errors.Is(err, unsupportedconfig.ErrUnreadable) || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%v; want %v with %q", err, unsupportedconfig.ErrUnreadable, test.message)
			}
			if got != (unsupportedconfig.Switch{}) {
				t.Errorf("%+v with an error", got)
			}
		})
	}
}

func TestReadKeepsTheRest(t *testing.T) {
	_, values, err := unsupportedconfig.Read([]byte("other: {a: [1]}\n"+key+": true\n"), key)
	if err != nil || len(values) != 2 || string(values["other"]) != `{"a":[1]}` || string(values[key]) != "true" {
		t.Errorf("%s, %v", values, err)
	}
}

func TestDeprecation(t *testing.T) {
	for override, message := range map[unsupportedconfig.Switch]string{
		{}:                           "",
		{Present: true}:              "deprecated and false, which changes nothing",
		{Present: true, Value: true}: "deprecated: it is honored",
	} {
		got := override.Deprecation(key)
		if (message == "") != (got == "") || !strings.Contains(got, message) || (got != "" && !strings.Contains(got, key)) {
			t.Errorf("%+v: %q, want a message with %q and the key", override, got, message)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, example := range []string{"", "{}", "null", `{"` + key + `":true}`, key + ": 'true'\n", `{"` + key + `":[`, "- a\n", "a: &a [*a]"} {
		f.Add([]byte(example))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		override, _, err := unsupportedconfig.Read(raw, key)
		if err != nil && (override != unsupportedconfig.Switch{} || !errors.Is(err, unsupportedconfig.ErrUnreadable)) {
			t.Errorf("%+v with %v", override, err)
		}
		if override.Value && !override.Present {
			t.Error("true but absent")
		}
		again, _, errAgain := unsupportedconfig.Read(append(append([]byte{'\n'}, raw...), '\n'), key)
		if err == nil && errAgain == nil && again != override {
			t.Errorf("%+v, and %+v with white space around it", override, again)
		}
	})
}
