package installing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/images"
)

// webImage is a web server, whose replicas say their names.
const webImage = "registry.invalid/sno/site:test"

// answers succeeds when three replicas of a Deployment of the web server answer.
const answers = client + `create deployment site --image=` + webImage + ` --replicas=3 2>/dev/null; ` +
	client + `rollout status deployment/site --timeout=5s && ` +
	`for ip in $(` + client + `get pods --selector=app=site --field-selector=status.phase=Running -o jsonpath='{.items[*].status.podIP}'); do ` +
	`curl --silent --fail --max-time 2 "http://$ip:8080/"; done | sort --unique | wc --lines | grep --quiet --line-regexp 3`

// bringWebServer has the machine know the image of the web server.
func (m *Machine) bringWebServer(ctx context.Context) error {
	binary, err := programs.Build(ctx, programs.Site, m.Config.Progress)
	if err != nil {
		return err //nolint:wrapcheck // it says of what
	}
	archive := m.site.path("site/image.tar")
	if err := errors.Join(os.MkdirAll(filepath.Dir(archive), 0o755), images.Write(archive, images.Image{
		Name: webImage, Files: map[string]string{programs.Site.Name: binary}, Entrypoint: []string{"/" + programs.Site.Name},
	})); err != nil {
		return fmt.Errorf("make the image of a web server: %w", err)
	}
	return m.node.Containerd().Load(ctx, archive) //nolint:wrapcheck // it says of what
}
