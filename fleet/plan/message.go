// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/solonode/sno/fleet/overview"
)

var (
	// ErrTooLarge is returned for a plan that does not fit into a termination message.
	ErrTooLarge = errors.New("the plan is too large for a termination message")
	// ErrMessage is returned for a termination message that is no plan.
	ErrMessage = errors.New("the termination message is no plan")
)

const (
	maxMessage = 4096    // the kubelet cuts what is longer
	maxContent = 1 << 20 // of a message that is not compressed
	prefix     = "sno-plan:"
	failed     = "sno-plan-failed:"
)

// Message returns the termination message of a plan, or of the error that prevented it. The error is an ErrTooLarge.
func Message(changes []overview.Change, failure error) (string, error) {
	if failure != nil {
		return failed + strings.ToValidUTF8(failure.Error()[:min(len(failure.Error()), maxMessage/2)], ""), nil
	}
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err := errors.Join(json.NewEncoder(writer).Encode(changes), writer.Close()); err != nil {
		return "", err
	}
	message := prefix + base64.StdEncoding.EncodeToString(packed.Bytes())
	if len(message) > maxMessage {
		return "", fmt.Errorf("%w: %d changes have %d bytes, and a message at most %d; plan fewer modules at a time (--modules)",
			ErrTooLarge, len(changes), len(message), maxMessage)
	}
	return message, nil
}

// parse returns the changes, or why there are none. The spoke has written the message, so it may be anything.
func parse(message string) ([]overview.Change, error) {
	if failure, is := strings.CutPrefix(message, failed); is {
		return nil, errors.New(failure) //nolint:err113 // the text is that of the spoke
	}
	text, is := strings.CutPrefix(message, prefix)
	if !is {
		return nil, fmt.Errorf("%w: it begins with %.40q", ErrMessage, message)
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	var changes []overview.Change
	if err := json.NewDecoder(io.LimitReader(reader, maxContent)).Decode(&changes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return changes, nil
}
