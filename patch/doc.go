// Package patch holds what every module of sno shares: preconditions ([Chain]), the outcome of a patch ([Result]) with its
// conditions ([Result.Conditions]) and event ([Result.Transition]), field owners and annotations.
//
// With its sub-packages it implements for all modules: a rollout can end on one node (R-SNO-2), no budget forbids every eviction
// (R-SNO-3), nothing is written at rest (R-SNO-4), no field of a person is taken (R-SNO-5), a release restores what was there
// (R-SNO-6), a change of the topology is followed (R-SNO-7), and reverts are not fought (R-SNO-9).
package patch
