// Package demo is the project's main job on an embedded cluster, told to a person: a router that floats to a worker, the
// ingress controller that pins it, and the proof that it stays. It is what `make run` shows.
//
// What is expected of a scenario is the hand-written data of package scenario, never an answer of the code under test.
package demo
