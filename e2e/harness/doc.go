// Package harness puts an embedded cluster, a scenario, the host operator that stands in for a stock one, and our controllers together,
// each with the rights that it has in life. The main job, the measurements and the fault tests run on it.
package harness
