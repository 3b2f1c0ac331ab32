// Package installconfig reads install-config.yaml as openshift-install has it, and reports all that is wrong with it at once.
package installconfig
