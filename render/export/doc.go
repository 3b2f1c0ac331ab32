// Package export turns the objects that exist after a render into manifests for the new API server, and reads them back.
//
// The numbers of the files are an order that works: what is named comes before what names it. Namespaces come first, then definitions
// of resources, service accounts, roles and bindings, ConfigMaps and Secrets, Services, and then all others.
//
// Each manifest has the whole object, its status too. An API server takes the status of most resources in a request of its own, after
// the object exists. The bodies of these requests are in a folder of their own, StatusFolder:
//
//	kubectl create -f manifests/
//	kubectl apply --server-side --subresource=status --field-manager=sno-render -f manifests/status/
//
// Without the second command Infrastructure has no topologies, names and URLs, FeatureGate no gates, and the operators' resources no revision.
//
// What a server owns is left out: resourceVersion, uid, generation, creationTimestamp, managedFields, selfLink. Owner references are left out
// as well: they name an owner by its uid, which is another one in the new cluster, and the garbage collector removes what has an
// owner that does not exist (U-REN-29).
//
// It implements R-REN-7.
package export
