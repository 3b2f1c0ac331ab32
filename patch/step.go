package patch

import "k8s.io/apimachinery/pkg/runtime"

// Step is what to do with one object. The zero Step leaves it as it is.
type Step struct {
	// Intent is what to apply; nil for nothing.
	Intent runtime.ApplyConfiguration
	// Unset lists fields that must be absent; see patch/apply.
	Unset []string
	// Release releases what the module has applied.
	Release bool
	// Result is why there is no intent, or, with one, whether the operand follows it; nil where there is nothing to report.
	Result *Result
}
