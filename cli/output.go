// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

var errOutput = errors.New("unknown output format")

type output struct {
	format, template string
	noHeaders        bool
}

func (p *program) bindOutput(command *cobra.Command) {
	command.Flags().StringVarP(&p.output.format, "output", "o", "", "Output format. One of: (wide, json, yaml, name, go-template, jsonpath).")
	command.Flags().StringVar(&p.output.template, "template", "", "Template for -o=go-template and -o=jsonpath.")
	command.Flags().BoolVar(&p.output.noHeaders, "no-headers", false, "Do not print the headers of tables.")
	complete(command, "output", "wide", "json", "yaml", "name", "go-template", "jsonpath")
}

// answer is the result of a command: value for JSON and YAML, names for -o name.
type answer struct {
	kind  string
	value any
	names []string
	table *metav1.Table
}

func (o *output) printer() (printers.ResourcePrinter, error) {
	switch o.format {
	case "", "wide":
		return printers.NewTablePrinter(printers.PrintOptions{Wide: o.format == "wide", NoHeaders: o.noHeaders}), nil
	case "name":
		return printers.NewDiscardingPrinter(), nil // print handles names
	}
	flags := genericclioptions.NewPrintFlags("").WithDefaultOutput(o.format)
	*flags.TemplatePrinterFlags.TemplateArgument = o.template
	printer, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("%w %q; use wide, json, yaml, name, go-template or jsonpath", errOutput, o.format)
	}
	return printer, err
}

func (p *program) print(a answer) error {
	printer, err := p.output.printer()
	if err != nil {
		return err
	}
	switch p.output.format {
	case "", "wide":
		return printer.PrintObj(a.table, p.Out)
	case "name":
		for _, name := range a.names {
			fmt.Fprintln(p.Out, name)
		}
		return nil
	}
	text, err := json.Marshal(a.value)
	fields := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	fields["apiVersion"], fields["kind"] = "cli.sno.solonode.github.io/v1alpha1", a.kind
	return printer.PrintObj(&unstructured.Unstructured{Object: fields}, p.Out)
}

// table returns an empty table. Columns that end in "+" are printed with -o wide only.
func table(columns ...string) *metav1.Table {
	t := &metav1.Table{}
	for _, column := range columns {
		name, wide := strings.CutSuffix(column, "+")
		definition := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			definition.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, definition)
	}
	return t
}

func row(t *metav1.Table, cells ...any) { t.Rows = append(t.Rows, metav1.TableRow{Cells: cells}) }

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress replaces the progress line of a terminal; an empty text removes it.
func (p *program) progress(text string) {
	if isTerminal(p.ErrOut) {
		fmt.Fprint(p.ErrOut, "\r\x1b[K"+text)
	}
}
