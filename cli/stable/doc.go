// Package stable tells when it is safe to put a workload on a cluster: an installation goes on for a while after the installer has
// ended, with restarts of the API server and of nodes (R-OPS-3).
//
// The ClusterVersion alone does not tell. Operators that are no part of the release restart nodes too, and on a single node every such
// restart is an outage. So everything is looked at that moves when a cluster changes itself, and it has to be quiet for a whole period:
//
//	Gather   reads it from a cluster; what cannot be read is not known, and what is not known is not stable
//	Look     says what still moves, and marks everything by which a change is seen that came and went between two looks
//	Quiet    compares the looks; every movement and every change starts its period again
//	Wait     does so until the cluster is stable or a limit of time has passed
//
// Look and Quiet are pure: no client, no clock.
package stable
