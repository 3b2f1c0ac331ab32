// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestStale(t *testing.T) {
	back := time.Unix(100, 0)
	lease := func(name, by string, at time.Time) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(by), RenewTime: ptr.To(metav1.NewMicroTime(at))},
		}
	}
	renewed, released := lease("renewed", "holder", back.Add(time.Second)), lease("released", "", back.Add(-time.Second))
	if err := stale([]coordinationv1.Lease{renewed, released}, back); err != nil {
		t.Error(err)
	}
	err := stale([]coordinationv1.Lease{renewed, lease("late", "holder", back), released}, back)
	if err == nil || !strings.Contains(err.Error(), "late was last renewed by holder") || strings.Contains(err.Error(), "released") {
		t.Error(err)
	}
}
