// Package scenario describes clusters as an installer leaves them behind, by name, and installs them into an embedded cluster: the eight rows of
// the table of seed 003, and five baselines that this workspace must leave alone.
//
// Everything in the table is written by hand from the seed and from facts about the stock operators. Nothing is computed by the modules under
// test, so that a wrong rule there cannot make its own expectation.
package scenario
