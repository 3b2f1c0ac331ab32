// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/rotate"
)

const settingsFile = "sno-render.yaml"

type settings struct {
	Profile  inputs.Profile    `json:"profile"`
	Version  string            `json:"kubernetesVersion"`
	Release  string            `json:"release,omitempty"`
	Images   map[string]string `json:"images,omitempty"`
	Node     string            `json:"node,omitempty"`
	Validity string            `json:"validity"`
}

type options struct {
	settings
	input, output   string
	imageReferences string
	replace         bool
	verbose         bool
	validity        time.Duration
}

func (o *options) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.input, "input", "", "folder of manifests: resources of config.openshift.io, the control plane's Nodes, and other objects to create")
	flags.StringVar(&o.output, "output", "", "folder to write, which must not exist or be empty")
	flags.StringVar((*string)(&o.Profile), "profile", string(inputs.OpenShift), "openshift: images and commands of a release payload; kubernetes: upstream ones")
	flags.StringVar(&o.Version, "kubernetes-version", "", "version of Kubernetes, such as 1.35.2; default: that of the release payload")
	flags.StringVar(&o.imageReferences, "image-references", "", "file image-references of the release payload, for profile openshift")
	flags.StringToStringVar(&o.Images, "image", nil, "image by name, such as etcd=registry.example.com/etcd:3.6.8; may be repeated")
	flags.StringVar(&o.Node, "node", "", "control-plane node of the files, required if there are several")
	flags.DurationVar(&o.validity, "validity", inputs.DefaultValidity, "validity of certificates and signers; sno-render rotate renews them")
	flags.BoolVar(&o.replace, "replace", false, "replace the output folder if it has files")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "print a line for each control loop")
}

var (
	errPayload = errors.New("cannot read the image references")
	errOutput  = errors.New("cannot write the output")
)

func (o *options) render(ctx context.Context, out, errs io.Writer) error {
	if o.input == "" || o.output == "" {
		return fmt.Errorf("--input and --output are required; %w", errUsage)
	}
	if info, err := os.Stat(o.input); err != nil || !info.IsDir() {
		return fmt.Errorf("--input: no such folder: %s; %w", o.input, errUsage)
	}
	if o.imageReferences != "" {
		if err := o.readPayload(); err != nil {
			return err
		}
	}
	o.Validity = o.validity.String()
	run := run{settings: o.settings, input: os.DirFS(o.input), verbose: o.verbose, errs: errs}
	s, err := run.read(inputs.Read)
	if unready := files.CheckWritable(o.output, o.replace); unready != nil {
		// Reported together with the faults of the input.
		err = errors.Join(err, fmt.Errorf("%w: %w", errOutput, unready))
	}
	if err != nil {
		return err
	}
	result, err := run.render(ctx, s, nil)
	if err != nil {
		return err
	}
	write := files.Write
	if o.replace {
		write = files.Replace
	}
	if err := run.write(o.output, result, write); err != nil {
		return err
	}
	return run.summary(out, o.output, result)
}

func (o *options) readPayload() error {
	file, err := os.Open(o.imageReferences)
	if err != nil {
		return fmt.Errorf("%w: %w", errPayload, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	payload, err := inputs.ReadImageReferences(file)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errPayload, o.imageReferences, err)
	}
	given := o.Images
	o.Images = payload.Images
	maps.Copy(o.Images, given)
	if o.Version == "" {
		o.Version = payload.Version
	}
	o.Release = payload.Release
	return nil
}

type run struct {
	settings
	input   fs.FS
	verbose bool
	errs    io.Writer
	node    string
}

func (r *run) read(read func(fs.FS, time.Time) (*inputs.Cluster, error)) (*inputs.Settings, error) {
	cluster, err := read(r.input, time.Now())
	if err != nil {
		return nil, err
	}
	validity, err := time.ParseDuration(r.Validity)
	if err != nil {
		return nil, fmt.Errorf("validity: %w", err)
	}
	return cluster.Settings(inputs.Options{Profile: r.Profile, Images: r.Images, Version: r.Version, Release: r.Release, Validity: validity})
}

func (r *run) render(ctx context.Context, s *inputs.Settings, earlier *render.Result) (*render.Result, error) {
	for _, warning := range s.Warnings {
		fmt.Fprintln(r.errs, "warning:", warning)
	}
	if r.node = r.Node; r.node == "" {
		r.node = s.Nodes[0].Name
	}
	o := render.Options{Node: r.Node}
	if r.verbose {
		o.Report = func(report loop.Report) {
			fmt.Fprintf(r.errs, "%8s  %4d  %s\n", report.Duration.Round(time.Millisecond), len(report.Wrote), report.Loop)
		}
	}
	if earlier != nil {
		return render.Renew(ctx, s, earlier.Objects, o)
	}
	return render.Run(ctx, s, o)
}

func (r *run) write(dir string, result *render.Result, write func(string, []files.File) error) error {
	manifests, err := export.Manifests(result.Objects)
	if err != nil {
		return err
	}
	var all []files.File
	add := func(folder string, list []files.File) {
		for _, file := range list {
			file.Path = path.Join(folder, file.Path)
			all = append(all, file)
		}
	}
	add("manifests", export.Files(manifests))
	add("files", result.Files)
	for _, name := range slices.Sorted(maps.Keys(result.Kubeconfigs)) {
		add("auth", []files.File{{Path: name, Mode: 0o600, Content: result.Kubeconfigs[name]}})
	}
	input, err := inputFiles(r.input)
	if err != nil {
		return err
	}
	add("input", input)
	encoded, err := yaml.Marshal(r.settings)
	if err != nil {
		return err
	}
	add("", []files.File{{Path: settingsFile, Mode: 0o600, Content: encoded}})
	if err := write(dir, all); err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	return nil
}

// inputFiles returns the files that inputs.Read reads.
func inputFiles(folder fs.FS) ([]files.File, error) {
	var list []files.File
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name))) {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		list = append(list, files.File{Path: name, Mode: 0o600, Content: content})
		return err
	})
	return list, err
}

func (r *run) summary(out io.Writer, dir string, result *render.Result) error {
	fmt.Fprintf(out, "Rendered the control plane of node %s into %s\n\n", r.node, dir)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  manifests\t%s\tcreate them on the new API server in the order of their names\n", count(len(result.Objects), "object"))
	fmt.Fprintf(table, "  files\t%s\tcopy them to the root of the node\n", count(len(result.Files), "file"))
	fmt.Fprintf(table, "  auth\t%s\t\n", count(len(result.Kubeconfigs), "kubeconfig"))
	if err := table.Flush(); err != nil {
		return err
	}
	return printNextRenewal(out, result)
}

func printNextRenewal(out io.Writer, result *render.Result) error {
	due := rotate.NextRenewals(result.Objects, time.Now())
	if len(due) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\nThe next renewal is %s, on %s; it expires on %s.\n", due[0].Object, due[0].At.Format(time.DateOnly), due[0].End.Format(time.DateOnly))
	return err
}
