// SPDX-License-Identifier: Apache-2.0

// Package patch holds what all modules share: preconditions ([Chain]), outcomes ([Result]), field owners and
// annotations. With its sub-packages it implements for all modules: rollouts finish on one node (R-SNO-2), budgets
// block no drain (R-SNO-3), no writes at rest (R-SNO-4), no field of a person is taken (R-SNO-5), a release restores
// values (R-SNO-6), changes of the topology are followed (R-SNO-7), and reverts are not fought (R-SNO-9).
package patch
