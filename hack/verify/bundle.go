// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

// allRoleFile has the rules of the process with all controllers, in its own namespace.
const allRoleFile = "config/all/rbac/role.yaml"

// checkBundle writes the bundle and a catalogue into a temporary folder. The program checks them; the rules are also
// compared with the generated roles, because a kustomization could leave one out.
func checkBundle(ctx context.Context, ws *workspace.Workspace, _ io.Writer) (err error) {
	scratch, err := os.MkdirTemp("", "sno-bundle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	digest := "@sha256:" + strings.Repeat("0", 64)
	command := ws.Command(ctx, "hack", nil, "go", "run", "./cmd/bundle", "-out", scratch,
		"-image", "registry.invalid/sno/kubectl-sno"+digest, "-bundle-image", "registry.invalid/sno/bundle"+digest)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go run ./cmd/bundle: %w\n%s", err, out)
	}
	csv, err := os.ReadFile(filepath.Join(scratch, "bundle", "manifests", "sno.clusterserviceversion.yaml"))
	if err != nil {
		return err
	}
	cluster, operator := rules{}, rules{}
	for _, m := range ws.Modules {
		if !hasController(ws, m) {
			continue
		}
		if err := cluster.addRoles(ws, m.Dir+"/"+rbacDir+"/role.yaml", func(r role) bool { return r.Metadata.Namespace != "sno-system" }); err != nil {
			return err
		}
	}
	if err := operator.addRoles(ws, allRoleFile, func(r role) bool { return r.Metadata.Namespace == "sno-system" }); err != nil {
		return err
	}
	return bundleFaults(csv, cluster, operator).errorOrNil()
}

// rules are rules as JSON, and the file or field that has them.
type rules map[string]string

type permissions []struct {
	Rules []map[string]any `json:"rules"`
}

func (r rules) add(where string, p permissions) error {
	for _, permission := range p {
		for _, rule := range permission.Rules {
			text, err := json.Marshal(rule) // keys are sorted
			if err != nil {
				return err
			}
			r[string(text)] = where
		}
	}
	return nil
}

func (r rules) addRoles(ws *workspace.Workspace, file string, selects func(role) bool) error {
	data, err := os.ReadFile(ws.Path(file))
	if err != nil {
		return err
	}
	for _, document := range strings.Split("\n"+string(data), "\n---\n") {
		var head role
		p := make(permissions, 1)
		if err := errors.Join(yaml.Unmarshal([]byte(document), &head), yaml.Unmarshal([]byte(document), &p[0])); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if selects(head) {
			if err := r.add(file, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// bundleFaults compares the rules of a ClusterServiceVersion with those of roles.
func bundleFaults(csv []byte, cluster, operator rules) (faults Findings) {
	var has struct {
		Spec struct {
			Install struct {
				Spec struct{ Permissions, ClusterPermissions permissions }
			}
		}
	}
	if err := yaml.Unmarshal(csv, &has); err != nil {
		return Findings{err.Error()}
	}
	install := has.Spec.Install.Spec
	for _, side := range []struct {
		field string
		has   permissions
		want  rules
	}{{"clusterPermissions", install.ClusterPermissions, cluster}, {"permissions", install.Permissions, operator}} {
		got := rules{}
		if err := got.add(side.field, side.has); err != nil {
			return append(faults, err.Error())
		}
		for _, rule := range slices.Sorted(maps.Keys(side.want)) {
			if got[rule] == "" {
				faults = append(faults, fmt.Sprintf("bundle: %s lacks the rule %s of %s", side.field, rule, side.want[rule]))
			}
		}
		for _, rule := range slices.Sorted(maps.Keys(got)) {
			if side.want[rule] == "" {
				faults = append(faults, fmt.Sprintf("bundle: %s has the rule %s, which no role has", side.field, rule))
			}
		}
	}
	return faults
}
