// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/store"
)

// The next session reads the writes of the one before, and undeclared writes are refused.
func Example() {
	ctx := context.Background()
	s, err := store.New(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	writer := s.Session("writer", store.ConfigMaps("ns", "config-*")...)
	for _, name := range []string{"config-1", "other"} {
		_, err := writer.Kube().CoreV1().ConfigMaps("ns").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
		fmt.Println(name, err == nil)
	}
	fmt.Println(writer.Err())
	found, err := s.Session("reader").Kube().CoreV1().ConfigMaps("ns").Get(ctx, "config-1", metav1.GetOptions{})
	fmt.Println(found.Data, found.ResourceVersion, err)
	// Output:
	// config-1 true
	// other false
	// create configmaps ns/other: the write is not declared by "writer"
	// map[k:v] 2 <nil>
}
