// SPDX-License-Identifier: Apache-2.0

package patch

import "k8s.io/apimachinery/pkg/runtime"

// Step is what to do with one object. The zero Step does nothing.
type Step struct {
	Intent  runtime.ApplyConfiguration // what to apply; nil for nothing
	Unset   []string                   // fields that must be absent; see apply.Applier.Apply
	Release bool
	// Result is why there is no intent, or whether the operand follows it; nil for nothing to report.
	Result *Result
}
