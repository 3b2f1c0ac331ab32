package extension

import "runtime/debug"

// Build is what a program was built from, as the contract has it.
type Build struct {
	Commit       string `json:"commit"`
	BuildDate    string `json:"build_date"`
	GitTreeState string `json:"git_tree_state"`
}

// ReadBuild returns what Go has stamped into the program; empty values where it has not.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{}
	}
	var b Build
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.BuildDate = setting.Value
		case "vcs.modified":
			b.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[setting.Value]
		}
	}
	return b
}

// String is for reports.
func (b Build) String() string {
	if b.Commit == "" {
		return ""
	}
	if b.GitTreeState == "dirty" {
		return b.Commit + "-dirty"
	}
	return b.Commit
}
