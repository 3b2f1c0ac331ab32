// SPDX-License-Identifier: Apache-2.0

package apply

import "time"

// SetNow sets the clock of the back-off.
func (a *Applier) SetNow(now func() time.Time) { a.now = now }
