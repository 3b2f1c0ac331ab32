// Package status tells the world how a patch stands: as sub-conditions on the operator's own resource, as one event per
// transition, and as metrics. Nothing is written while nothing changes.
package status
