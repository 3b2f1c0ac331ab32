// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// checkBundle writes the bundle and a catalogue into a temporary folder. The program checks them; the rules are also
// compared with the generated roles, because a kustomization could leave one out.
func checkBundle(ctx context.Context, r repo) (err error) {
	scratch, err := os.MkdirTemp("", "sno-bundle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	digest := "@sha256:" + strings.Repeat("0", 64)
	if err := r.run(ctx, "hack", "go", "run", "./cmd/bundle", "-out", scratch,
		"-image", "registry.invalid/sno/kubectl-sno"+digest, "-bundle-image", "registry.invalid/sno/bundle"+digest); err != nil {
		return err
	}
	csv, err := os.ReadFile(filepath.Join(scratch, "bundle", "manifests", "sno.clusterserviceversion.yaml"))
	if err != nil {
		return err
	}
	var roles, own []role
	for _, m := range r.Modules {
		if hasController(r.Workspace, m) {
			found, err := readRoles(r.Workspace, m.Dir+"/"+roleFile)
			if err != nil {
				return err
			}
			// Those for a Lease of their own are replaced by one of allRoleFile.
			roles = append(roles, slices.DeleteFunc(found, func(r role) bool { return r.Metadata.Namespace == "sno-system" })...)
		}
	}
	if own, err = readRoles(r.Workspace, allRoleFile); err != nil {
		return err
	}
	own = slices.DeleteFunc(own, func(r role) bool { return r.Metadata.Namespace != "sno-system" })
	return bundleFaults(csv, roles, own).orNil()
}

// bundleFaults compares the rules of a ClusterServiceVersion with those of roles.
func bundleFaults(csv []byte, cluster, operator []role) (faults findings) {
	var has struct {
		Spec struct {
			Install struct {
				Spec struct{ Permissions, ClusterPermissions []role }
			}
		}
	}
	if err := yaml.Unmarshal(csv, &has); err != nil {
		return findings{err.Error()}
	}
	install := has.Spec.Install.Spec
	compare := func(field string, has, want []role) {
		got, wanted := rulesOf(has), rulesOf(want)
		for _, text := range slices.Sorted(maps.Keys(wanted)) {
			if !got[text] {
				faults = append(faults, fmt.Sprintf("bundle: %s lacks the rule %s", field, text))
			}
		}
		for _, text := range slices.Sorted(maps.Keys(got)) {
			if !wanted[text] {
				faults = append(faults, fmt.Sprintf("bundle: %s has the rule %s, which no role has", field, text))
			}
		}
	}
	compare("clusterPermissions", install.ClusterPermissions, cluster)
	compare("permissions", install.Permissions, operator)
	return faults
}

func rulesOf(roles []role) map[string]bool {
	rules := map[string]bool{}
	for _, role := range roles {
		for _, rule := range role.Rules {
			text, _ := json.Marshal(rule) // lists of strings cannot fail
			rules[string(text)] = true
		}
	}
	return rules
}
