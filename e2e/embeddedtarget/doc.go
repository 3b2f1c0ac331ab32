// Package embeddedtarget provides the clusters on which the conformance suite shows what it is worth: an embedded cluster for each scenario, in two
// variants. "sno" is how this repository wants a cluster: operators that vendor its modules, and its controllers beside them. "baseline" is
// how clusters are today: the same operators by today's rules, and none of ours.
package embeddedtarget
