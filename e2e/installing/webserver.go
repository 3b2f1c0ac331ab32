// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"

	"github.com/solonode/sno/e2e/programs"
)

// webImage is a web server whose replicas return their names.
const webImage = "registry.invalid/sno/web-server:test"

const answers = client + `create deployment web --image=` + webImage + ` --replicas=3 2>/dev/null; ` +
	client + `rollout status deployment/web --timeout=5s && ` +
	`for ip in $(` + client + `get pods --selector=app=web --field-selector=status.phase=Running -o jsonpath='{.items[*].status.podIP}'); do ` +
	`curl --silent --fail --max-time 2 "http://$ip:8080/"; done | sort --unique | wc --lines | grep --quiet --line-regexp 3`

func (m *Machine) loadWebServerImage(ctx context.Context) error {
	_, err := m.loadImage(ctx, programs.WebServer, webImage)
	return err
}

// passFirstChecks is passChecks on a new machine.
func passFirstChecks(ctx context.Context, m *Machine) error {
	if err := m.loadWebServerImage(ctx); err != nil {
		return err
	}
	return passChecks(ctx, m)
}
