// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

const auditPolicies = "kube-apiserver-audit-policies"

// auditPolicy returns policy.yaml: exclusions of all profiles, then rules of groups, then the rules of the profile.
func auditPolicy(audit configv1.Audit) (string, error) {
	policy := auditv1.Policy{
		TypeMeta:          metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		ObjectMeta:        metav1.ObjectMeta{Name: "policy"},
		OmitManagedFields: true,
		OmitStages:        []auditv1.Stage{auditv1.StageRequestReceived},
		Rules: []auditv1.PolicyRule{
			{
				Level: auditv1.LevelNone, UserGroups: []string{"system:authenticated", "system:unauthenticated"},
				NonResourceURLs: []string{"/api*", "/version", "/healthz", "/readyz", "/livez"},
			},
			{
				Level: auditv1.LevelNone, Users: []string{"system:apiserver"}, Namespaces: []string{""},
				Resources: []auditv1.GroupResources{{Group: "apiserver.openshift.io", Resources: []string{"apirequestcounts", "apirequestcounts/*"}}},
			},
		},
	}
	for i, custom := range audit.CustomRules {
		rules, err := auditRules(custom.Profile)
		if err != nil {
			return "", fmt.Errorf("spec.audit.customRules[%d]: %w", i, err)
		}
		for _, rule := range rules {
			rule.UserGroups = []string{custom.Group}
			policy.Rules = append(policy.Rules, rule)
		}
	}
	rules, err := auditRules(audit.Profile)
	if err != nil {
		return "", fmt.Errorf("spec.audit: %w", err)
	}
	policy.Rules = append(policy.Rules, rules...)
	text, err := yaml.Marshal(policy)
	if err != nil {
		return "", fmt.Errorf("write the audit policy: %w", err)
	}
	return string(text), nil
}

func auditRules(profile configv1.AuditProfileType) ([]auditv1.PolicyRule, error) {
	// Their bodies are secret.
	sensitive := auditv1.PolicyRule{Level: auditv1.LevelMetadata, Resources: []auditv1.GroupResources{
		{Group: "route.openshift.io", Resources: []string{"routes", "routes/status"}},
		{Resources: []string{"secrets", "serviceaccounts/token"}},
		{Group: "authentication.k8s.io", Resources: []string{"tokenreviews", "tokenrequests"}},
		{Group: "oauth.openshift.io", Resources: []string{"oauthclients", "tokenreviews"}},
		{Group: "machineconfiguration.openshift.io", Resources: []string{"machineconfigs", "controllerconfigs"}},
	}}
	metadata := auditv1.PolicyRule{Level: auditv1.LevelMetadata, OmitStages: []auditv1.Stage{auditv1.StageRequestReceived}}
	switch profile {
	case configv1.NoneAuditProfileType:
		return []auditv1.PolicyRule{{Level: auditv1.LevelNone}}, nil
	case "", configv1.DefaultAuditProfileType:
		return []auditv1.PolicyRule{
			{
				Level: auditv1.LevelRequestResponse, Verbs: []string{"create", "update", "patch", "delete"},
				Resources: []auditv1.GroupResources{
					{Group: "user.openshift.io", Resources: []string{"identities"}},
					{Group: "oauth.openshift.io", Resources: []string{"oauthaccesstokens", "oauthauthorizetokens"}},
				},
			},
			metadata,
		}, nil
	case configv1.WriteRequestBodiesAuditProfileType:
		return []auditv1.PolicyRule{
			sensitive,
			{Level: auditv1.LevelRequestResponse, Verbs: []string{"update", "patch", "create", "delete", "deletecollection"}},
			metadata,
		}, nil
	case configv1.AllRequestBodiesAuditProfileType:
		return []auditv1.PolicyRule{sensitive, {Level: auditv1.LevelRequestResponse}}, nil
	}
	return nil, fmt.Errorf("profile: %w: %q", ErrInvalid, profile)
}
