package stable

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failing is a condition of the ClusterVersion for which openshift/api has no name.
const failing configv1.ClusterStatusConditionType = "Failing"

// operatorVersion is the version that a cluster operator reports of itself (openshift/api, OperandVersion).
const operatorVersion = "operator"

func (r *Report) clusterVersions(s *State) {
	r.expect(s, kindClusterVersion, len(s.ClusterVersions))
	for i := range s.ClusterVersions {
		version := &s.ClusterVersions[i]
		object := name(kindClusterVersion, version)
		if version.Generation != version.Status.ObservedGeneration {
			r.moving(object, metav1.Time{}, "the cluster-version-operator has not seen its latest change")
		}
		marks := r.conditions(object, version.Status.Conditions, wanted{
			{configv1.OperatorAvailable, configv1.ConditionTrue, false},
			{configv1.OperatorProgressing, configv1.ConditionFalse, false},
			{failing, configv1.ConditionFalse, true},
		})
		if history := version.Status.History; len(history) > 0 && history[0].State != configv1.CompletedUpdate {
			r.moving(object, history[0].StartedTime, "version %s is not wholly there", history[0].Version)
		}
		r.mark(object, version.UID, version.Generation, version.Status.Desired.Version, marks)
	}
}

func (r *Report) clusterOperators(s *State) {
	r.expect(s, kindClusterOperator, len(s.ClusterOperators))
	desired := ""
	if len(s.ClusterVersions) > 0 {
		desired = s.ClusterVersions[0].Status.Desired.Version
	}
	for i := range s.ClusterOperators {
		operator := &s.ClusterOperators[i]
		object := name(kindClusterOperator, operator)
		marks := r.conditions(object, operator.Status.Conditions, wanted{
			{configv1.OperatorAvailable, configv1.ConditionTrue, false},
			{configv1.OperatorProgressing, configv1.ConditionFalse, false},
			{configv1.OperatorDegraded, configv1.ConditionFalse, false},
		})
		version := versionOf(operator)
		switch {
		case version == "":
			r.moving(object, metav1.Time{}, "it has reported no version yet")
		case desired != "" && version != desired:
			r.moving(object, metav1.Time{}, "it is at version %s, the cluster is to have %s", version, desired)
		}
		r.mark(object, operator.UID, version, marks)
	}
}

func versionOf(operator *configv1.ClusterOperator) string {
	i := slices.IndexFunc(operator.Status.Versions, func(v configv1.OperandVersion) bool { return v.Name == operatorVersion })
	if i < 0 {
		return ""
	}
	return operator.Status.Versions[i].Version
}

// wanted are the conditions of something at rest. An optional one may also be missing.
type wanted []struct {
	kind     configv1.ClusterStatusConditionType
	status   configv1.ConditionStatus
	optional bool
}

// conditions reports those that are not as wanted, and returns their marks.
func (r *Report) conditions(object string, have []configv1.ClusterOperatorStatusCondition, want wanted) []string {
	var marks []string
	for _, w := range want {
		i := slices.IndexFunc(have, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == w.kind })
		if i < 0 {
			if !w.optional {
				r.moving(object, metav1.Time{}, "%s is not known yet", w.kind)
			}
			continue
		}
		c := condition{string(have[i].Type), string(have[i].Status), have[i].Reason, have[i].Message, have[i].LastTransitionTime}
		if have[i].Status != w.status {
			r.moving(object, c.since, "%s", c)
		}
		marks = append(marks, c.mark())
	}
	return marks
}
