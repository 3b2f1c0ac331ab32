package cli

import (
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

// scenario is one row of the proposal's table: what is installed, and whether workers come later.
type scenario struct {
	name     string
	platform configv1.PlatformType
	day1     int64
	later    bool
}

// scenarios are the rows (R-TOP-5), with AWS for a cloud.
func scenarios() []scenario {
	none, cloud := configv1.NonePlatformType, configv1.AWSPlatformType
	return []scenario{
		{"no workers", none, 0, false}, {"no workers", cloud, 0, false},
		{"single day-1 worker", none, 1, true}, {"single day-1 worker", cloud, 1, true},
		{"several day-1 workers", none, 2, true}, {"several day-1 workers", cloud, 2, true},
		{"only day-2 workers", none, 0, true}, {"only day-2 workers", cloud, 0, true},
	}
}

// scenarioRow is a scenario as it is printed.
type scenarioRow struct {
	Scenario  string    `json:"scenario"`
	Platform  string    `json:"platform"`
	Day1      int64     `json:"day1Workers"`
	Later     bool      `json:"workersLater"`
	Decisions []decided `json:"decisions"`
}

func tableAnswer() (answer, error) {
	columns := []string{"ROW", "SCENARIO", "PLATFORM"}
	for _, policy := range policies() {
		columns = append(columns, strings.ToUpper(policy), "LOAD BALANCER")
	}
	t := table(columns...)
	var rows []scenarioRow
	for i, s := range scenarios() {
		shown := "None"
		if topology.ProvidesLoadBalancer(s.platform) {
			shown = "Cloud"
		}
		cells := []string{strconv.Itoa(i + 1), s.name, shown}
		out := scenarioRow{Scenario: s.name, Platform: shown, Day1: s.day1, Later: s.later}
		for _, policy := range topology.Policies() {
			d, err := topology.Decide(topology.Install{
				Platform: s.platform, ControlPlane: ptr.To[int64](1), Compute: []topology.ComputePool{{Name: "worker", Replicas: ptr.To(s.day1)}},
			}, policy)
			if err != nil {
				return answer{}, err
			}
			isNeeded := d.LoadBalancer.Needed
			if s.later {
				isNeeded = d.LoadBalancer.NeededWithWorkers
			}
			cells = append(cells, string(d.InfrastructureTopology)+", "+pods(d.IngressReplicas, "router")+" "+on(d.IngressPool),
				needed(isNeeded, d.LoadBalancer.Provided))
			out.Decisions = append(out.Decisions, decidedOf(string(policy), d))
		}
		row(t, cells...)
		rows = append(rows, out)
	}
	return answer{kind: "PolicyTable", value: &struct {
		Rows []scenarioRow `json:"rows"`
	}{rows}, names: policies(), table: t}, nil
}
