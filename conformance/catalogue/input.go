// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"encoding/json"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Input is what checks evaluate.
type Input struct {
	State *State
	// Copies are the results for Check.Copies, without Deployments that have no pods.
	Copies map[types.NamespacedName]*CopyResult
	Records
}

// DeepCopy copies everything that a control may change. Copies are not among that: they are run again.
func (in *Input) DeepCopy() *Input {
	return &Input{State: in.State.DeepCopy(), Records: in.Records.copied()}
}

// Stage is one operation on a copy of a Deployment.
type Stage int

// Stages in their order.
const (
	Deployed Stage = iota
	Rollout
	Eviction
	Deletion
)

// CopyResult is the result of a copy. Failure is why stage Failed did not pass, which is then the last one; or empty.
type CopyResult struct {
	Failed                           Stage
	Failure                          string
	InitialNodes, NodesAfterDeletion []string
}

// until returns why one of the stages up to this one did not pass, or "".
func (r *CopyResult) until(stage Stage) string {
	if r.Failed > stage {
		return ""
	}
	return r.Failure
}

// Act is done to the cluster, once in a run, before checks evaluate its record.
type Act string

// All acts: those of scheduled checks, those after which the cluster must be as before, and an upgrade.
const (
	RequestCertificate Act = "a certificate request"
	WatchWrites        Act = "a period without changes"

	RollOutAll     Act = "a rollout of every operand"
	EvictAll       Act = "an eviction of every operand"
	RestartNodes   Act = "restarts of nodes"
	DrainNodes     Act = "drain requests of nodes"
	ChangeTopology Act = "changes of the topology"
	StopAPIServer  Act = "an outage of the API server"
	CompareStates  Act = "a comparison with the initial state"
	UpgradeCluster Act = "upgrades"
)

// Records are the results of all acts; nil for those that were not performed.
type Records struct {
	CSR *CSROutcome
	// Writes are the objects that were written at rest, with "created", "written" or "deleted".
	Writes map[string]string

	Rollout, Eviction, NodeRestart *Disruption
	// TopologyChanges are by module.
	TopologyChanges map[string]*TopologyChange
	Outage          *Outage
	Upgrade         *UpgradeResult
	Drains          []Drain
	// Differences to the state before all acts, each as "object: what".
	Differences []string
}

// copied encodes and decodes, which is fast enough for what is so small.
func (r Records) copied() (c Records) {
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	utilruntime.Must(err) // the types have only texts, numbers, lists and maps
	return c
}

// CSROutcome is the result of a certificate request that must not be approved.
type CSROutcome struct{ Approved, Denied bool }

// Disruption is the result of a disruption of all operands.
type Disruption struct{ Operands []OperandDisruption }

// OperandDisruption is the result for one Deployment.
type OperandDisruption struct {
	Name string
	// Failure is why it did not recover; empty if it did.
	Failure string
	// Downtime is the time without an available pod, in seconds.
	Downtime float64
}

// TopologyChange is how one module followed a change of the topology and its revert.
type TopologyChange struct{ Change, Revert Convergence }

// Convergence is how a module followed one change.
type Convergence struct {
	Seconds float64
	// Failure is empty if all static checks of the module passed in the end.
	Failure string
	// Restarted is set if a restart of the operator was needed.
	Restarted bool
}

// Outage is the result of an outage of the API server.
type Outage struct {
	// All are in seconds. Length is how long no request was answered, Recovery the time from the end of the act until all
	// checks passed again, and NewWorkload the time until a new Deployment had come and gone; 0 if that is not known.
	Length, Recovery, NewWorkload float64
	// Failure is what has not recovered, and MissingWorkload what a new Deployment lacks; "" if nothing.
	Failure, MissingWorkload string
	// Leases are the leader elections by name: "kept" or "lost".
	Leases map[string]string
}

// UpgradeResult is the result of an upgrade.
type UpgradeResult struct {
	// From and To are versions of the ClusterVersion's history, and State is that of the entry To.
	From, To string
	State    configv1.UpdateState
	// Seconds is the time until the entry was Completed.
	Seconds float64
	Disruption
}

// Drain is the result of a drain request of a node.
type Drain struct {
	Node string
	// NotRequested means that a daemon requests none: its node has the annotation of a single control-plane node.
	NotRequested bool
	// Evicted is the number of pods that were evicted.
	Acknowledged, Cordoned bool
	Evicted                int
	Evictable              int
}
