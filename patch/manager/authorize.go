package manager

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// How long an answer of the API server about a token is believed. A scraper asks every half minute or so, and every miss
// costs two requests; a right that is taken away keeps working for the first of these at most.
const (
	allowedFor = 2 * time.Minute
	deniedFor  = 10 * time.Second
)

// authorized lets a request through whose bearer token belongs to somebody who may get the path as a non-resource URL. It asks
// the API server by TokenReview and SubjectAccessReview.
//
// controller-runtime has the same as a package, which links k8s.io/apiserver with CEL, gRPC and OpenTelemetry into every
// controller: 190 packages more, and a quarter of the resident memory of a process that does little else.
func authorized(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client for TokenReviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client for SubjectAccessReviews: %w", err)
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return &authorizer{
			next: next, log: log, known: cache.NewExpiring(),
			tokens: authentication.TokenReviews(), rights: authorization.SubjectAccessReviews(),
		}, nil
	}, nil
}

type authorizer struct {
	next   http.Handler
	log    logr.Logger
	tokens authenticationclient.TokenReviewInterface
	rights authorizationclient.SubjectAccessReviewInterface
	known  *cache.Expiring
}

// ServeHTTP implements http.Handler: 401 without a valid token, 403 without the right, 503 when the API server cannot be asked.
func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		http.Error(w, "a bearer token is required", http.StatusUnauthorized)
		return
	}
	key := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + " " + token))
	status, found := a.known.Get(key)
	if !found {
		answer, err := a.ask(r.Context(), token, r.Method, r.URL.Path)
		if err != nil {
			a.log.Error(err, "Metrics request cannot be authorized")
			http.Error(w, "the API server cannot be asked", http.StatusServiceUnavailable)
			return
		}
		believe := deniedFor
		if answer == http.StatusOK {
			believe = allowedFor
		}
		a.known.Set(key, answer, believe)
		status = answer
	}
	if status != http.StatusOK {
		code, _ := status.(int)
		http.Error(w, http.StatusText(code), code)
		return
	}
	a.next.ServeHTTP(w, r)
}

func (a *authorizer) ask(ctx context.Context, token, method, path string) (int, error) {
	review, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	access, err := a.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: strings.ToLower(method), Path: path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a right: %w", err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
