package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

var overrideWords = apply.Words{
	Subject:    "The configuration of the authentication operator",
	MadeBy:     "the installation",
	Resource:   "authentications.operator.openshift.io",
	WouldApply: "the override would be set",
}

func deploymentWords(namespace, name string) apply.Words {
	return apply.Words{
		Subject:    "The Deployment " + namespace + "/" + name,
		MadeBy:     "the authentication operator",
		Resource:   "deployments.apps in namespace " + namespace,
		WouldApply: "the Deployment " + namespace + "/" + name + " would get the shape of the topology",
	}
}

// step brings the decision about one object onto the cluster.
type step struct {
	words   apply.Words
	applier *apply.Applier
	live    *unstructured.Unstructured
	// intent is what to apply; nil for nothing, and then result says why.
	intent  runtime.ApplyConfiguration
	unset   []string
	release bool
	result  *patch.Result
	// observe tells how the applied intent stands.
	observe func(auth.Inputs) patch.Result
}

// steps takes all three, whatever comes of each: one that is blocked stops no other.
func (p *patcher) steps(ctx context.Context, f found) []patch.Result {
	decision := auth.Decide(f.inputs)
	override := step{
		words: overrideWords, applier: p.authentication, live: f.authentication,
		release: decision.Override.Release, result: decision.Override.Result, observe: auth.ObserveOverride,
	}
	if decision.Override.Intent != nil {
		override.intent = decision.Override.Intent
	}
	deployment := func(live *unstructured.Unstructured, namespace, name string, d auth.DeploymentDecision, observe func(auth.Inputs) patch.Result) step {
		s := step{
			words: deploymentWords(namespace, name), applier: p.deployments, live: live,
			release: d.Release, result: d.Result, observe: observe,
		}
		if d.Intent != nil {
			s.intent, s.unset = d.Intent, d.Unset
		}
		return s
	}
	var results []patch.Result
	for _, s := range []step{
		override,
		deployment(f.server, auth.OAuthServerNamespace, auth.OAuthServerName, decision.OAuthServer, auth.ObserveOAuthServer),
		deployment(f.apiServer, auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName, decision.OAuthAPIServer, auth.ObserveOAuthAPIServer),
	} {
		results = append(results, s.take(ctx, f.inputs))
	}
	return results
}

func (s step) take(ctx context.Context, inputs auth.Inputs) patch.Result {
	switch {
	case s.intent != nil:
		outcome, err := s.applier.Apply(ctx, s.live, s.intent, s.unset...)
		if result := s.words.Result(ctx, auth.Name, outcome, err); result != nil {
			return *result
		}
		return s.observe(inputs)
	case s.release:
		outcome, err := s.applier.Release(ctx, s.live, apply.ReleaseOptions{})
		if result := s.words.Released(auth.Name, *s.result, outcome, err); result != nil {
			return *result
		}
	}
	return *s.result
}

// together is the worst of the results, with the soonest next look that any of them asks for and every error that is worth a
// retry. What is not needed is no worse than what is in force: a release without need of the override has its Deployments shaped.
func together(results ...patch.Result) patch.Result {
	worst := patch.Worst(results...)
	var failures []error
	for _, result := range results {
		if worst.State == patch.NotNeeded && result.State == patch.InForce {
			worst = result
		}
		failures = append(failures, result.Err)
	}
	for _, result := range results {
		if result.After > 0 && (worst.After == 0 || result.After < worst.After) {
			worst.After = result.After
		}
	}
	worst.Err = errors.Join(failures...)
	return worst
}
