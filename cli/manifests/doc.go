// Package manifests holds what installs the controllers: the overlays of config/, as kustomize builds them. A test keeps them so.
package manifests
