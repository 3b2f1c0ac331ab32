// Package command is the program sno-install. What is decided is decided in the packages that it calls.
package command
