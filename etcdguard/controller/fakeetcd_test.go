package controller

import (
	"context"
	"net"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nobody answers there.
const nowhere = "http://127.0.0.1:1"

// serve lets programs ask for the members that the test makes up, in etcd's own protocol, and returns where. (What is asked of a
// real etcd, and what it answers, TestRealMembers shows.)
func (e *etcdOf) serve(c *cluster) (endpoint string) {
	c.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	endpoint = "http://" + listener.Addr().String()
	server := grpc.NewServer()
	etcdserverpb.RegisterClusterServer(server, listing{etcd: e, endpoint: endpoint})
	etcdserverpb.RegisterKVServer(server, reading{})
	go func() { _ = server.Serve(listener) }() // Stop ends it
	c.Cleanup(server.Stop)
	return endpoint
}

// listing is the list; reading is what healthy members answer.
type (
	listing struct {
		*etcdserverpb.UnimplementedClusterServer
		etcd     *etcdOf
		endpoint string
	}
	reading struct {
		*etcdserverpb.UnimplementedKVServer
	}
)

func (l listing) MemberList(ctx context.Context, r *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	members, err := l.etcd.Members(ctx)
	if err != nil || !r.Linearizable {
		return nil, status.Error(codes.FailedPrecondition, "no quorum, or not asked for it")
	}
	answer := &etcdserverpb.MemberListResponse{Header: &etcdserverpb.ResponseHeader{}}
	for _, m := range members {
		url := nowhere
		if m.Healthy {
			url = l.endpoint
		}
		answer.Members = append(answer.Members, &etcdserverpb.Member{ID: m.ID, IsLearner: m.Learner, ClientURLs: []string{url}})
	}
	return answer, nil
}

func (reading) Range(_ context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if r.Serializable {
		return nil, status.Error(codes.FailedPrecondition, "that is no linearizable read")
	}
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}
