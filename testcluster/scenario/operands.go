// SPDX-License-Identifier: Apache-2.0

package scenario

// Namespaces of the operators and their operands.
const (
	ConsoleNamespace                = "openshift-console"
	ConsoleOperatorNamespace        = "openshift-console-operator"
	OAuthServerNamespace            = "openshift-authentication"
	OAuthAPIServerNamespace         = "openshift-oauth-apiserver"
	AuthenticationOperatorNamespace = "openshift-authentication-operator"
	VersionOperatorNamespace        = "openshift-cluster-version"
)

// Operands are the requirements (R-CON-1, R-CON-3, R-AUTH-1, R-AUTH-3) for the Deployments that belong on the control
// plane.
type Operands struct {
	// Pool is where their pods run. PoolWorker means any node.
	Pool Pool
	// Console is the number of pods of console and downloads, OAuth that of oauth-openshift and the OAuth API server.
	Console, OAuth int32
}

// Operand is the expected final state of one of those Deployments.
type Operand struct {
	Namespace, Name string
	Pool            Pool
	Replicas        int32
	// MinAvailable is how many of them are available at every moment of a rollout.
	MinAvailable int32
	// OneWriter is set if a node must never have two of its pods, not even for a moment: they write to a file of the node.
	OneWriter bool
}

// String returns namespace and name; several objects have the name of the OAuth API server.
func (o Operand) String() string { return o.Namespace + "/" + o.Name }

// List returns console, downloads, oauth-openshift and the OAuth API server.
func (o Operands) List() []Operand {
	apiServer := Operand{Namespace: OAuthAPIServerNamespace, Name: "apiserver", Pool: o.Pool, Replicas: o.OAuth, MinAvailable: 1, OneWriter: true}
	if o.OAuth == 1 {
		// The only writer of a node ends before its successor starts.
		apiServer.MinAvailable = 0
	}
	return []Operand{
		{Namespace: ConsoleNamespace, Name: "console", Pool: o.Pool, Replicas: o.Console, MinAvailable: 1},
		{Namespace: ConsoleNamespace, Name: "downloads", Pool: o.Pool, Replicas: o.Console, MinAvailable: 1},
		{Namespace: OAuthServerNamespace, Name: "oauth-openshift", Pool: o.Pool, Replicas: o.OAuth, MinAvailable: 1},
		apiServer,
	}
}
