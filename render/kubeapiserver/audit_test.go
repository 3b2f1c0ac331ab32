// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"
)

func TestAuditPolicy(t *testing.T) {
	const none, metadata, bodies = auditv1.LevelNone, auditv1.LevelMetadata, auditv1.LevelRequestResponse
	type event struct{ verb, group, resource, member string }
	read, write := event{verb: "get", resource: "pods"}, event{verb: "create", resource: "pods"}
	secret, identity := event{verb: "create", resource: "secrets"}, event{verb: "create", group: "user.openshift.io", resource: "identities"}
	robot := event{verb: "create", resource: "pods", member: "robots"}
	robots := func(profile configv1.AuditProfileType) []configv1.AuditCustomRule {
		return []configv1.AuditCustomRule{{Group: "robots", Profile: profile}}
	}
	for _, tt := range []struct {
		name  string
		audit configv1.Audit
		want  map[event]auditv1.Level
		err   error
	}{
		{name: "unset", want: map[event]auditv1.Level{read: metadata, write: metadata, secret: metadata, identity: bodies}},
		{
			name: "Default", audit: configv1.Audit{Profile: configv1.DefaultAuditProfileType},
			want: map[event]auditv1.Level{read: metadata, write: metadata, secret: metadata, identity: bodies},
		},
		{
			name: "WriteRequestBodies", audit: configv1.Audit{Profile: configv1.WriteRequestBodiesAuditProfileType},
			want: map[event]auditv1.Level{read: metadata, write: bodies, secret: metadata, identity: bodies},
		},
		{
			name: "AllRequestBodies", audit: configv1.Audit{Profile: configv1.AllRequestBodiesAuditProfileType},
			want: map[event]auditv1.Level{read: bodies, write: bodies, secret: metadata},
		},
		{name: "None", audit: configv1.Audit{Profile: configv1.NoneAuditProfileType}, want: map[event]auditv1.Level{read: none, secret: none, identity: none}},
		{
			name: "less for a group", audit: configv1.Audit{Profile: configv1.AllRequestBodiesAuditProfileType, CustomRules: robots(configv1.NoneAuditProfileType)},
			want: map[event]auditv1.Level{write: bodies, robot: none},
		},
		{
			name: "more for a group", audit: configv1.Audit{Profile: configv1.NoneAuditProfileType, CustomRules: robots(configv1.WriteRequestBodiesAuditProfileType)},
			want: map[event]auditv1.Level{write: none, robot: bodies},
		},
		{name: "unknown", audit: configv1.Audit{Profile: "Some"}, err: ErrInvalid},
		{name: "unknown for a group", audit: configv1.Audit{CustomRules: robots("Some")}, err: ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := auditPolicy(tt.audit)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			var policy auditv1.Policy
			if err := yaml.UnmarshalStrict([]byte(text), &policy); err != nil {
				t.Fatal(err)
			}
			for e, want := range tt.want {
				got := auditv1.Level("no rule")
				for _, rule := range policy.Rules {
					if fits(rule, e.verb, e.group, e.resource, e.member) {
						got = rule.Level
						break
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%+v (-want +got):\n%s", e, diff)
				}
			}
		})
	}
}

func fits(rule auditv1.PolicyRule, verb, group, resource, member string) bool {
	any := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	if len(rule.NonResourceURLs) > 0 || len(rule.Users) > 0 || !any(rule.Verbs, verb) || !any(rule.UserGroups, member) {
		return false
	}
	for _, r := range rule.Resources {
		if r.Group == group && any(r.Resources, resource) {
			return true
		}
	}
	return len(rule.Resources) == 0
}
