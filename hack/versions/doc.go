// Package versions compares every go.mod of the repository with hack/versions.yaml, the one place where versions are pinned,
// and rewrites those that differ.
//
// There are two legs. Modules that others vendor are on the floor: the oldest versions that today's operators have, because
// each of their requirements is a lower bound for whoever vendors them. Programs and tests are on the newest. In workspace
// mode Go selects the newest version for all, so a workspace build checks the newest leg and GOWORK=off checks the floor.
package versions
