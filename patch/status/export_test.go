// SPDX-License-Identifier: Apache-2.0

package status

import "time"

// SetNow sets the clock of failures.
func (r *Reporter) SetNow(now func() time.Time) { r.now = now }

// SetNow sets the clock of conditions.
func (o *OperatorConditions) SetNow(now func() time.Time) { o.now = now }
