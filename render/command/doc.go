// Package command is the program sno-render: it reads a folder of manifests, runs the loops, and writes a folder.
package command
