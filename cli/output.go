package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// apiVersion is that of what is printed as JSON or YAML.
const apiVersion = "cli.sno.solonode.github.io/v1alpha1"

// errOutput is returned for an unknown -o.
var errOutput = errors.New("unknown output format")

// output is how an answer is printed.
type output struct {
	format, template string
	allowMissing     bool
	noHeaders        bool
}

func bindOutput(command *cobra.Command) *output {
	o := &output{allowMissing: true}
	command.Flags().StringVarP(&o.format, "output", "o", "", "Output format. One of: (wide, json, yaml, name, go-template, jsonpath).")
	command.Flags().StringVar(&o.template, "template", "", "Template for -o=go-template and -o=jsonpath.")
	command.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print no headers over tables.")
	complete(command, "output", func() []string { return []string{"wide", "json", "yaml", "name", "go-template", "jsonpath"} })
	return o
}

// answer is what a verb has found.
type answer struct {
	kind string
	// value becomes the fields of the object that is printed as JSON or YAML. It marshals to an object.
	value any
	// names are what -o name prints.
	names []string
	table *metav1.Table
}

// check reports an output format that there is not. It is called before there is work.
func (o *output) check() error {
	if slices.Contains([]string{"", "wide", "name"}, o.format) {
		return nil
	}
	_, err := o.printer()
	return err
}

func (o *output) printer() (printers.ResourcePrinter, error) {
	flags := genericclioptions.PrintFlags{
		OutputFormat: &o.format, JSONYamlPrintFlags: genericclioptions.NewJSONYamlPrintFlags(),
		TemplatePrinterFlags: &genericclioptions.KubeTemplatePrintFlags{
			GoTemplatePrintFlags: &genericclioptions.GoTemplatePrintFlags{AllowMissingKeys: &o.allowMissing, TemplateArgument: &o.template},
			JSONPathPrintFlags:   &genericclioptions.JSONPathPrintFlags{AllowMissingKeys: &o.allowMissing, TemplateArgument: &o.template},
			AllowMissingKeys:     &o.allowMissing, TemplateArgument: &o.template,
		},
	}
	printer, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("%w %q; want wide, json, yaml, name, go-template or jsonpath", errOutput, o.format)
	}
	return printer, err
}

// print writes the answer to standard output.
func (o *output) print(p *program, a answer) error {
	switch o.format {
	case "", "wide":
		return printers.NewTablePrinter(printers.PrintOptions{Wide: o.format == "wide", NoHeaders: o.noHeaders}).PrintObj(a.table, p.Out)
	case "name":
		for _, name := range a.names {
			fmt.Fprintln(p.Out, name)
		}
		return nil
	}
	printer, err := o.printer()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(a.value)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	fields["apiVersion"], fields["kind"] = apiVersion, a.kind
	return printer.PrintObj(&unstructured.Unstructured{Object: fields}, p.Out)
}

// table begins a table; a column whose name ends in "+" is only shown with -o wide.
func table(columns ...string) *metav1.Table {
	t := &metav1.Table{}
	for _, name := range columns {
		column := metav1.TableColumnDefinition{Name: strings.TrimSuffix(name, "+"), Type: "string"}
		if strings.HasSuffix(name, "+") {
			column.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, column)
	}
	return t
}

func row(t *metav1.Table, cells ...string) {
	var all []any
	for _, cell := range cells {
		all = append(all, cell)
	}
	t.Rows = append(t.Rows, metav1.TableRow{Cells: all})
}
