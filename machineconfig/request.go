package machineconfig

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AnnotationPrefix begins the names of all annotations of the machine-config operator.
const AnnotationPrefix = "machineconfiguration.openshift.io/"

// ErrRequest is returned for a request that cannot be understood. It is never answered: an answer would tell the node that it may
// restart.
var ErrRequest = errors.New("not a request of the drain protocol")

// Verb is what a node asks for.
type Verb string

const (
	// VerbDrain asks that the node takes no new pods and that those which it has go elsewhere.
	VerbDrain Verb = "drain"
	// VerbUncordon asks that the node takes pods again.
	VerbUncordon Verb = "uncordon"
)

// Request is what a node asks for in its annotation DesiredDrainAnnotation.
type Request struct {
	Verb Verb
	// Config is the name of the machine config for which it asks. It only tells one request from the next.
	Config string
}

// String is the request as it is written in an annotation.
func (r Request) String() string { return string(r.Verb) + "-" + r.Config }

// ParseRequest reads the value of an annotation: a verb, a dash and the name of a machine config (U-MCO-1).
func ParseRequest(value string) (Request, error) {
	verb, config, _ := strings.Cut(value, "-")
	request := Request{Verb: Verb(verb), Config: config}
	switch request.Verb {
	case VerbDrain, VerbUncordon:
	default:
		return Request{}, fmt.Errorf("%w: unknown verb in %q; want %s or %s", ErrRequest, shortened(value), VerbDrain, VerbUncordon)
	}
	if problems := validation.IsDNS1123Subdomain(config); len(problems) > 0 {
		return Request{}, fmt.Errorf("%w: %q does not name a machine config: %s", ErrRequest, shortened(value), problems[0])
	}
	return request, nil
}

// Asked is what a node's annotations ask for; nil when they ask for nothing, or for what is done already.
func Asked(annotations map[string]string) (*Request, error) {
	desired, asks := annotations[DesiredDrainAnnotation]
	if !asks || desired == annotations[LastAppliedDrainAnnotation] {
		return nil, nil
	}
	request, err := ParseRequest(desired)
	if err != nil {
		return nil, err
	}
	return &request, nil
}

// shortened keeps a quarter of a megabyte, which an annotation may hold, out of logs.
func shortened(value string) string {
	const most = 80
	if len(value) > most {
		return value[:most] + "..."
	}
	return value
}

// HasLeave tells whether a node was told that it may leave, and neither asks for leave anew nor has been told since that it takes pods
// again. A node without a request takes no part in the protocol.
func HasLeave(annotations map[string]string) bool {
	last, err := ParseRequest(annotations[LastAppliedDrainAnnotation])
	_, asks := annotations[DesiredDrainAnnotation]
	if err != nil || !asks || last.Verb != VerbDrain {
		return false
	}
	request, err := Asked(annotations)
	return err != nil || request == nil || request.Verb != VerbDrain
}
