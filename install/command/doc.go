// Package command is the command line of sno-install.
package command
