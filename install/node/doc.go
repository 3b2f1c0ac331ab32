// Package node has the settings that an Ignition config gives a machine, and the paths that the installation uses on it.
package node
