// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/solonode/sno/examples/hosts/olm-operator/apiserver"
	"github.com/solonode/sno/topology"
)

const (
	// TopologyAnnotation is on the Deployment, and reports the topology that it follows.
	TopologyAnnotation = "olm-operator.example.com/topology"
	// appliedAnnotation is on the Deployment, and identifies the fields that were applied last.
	appliedAnnotation = "olm-operator.example.com/applied"

	nameLabel, managedLabel = "app.kubernetes.io/name", "app.kubernetes.io/managed-by"
	hostnameLabel           = "kubernetes.io/hostname"
	revisionLabel           = "pod-template-hash"
	port                    = 8080
)

// answer is the topology to follow.
type answer struct {
	cluster topology.Cluster
	// notOpenShift means that the cluster has no kind Infrastructure.
	notOpenShift bool
}

// readTopology reads the Infrastructure. nil means that there is no answer, and that the last one is kept.
func readTopology(state apiserver.State) (*answer, error) {
	switch {
	case state.NotServed:
		// An Infrastructure without values reads as HighlyAvailable.
		cluster, err := topology.FromInfrastructure(&configv1.Infrastructure{})
		return &answer{cluster: cluster, notOpenShift: true}, err
	case state.Object == nil:
		return nil, nil
	}
	cluster, err := topology.FromUnstructured(state.Object)
	if err != nil {
		return nil, fmt.Errorf("reading the topology: %w", err)
	}
	return &answer{cluster: cluster}, nil
}

// durations are those of the leader election: by the control plane, whose API server renews the Lease.
func (a answer) durations() apiserver.Durations {
	class := topology.LeaderElection(a.cluster.ControlPlane.Mode)
	return apiserver.Durations{Lease: class.LeaseDuration, Renew: class.RenewDeadline, Retry: class.RetryPeriod}
}

func (a answer) String() string {
	if a.notOpenShift {
		return "HighlyAvailable, because the cluster has no Infrastructure objects (infrastructures.config.openshift.io): it is not OpenShift"
	}
	return fmt.Sprintf("control plane %s, infrastructure %s%s", a.cluster.ControlPlane.Mode, a.cluster.Infrastructure.Mode, a.cluster.UnknownValues())
}

type (
	fields = map[string]any
	list   = []any
)

func (o *Options) labels() fields { return fields{nameLabel: o.Name, managedLabel: "olm-operator"} }

// desiredDeployment returns the applied fields.
func (o *Options) desiredDeployment(a answer) (fields, error) {
	mode := a.cluster.Governing(o.Pool)
	rollout := topology.RolloutStrategy(mode, false)
	replicas := topology.Replicas(mode)
	selector := fields{"matchLabels": fields{nameLabel: o.Name}}
	pod := fields{
		"containers": list{fields{
			"name": "server", "image": o.Image,
			"ports":     list{fields{"name": "http", "containerPort": port, "protocol": "TCP"}},
			"resources": fields{"requests": fields{"cpu": "10m", "memory": "20Mi"}},
			"securityContext": fields{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": fields{"drop": list{"ALL"}},
			},
		}},
		"securityContext": fields{"runAsNonRoot": true, "seccompProfile": fields{"type": "RuntimeDefault"}},
	}
	if !a.notOpenShift { // other clusters do not label workers
		placement := topology.PlacementOf(a.cluster.PoolFor(o.Pool))
		selected := fields{}
		for label, value := range placement.NodeSelector() {
			selected[label] = value
		}
		pod["nodeSelector"] = selected
		var tolerations list
		for _, t := range placement.Tolerations() {
			tolerations = append(tolerations, fields{"key": t.Key, "operator": t.Operator, "effect": t.Effect})
		}
		if len(tolerations) > 0 {
			pod["tolerations"] = tolerations
		}
	}
	if topology.SpreadRequired(mode) {
		// Unlike anti-affinity, a constraint of the pods of one revision does not keep those of another from a node.
		pod["topologySpreadConstraints"] = list{fields{
			"maxSkew": 1, "minDomains": replicas, "topologyKey": hostnameLabel, "whenUnsatisfiable": "DoNotSchedule",
			"labelSelector": selector, "matchLabelKeys": list{revisionLabel},
		}}
	}
	return o.sealed(fields{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": fields{
			"namespace": o.Namespace, "name": o.Name, "labels": o.labels(), "annotations": fields{TopologyAnnotation: a.String()},
		},
		"spec": fields{
			"replicas": replicas, "selector": selector,
			"strategy": fields{"type": "RollingUpdate", "rollingUpdate": fields{"maxUnavailable": rollout.MaxUnavailable, "maxSurge": rollout.MaxSurge}},
			"template": fields{"metadata": fields{"labels": o.labels()}, "spec": pod},
		},
	})
}

// desiredBudget returns nil if there must be none.
func (o *Options) desiredBudget(a answer) (fields, error) {
	maxUnavailable, needed := topology.DisruptionBudget(a.cluster.Governing(o.Pool))
	if !needed {
		return nil, nil
	}
	return o.sealed(fields{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": fields{"namespace": o.Namespace, "name": o.Name, "labels": o.labels(), "annotations": fields{}},
		"spec": fields{
			"maxUnavailable": maxUnavailable, "selector": fields{"matchLabels": fields{nameLabel: o.Name}}, "unhealthyPodEvictionPolicy": "AlwaysAllow",
		},
	})
}

// sealed returns the fields with the types of a decoded object, and an annotation that identifies them.
func (o *Options) sealed(desired fields) (fields, error) {
	text, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", desired["kind"], err)
	}
	result := fields{}
	if err := utiljson.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", desired["kind"], err)
	}
	sum := sha256.Sum256(text)
	result["metadata"].(fields)["annotations"].(fields)[appliedAnnotation] = hex.EncodeToString(sum[:8])
	return result, nil
}
