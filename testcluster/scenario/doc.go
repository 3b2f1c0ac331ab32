// Package scenario describes clusters as an installer leaves them behind, by name, and installs them into an embedded cluster: the eight rows of
// the table of R-TOP-5, and five baselines that this workspace must leave alone.
//
// Everything in the table is written by hand from docs/requirements.md and docs/upstream.md. Nothing is computed by the modules under
// test, so that a wrong rule there cannot make its own expectation.
package scenario
