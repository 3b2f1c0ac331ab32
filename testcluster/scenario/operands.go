package scenario

const (
	// ConsoleNamespace holds the Deployments console and downloads.
	ConsoleNamespace = "openshift-console"
	// ConsoleOperatorNamespace holds the console operator, and its events.
	ConsoleOperatorNamespace = "openshift-console-operator"
	// OAuthServerNamespace holds the Deployment oauth-openshift.
	OAuthServerNamespace = "openshift-authentication"
	// OAuthAPIServerNamespace holds the Deployment apiserver, the OAuth API server.
	OAuthAPIServerNamespace = "openshift-oauth-apiserver"
	// AuthenticationOperatorNamespace holds the authentication operator, and its events.
	AuthenticationOperatorNamespace = "openshift-authentication-operator"
	// VersionOperatorNamespace holds the cluster-version-operator.
	VersionOperatorNamespace = "openshift-cluster-version"
)

// Operands is what the requirements want (R-CON-1, R-CON-3, R-AUTH-1, R-AUTH-3) of the Deployments that belong on the control plane.
type Operands struct {
	// Pool is where their pods run. PoolWorker means any node.
	Pool Pool
	// Console is how many pods console has, and downloads. OAuth is how many oauth-openshift has, and the OAuth API server.
	Console, OAuth int32
}

// Operand is one of those Deployments, as it must be in the end.
type Operand struct {
	Namespace, Name string
	Pool            Pool
	// Replicas is how many pods it has. Several are on as many nodes.
	Replicas int32
	// MinAvailable is how many of them are available at every moment of a rollout.
	MinAvailable int32
	// OneWriter says that a node never holds two of its pods, not even for a moment: they write to a file of the node.
	OneWriter bool
}

// String is the namespace and the name: the name of the OAuth API server alone is that of others too.
func (o Operand) String() string { return o.Namespace + "/" + o.Name }

// List is console, downloads, oauth-openshift and the OAuth API server.
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
