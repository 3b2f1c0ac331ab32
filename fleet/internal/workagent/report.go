// SPDX-License-Identifier: Apache-2.0

package workagent

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/sdk-go/pkg/cel/common"
	"open-cluster-management.io/sdk-go/pkg/cel/library"
)

// Report returns what the agent reports for a manifest whose live object this is. A nil object does not exist.
func Report(option workv1.ManifestConfigOption, object *unstructured.Unstructured) (workv1.ManifestCondition, error) {
	id := option.ResourceIdentifier
	out := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{
		Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name,
	}}
	available := metav1.Condition{Type: workv1.ManifestAvailable, Status: metav1.ConditionFalse, Reason: "ResourceNotAvailable", Message: "Resource is not available"}
	if object == nil {
		out.Conditions = []metav1.Condition{available}
		return out, nil
	}
	out.ResourceMeta.Kind, out.ResourceMeta.Name = object.GetKind(), object.GetName()
	available.Status, available.Reason, available.Message = metav1.ConditionTrue, "ResourceAvailable", "Resource is available"
	out.Conditions = []metav1.Condition{available}
	for _, rule := range option.FeedbackRules {
		for _, path := range rule.JsonPaths {
			value, err := read(path, object)
			if err != nil {
				return out, err
			}
			if value != nil {
				out.StatusFeedbacks.Values = append(out.StatusFeedbacks.Values, workv1.FeedbackValue{Name: path.Name, Value: *value})
			}
		}
	}
	for _, rule := range option.ConditionRules {
		condition, err := evaluate(rule, object)
		if err != nil {
			return out, err
		}
		meta.SetStatusCondition(&out.Conditions, condition)
	}
	return out, nil
}

// read is the agent's reading without the gate RawFeedbackJsonString: the first result, if it is a scalar.
func read(path workv1.JsonPath, object *unstructured.Unstructured) (*workv1.FieldValue, error) {
	j := jsonpath.New(path.Name).AllowMissingKeys(true)
	if err := j.Parse("{" + path.Path + "}"); err != nil {
		return nil, fmt.Errorf("path %s: %w", path.Name, err)
	}
	results, err := j.FindResults(object.Object)
	if err != nil {
		return nil, fmt.Errorf("path %s: %w", path.Name, err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return nil, nil
	}
	switch value := results[0][0].Interface().(type) {
	case nil:
		return nil, nil
	case string:
		return &workv1.FieldValue{Type: workv1.String, String: &value}, nil
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &value}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &value}, nil
	default:
		return nil, fmt.Errorf("path %s: the agent does not report a %T", path.Name, value)
	}
}

func evaluate(rule workv1.ConditionRule, object *unstructured.Unstructured) (metav1.Condition, error) {
	out := metav1.Condition{Type: rule.Condition, Status: metav1.ConditionTrue, Reason: workv1.ConditionRuleEvaluated, Message: rule.Message}
	vars := map[string]any{"object": object.Object}
	for _, expression := range rule.CelExpressions {
		value, err := run(expression, vars)
		if err != nil {
			return out, err
		}
		if value != true {
			out.Status = metav1.ConditionFalse
			break
		}
	}
	if rule.MessageExpression == "" {
		return out, nil
	}
	vars["result"] = out.Status == metav1.ConditionTrue
	message, err := run(rule.MessageExpression, vars)
	if err != nil {
		return out, err
	}
	out.Message = fmt.Sprint(message)
	return out, nil
}

// environment makes the environment of all expressions once: that takes longer than they do.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(slices.Concat([]cel.EnvOption{cel.Variable("object", cel.DynType), cel.Variable("result", cel.BoolType)},
		common.BaseEnvOpts, []cel.EnvOption{library.ConditionsLib()})...)
})

func run(expression string, vars map[string]any) (any, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", expression, err)
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", expression, err)
	}
	value, _, err := program.Eval(vars)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", expression, err)
	}
	return value.Value(), nil
}
