// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// A certificate, the observed configuration, and a revision of both, by library-go's controllers.
func Example() {
	const namespace = "openshift-kube-scheduler"
	operator := librarygo.KubeScheduler
	s, err := store.New(operator.Resource(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-scheduler-pod"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := func(name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	year := 365 * 24 * time.Hour
	steps := []loop.Step{
		loop.Once(librarygo.CertRotation("certificates", librarygo.Certificate{
			Signer: in("signer"), SignerValidity: 2 * year, Bundle: in("ca"), Target: in("client"), Validity: year,
			Client: &user.DefaultInfo{Name: "system:kube-scheduler"},
		})),
		loop.Once(librarygo.ConfigObservation("observation", operator, func(context.Context, *store.Session, map[string]any) (map[string]any, error) {
			return map[string]any{"extendedArguments": map[string]any{"v": []any{"2"}}}, nil
		})),
		loop.Once(librarygo.Revision("revision", operator, namespace, []staticpods.Resource{{Name: "kube-scheduler-pod"}, {Name: "ca"}}, []staticpods.Resource{{Name: "client"}})),
	}
	print := func(r loop.Report) { fmt.Println(r.Loop, len(r.Wrote)) }
	if err := loop.Run(context.Background(), s, steps, loop.Options{Timeout: time.Minute, Report: print}); err != nil {
		fmt.Println(err)
		return
	}
	number, err := librarygo.LatestRevision(context.Background(), s.Session("example"), operator)
	fmt.Println("revision", number, err)
	// Output:
	// certificates 3
	// observation 2
	// revision 6
	// revision 1 <nil>
}
