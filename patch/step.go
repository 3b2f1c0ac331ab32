// SPDX-License-Identifier: Apache-2.0

package patch

import "k8s.io/apimachinery/pkg/runtime"

// Step is what to do with one object: at most one of Intent, Delete and Release. The zero Step does nothing. The
// Decision of a module has a Step for each object that it may write. Create, Delete and NewOwner are for modules that
// own whole objects, whose controllers carry them out; apply.Applier.ApplyStep does the rest.
type Step struct {
	Intent  runtime.ApplyConfiguration // what to apply; nil for nothing
	Unset   []string                   // fields that must be absent; see apply.Applier.Apply
	Create  bool                       // the object does not exist, and the intent creates it
	Delete  bool
	Release bool
	// NewOwner is, on release, the manager that owns the fields from then on; empty if they are removed or restored.
	NewOwner string
	// Restore reports, on release, whether a replaced value is restored; nil restores every value.
	Restore func(Replaced) bool `json:"-"`
	// Leave lists the values that a release sets for ReleasedManager.
	Leave []Replaced
	// Result is why there is no intent, or whether the operand follows it; nil for nothing to report.
	Result *Result
}
