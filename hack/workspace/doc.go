// Package workspace knows where the repository is, which Go modules it has and which of them share go.work, so that every
// other program under hack/ derives its lists from the tree and none keeps a list of its own.
package workspace
