package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/solonode/sno/approver"
)

const (
	// machineResource is the resource of every kind of Machines.
	machineResource = "machines"
	// pollMachineKinds is how often is asked whether a kind of Machines is served that was not. It takes one small request.
	pollMachineKinds = 15 * time.Second
)

// machineWatch watches Machines of every kind that is served, whenever it comes to be, and wakes the controller when the first comes and
// when the last has gone. It holds the names of Machines and nothing else of them. They are no Object of the module, because their
// version is not known beforehand, and because a kind that appears is no reason to start all controllers of the process again.
type machineWatch struct {
	client metadata.Interface
	// served reads which versions of a group are served, the preferred one first; none without an error when the group is not served.
	served func(ctx context.Context, group string) ([]string, error)
	wake   chan struct{}
	// poll is how often is asked whether a kind is served.
	poll time.Duration

	mu    sync.Mutex
	kinds map[schema.GroupKind]seenMachines
}

// seenMachines is what is known of one kind. The zero value is that of a kind of which nothing is known.
type seenMachines struct {
	// known is false until a watch has begun, or the API server has said that it does not serve the kind.
	known bool
	// version is the one that is watched, also while the watch has not begun; empty while the kind is not served.
	version  string
	machines int
}

func newMachineWatch(config *rest.Config, over *http.Client, wake chan struct{}) (*machineWatch, error) {
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), over)
	if err != nil {
		return nil, fmt.Errorf("making a client for Machines: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfigAndClient(config, over)
	if err != nil {
		return nil, fmt.Errorf("making a client for the kinds of Machines: %w", err)
	}
	return &machineWatch{client: client, served: servedBy(groups), wake: wake, poll: pollMachineKinds}, nil
}

// servedBy asks for one group. A RESTMapper reads all groups to find out that one is missing.
func servedBy(groups discovery.DiscoveryInterface) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, group string) ([]string, error) {
		var found metav1.APIGroup
		err := groups.RESTClient().Get().AbsPath("/apis", group).Do(ctx).Into(&found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		versions := []string{found.PreferredVersion.Version}
		for _, v := range found.Versions {
			if v.Version != found.PreferredVersion.Version {
				versions = append(versions, v.Version)
			}
		}
		return versions, nil
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*machineWatch) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (w *machineWatch) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, kind := range machineKinds {
		all.Go(func() { w.follow(ctx, kind) })
	}
	all.Wait()
	return nil
}

// follow watches one kind while it is served, and asks for it while it is not.
func (w *machineWatch) follow(ctx context.Context, kind schema.GroupKind) {
	ticker := time.NewTicker(w.poll)
	defer ticker.Stop()
	for {
		version, err := w.version(ctx, kind)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			logr.FromContextOrDiscard(ctx).V(1).Info("Machines cannot be watched", "kind", kind.String(), "cause", err.Error())
			w.change(kind, func(s *seenMachines) { *s = seenMachines{} })
		case version == "":
			w.change(kind, func(s *seenMachines) { *s = seenMachines{known: true} })
		default:
			w.watch(ctx, kind, version)
			w.change(kind, func(s *seenMachines) { *s = seenMachines{} })
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// version is the one in which the kind is served; empty for none.
func (w *machineWatch) version(ctx context.Context, kind schema.GroupKind) (string, error) {
	versions, err := w.served(ctx, kind.Group)
	if err != nil {
		return "", fmt.Errorf("asking whether %s is served: %w", kind, err)
	}
	for _, version := range versions {
		if _, served, err := w.any(ctx, kind, version); err != nil || served {
			return version, err
		}
	}
	return "", nil
}

// any reads whether there is any Machine of the kind, and whether it is served in the version.
func (w *machineWatch) any(ctx context.Context, kind schema.GroupKind, version string) (found, served bool, err error) {
	list, err := w.client.Resource(resourceOf(kind, version)).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsNotFound(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("reading whether there is any %s: %w", kind, err)
	}
	return len(list.Items) > 0, true, nil
}

func resourceOf(kind schema.GroupKind, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: machineResource}
}

// watch watches until the kind is not served any more in this version.
func (w *machineWatch) watch(ctx context.Context, kind schema.GroupKind, version string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := logr.FromContextOrDiscard(ctx)
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, resourceOf(kind, version), metav1.NamespaceAll, 0, toolscache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(nameOnly); err != nil {
		log.Error(err, "Machines cannot be watched", "kind", kind.String())
		return
	}
	if err := informer.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) {
		log.V(1).Info("Watch of Machines ended", "kind", kind.String(), "cause", err.Error())
		if apierrors.IsNotFound(err) {
			cancel()
		}
	}); err != nil {
		log.Error(err, "Machines cannot be watched", "kind", kind.String())
		return
	}
	counted, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.change(kind, func(s *seenMachines) { s.machines++ }) },
		DeleteFunc: func(any) { w.change(kind, func(s *seenMachines) { s.machines-- }) },
	})
	if err != nil {
		log.Error(err, "Machines cannot be watched", "kind", kind.String())
		return
	}
	// The version is known before any Machine is counted: who is woken by the first one reads it in that version.
	w.change(kind, func(s *seenMachines) { *s = seenMachines{version: version} })
	var known sync.WaitGroup
	defer known.Wait()
	known.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), counted.HasSynced) {
			w.change(kind, func(s *seenMachines) { s.known = true })
		}
	})
	informer.Run(ctx.Done())
}

// nameOnly keeps of a Machine what a store needs.
func nameOnly(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	return object, nil
}

// change changes what is known of a kind, and wakes the controller when that changes the answer.
func (w *machineWatch) change(kind schema.GroupKind, do func(*seenMachines)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.answer()
	seen := w.kinds[kind]
	do(&seen)
	if w.kinds == nil {
		w.kinds = map[schema.GroupKind]seenMachines{}
	}
	w.kinds[kind] = seen
	if w.answer() != before {
		ring(w.wake)
	}
}

// presence is whether there are Machines, by the watches; Unknown while one of them has not begun and no other has seen any. A nil
// watch knows nothing.
func (w *machineWatch) presence() approver.Presence {
	if w == nil {
		return approver.Unknown
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answer()
}

func (w *machineWatch) answer() approver.Presence {
	answer := approver.Absent
	for _, kind := range machineKinds {
		switch seen := w.kinds[kind]; {
		case seen.known && seen.machines > 0:
			return approver.Present
		case !seen.known:
			answer = approver.Unknown
		}
	}
	return answer
}

// watches is the version in which the kind is watched; empty for none.
func (w *machineWatch) watches(kind schema.GroupKind) string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kinds[kind].version
}
