// Package plan says what the modules would do to a cluster, field by field, without doing it.
//
// It decides nothing itself: it has each module look at a rehearsal of the cluster and compares the objects before and after.
package plan
