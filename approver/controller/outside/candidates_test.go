package outside

import (
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
)

func made(name string, minute int) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))}}
}

// With more client requests pending than may still be approved, all of them stay pending; a node that serves makes as many as it likes.
func TestCandidatesContested(t *testing.T) {
	t.Parallel()
	list, err := inventory.Load([]byte("version: 1\nnodes: [{name: one}, {name: two, count: 2}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key             key
		pending, before int
		want            bool
	}{
		{key{approver.ClientFlow, "one"}, 1, 0, false},
		{key{approver.ClientFlow, "one"}, 2, 0, true},
		{key{approver.ClientFlow, "one"}, 10, 0, true},
		{key{approver.ClientFlow, "two"}, 1, 0, false},
		{key{approver.ClientFlow, "two"}, 2, 0, false},
		{key{approver.ClientFlow, "two"}, 2, 1, true},
		{key{approver.ClientFlow, "two"}, 1, 1, false},
		{key{approver.ClientFlow, "two"}, 3, 0, true},
		{key{approver.ServingFlow, "one"}, 10, 5, false},
	} {
		c := candidates{inventory: list}
		for i := range test.pending {
			c.add(test.key, made(fmt.Sprint(i), i))
		}
		if got := c.contested(test.key, test.before); got != test.want {
			t.Errorf("%v with %d pending and %d approved: contested %t, want %t", test.key, test.pending, test.before, got, test.want)
		}
		if held := len(c.inOrder()); held > max(2, servingPerNode) {
			t.Errorf("%v with %d pending: %d are held", test.key, test.pending, held)
		}
	}
}

// Of a node's many the newest are looked at, who has waited longest first; what is dropped is told.
func TestCandidatesNewest(t *testing.T) {
	t.Parallel()
	c, dropped := candidates{}, []string{}
	k := key{approver.ServingFlow, "one"}
	for _, minute := range []int{5, 1, 4, 6, 2, 3} {
		if csr := c.add(k, made(fmt.Sprint(minute), minute)); csr != nil {
			dropped = append(dropped, csr.Name)
		}
	}
	var held []string
	for _, candidate := range c.inOrder() {
		held = append(held, candidate.csr.Name)
	}
	if !slices.Equal(held, []string{"3", "4", "5", "6"}) || !slices.Equal(dropped, []string{"1", "2"}) {
		t.Errorf("held %v, dropped %v", held, dropped)
	}
}
