// Package auth makes OpenShift's OAuth servers behave on clusters with fewer than three control-plane nodes: as many replicas
// as the topology has room for, rollouts and drains that can finish there, and a health rule that lets the only API server
// restart.
//
// It implements R-AUTH-1 (the topology and no override says that one control-plane node is enough), R-AUTH-2 (health checks allow
// a single replica), R-AUTH-3 and, for its health rule, R-OPS-4, of docs/requirements.md.
//
// An authentication operator vendors the package and calls [MinimumControlPlaneNodes], [ShapeOAuthServer],
// [ShapeOAuthAPIServer], their disruption budgets and [WellKnownReadiness]: pure functions over API objects. What a controller
// beside a stock operator should write is [Decide]; package controller writes it.
//
// Every function here is pure: the same inputs give the same bytes, time is an argument, and nothing talks to a cluster.
//
// # The override beside those of others
//
// spec.unsupportedConfigOverrides has no schema, so what an apply does inside it was measured, on Kubernetes 1.36 with the CRD of
// openshift/api; the tests of package controller hold it:
//
//   - Ownership is kept key by key, also in nested objects; lists are one value. An apply that names one key leaves the others as
//     they are, byte for byte, and whoever edits another key afterwards takes nothing from us.
//   - null or {} that somebody else wrote is no conflict: the key goes into it. Taking the key off again leaves null in both cases, and
//     no field at all where there was none. The CRD accepts null (nullable), and everybody reads it as nothing.
//   - The key with another value, also null, is a conflict with whoever wrote it. With an equal value both own it, and letting go
//     leaves it to the other. An equal value written by an ordinary patch changes nothing and makes nobody an owner.
//   - Only an object or null can be stored. The YAML form and other text, which operators also read, the CRD refuses.
package auth
