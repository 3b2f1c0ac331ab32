// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
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
	var cluster []rbacv1.ClusterRole
	for _, m := range r.Modules {
		if hasController(r.Workspace, m) {
			roles, err := r.readRoles(m.Dir + "/" + roleFile)
			if err != nil {
				return err
			}
			cluster = append(cluster, roles...)
		}
	}
	own, err := r.readRoles(allRoleFile)
	if err != nil {
		return err
	}
	// The roles of controllers for a Lease in their namespace are replaced by one of allRoleFile.
	inNamespace := func(r rbacv1.ClusterRole) bool { return r.Namespace == "sno-system" }
	cluster = slices.DeleteFunc(cluster, inNamespace)
	own = slices.DeleteFunc(own, func(r rbacv1.ClusterRole) bool { return !inNamespace(r) })
	return bundleFaults(csv, cluster, own).orNil()
}

// bundleFaults compares the rules of a ClusterServiceVersion with those of roles.
func bundleFaults(text []byte, cluster, own []rbacv1.ClusterRole) (faults findings) {
	var csv struct {
		Spec struct {
			Install struct {
				Spec struct{ Permissions, ClusterPermissions []rbacv1.ClusterRole }
			}
		}
	}
	if err := yaml.Unmarshal(text, &csv); err != nil {
		return findings{err.Error()}
	}
	install := csv.Spec.Install.Spec
	if diff := cmp.Diff(rulesOf(cluster), rulesOf(install.ClusterPermissions)); diff != "" {
		faults = append(faults, "clusterPermissions of the bundle (+) are not the rules of the roles (-):\n"+diff)
	}
	if diff := cmp.Diff(rulesOf(own), rulesOf(install.Permissions)); diff != "" {
		faults = append(faults, "permissions of the bundle (+) are not those of "+allRoleFile+" (-):\n"+diff)
	}
	return faults
}

func rulesOf(roles []rbacv1.ClusterRole) (rules []string) {
	for _, role := range roles {
		for _, rule := range role.Rules {
			rules = append(rules, strings.Join(cells(rule), " "))
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
